// One of the two upstreams of test/support/moving: its records, its paging, and its death. See upstreams.ts.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterThisTest } from '../temp.ts';
import { type Entry, entryText, type Forms, type Side, type Ticket, ticketText } from './ledger.ts';

/** How a side fails: a status, nothing listens, the connection is reset, or no answer comes. */
export type Death = 401 | 403 | 404 | 410 | 429 | 500 | 503 | 'refused' | 'reset' | 'hang';

/** What a server is made from. */
export interface ServerPlan {
  readonly side: Side;
  readonly forms: Forms;
  readonly order: 'oldest_first' | 'newest_first';
  readonly sorted: 'arrival' | 'time';
  readonly pageMax: number;
  readonly companies: readonly string[];
}

interface Row {
  readonly entry: Entry;
  readonly text: string;
}

interface Reply {
  readonly status: number;
  readonly body: string;
}

const credentials = { id: 'moving-client', secret: 'moving-secret', key: 'moving-key' };
const scope = 'urn:moving:api:public';
const token = 'moving-token';
const tokenPath = '/api/auth/v1/oauth/v2/token';

/** One side, listening on loopback. */
export class MovingServer {
  readonly served = new Map<string, number>();
  requests = 0;
  readonly #plan: ServerPlan;
  readonly #rows: Row[] = [];
  readonly #tickets = new Map<number, Ticket>();
  readonly #calls: ((path: string, number: number) => unknown)[] = [];
  #headers: Readonly<Record<string, string>> = {};
  #death: Death | null = null;
  #server: Server;
  #port = 0;

  private constructor(plan: ServerPlan) {
    this.#plan = plan;
    this.#server = this.#created();
  }

  static async start(plan: ServerPlan): Promise<MovingServer> {
    const one = new MovingServer(plan);
    await one.#listen();
    afterThisTest(() => one.#close());
    return one;
  }

  /** Address and credential, as keys of an upstream's block. */
  get access(): object {
    const base = `http://127.0.0.1:${this.#port}`;
    const { id, secret, key } = credentials;
    return this.#plan.side === 'old'
      ? { base_url: `${base}/v1`, allow_http: true, auth: { api_key: key } }
      : { base_url: base, allow_http: true, auth: { client_id: id, client_secret: secret, scope } };
  }

  show(entry: Entry): void {
    const { side, forms, sorted } = this.#plan;
    this.#rows.push({ entry, text: entryText(entry, side, forms) });
    if (sorted === 'time') this.#rows.sort((a, b) => a.entry.timeMs - b.entry.timeMs);
  }

  hide(entry: Entry): void {
    const at = this.#rows.findIndex((row) => row.entry === entry);
    if (at < 0) throw new Error(`the ${this.#plan.side} upstream does not show ${entry.mark}`);
    this.#rows.splice(at, 1);
  }

  setTicket(id: number, change: Partial<Omit<Ticket, 'id'>>): void {
    const usual = {
      ...{ id, company: this.#plan.companies[0] ?? '1', subject: `ticket ${id}`, status: 'open' },
      ...{ customerReference: null, createdMs: Date.UTC(2026, 9, 1) + id * 1_000 },
    };
    this.#tickets.set(id, { ...usual, ...this.#tickets.get(id), ...change });
  }

  removeTicket(id: number): void {
    this.#tickets.delete(id);
  }

  announce(headers: Readonly<Record<string, string>>): void {
    this.#headers = headers;
  }

  onRequest(call: (path: string, number: number) => unknown): void {
    this.#calls.push(call);
  }

  async die(how: Death): Promise<void> {
    if (this.#death !== null) await this.revive();
    this.#death = how;
    if (how === 'refused') await this.#close();
  }

  async revive(): Promise<void> {
    const was = this.#death;
    this.#death = null;
    this.#server.closeAllConnections(); // those that hang
    if (was !== 'refused') return;
    this.#server = this.#created();
    await this.#listen();
  }

  #created(): Server {
    return createServer((request, response) => void this.#answer(request, response));
  }

  async #listen(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async #close(): Promise<void> {
    const server = this.#server;
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    const url = new URL(request.url ?? '/', 'http://upstream');
    if (url.pathname !== tokenPath) {
      this.requests += 1;
      const number = this.requests;
      for (const call of this.#calls) await call(url.pathname, number);
    }
    if (this.#death === 'reset' || this.#death === 'refused') {
      response.socket?.resetAndDestroy();
      return;
    }
    if (this.#death === 'hang') return;
    const { status, body } = this.#reply(request, url);
    const isProblem = status >= 400 && this.#plan.side === 'new';
    response.writeHead(status, {
      'content-type': isProblem ? 'application/problem+json' : 'application/json',
      date: new Date(Date.now() + this.#plan.forms.aheadMs[this.#plan.side]).toUTCString(),
      ...this.#headers,
    });
    response.end(body);
  }

  #reply({ headers }: IncomingMessage, url: URL): Reply {
    if (typeof this.#death === 'number') return this.#failed(this.#death);
    const { authorization } = headers;
    const isOld = this.#plan.side === 'old';
    if (url.pathname === tokenPath && !isOld) {
      const basic = Buffer.from(`${credentials.id}:${credentials.secret}`).toString('base64');
      if (authorization !== `Basic ${basic}`) return this.#failed(401);
      const granted = { access_token: token, token_type: 'Bearer', expires_in: 43_200 };
      return { status: 200, body: JSON.stringify(granted) };
    }
    const bearer = isOld ? credentials.key : token;
    if (authorization !== `Bearer ${bearer}`) return this.#failed(401);
    const texts = this.#listAt(url.pathname);
    if (texts === null) return this.#failed(404);
    return { status: 200, body: isOld ? this.#page(texts, url) : this.#stretch(texts, url) };
  }

  #failed(status: number): Reply {
    if (this.#plan.side === 'old')
      return { status, body: JSON.stringify({ message: `error ${status}` }) };
    const problem = {
      title: 'failed',
      status,
      detail: 'scripted',
      trace_id: 'trace-1',
      errors: [],
    };
    return { status, body: JSON.stringify(problem) };
  }

  /** The rows of a path in the order of arrival; null: there is no such list. */
  #listAt(path: string): readonly Row[] | null {
    const base = this.#plan.side === 'old' ? '/v1' : '/api/(?:logs|ticketing)/v1';
    const lists = new RegExp(`^${base}(?:/companies/(\\d+))?/(audit|tickets)(?:/(\\d+)/events)?$`);
    const found = lists.exec(path);
    if (found === null) return null;
    const [, company, list, ticket] = found;
    if (company !== undefined && !this.#plan.companies.includes(company)) return null;
    const isOwn = (one: string) => company === undefined || one === company;
    if (ticket !== undefined) {
      return this.#rows.filter(
        ({ entry }) => entry.ticket === Number(ticket) && isOwn(entry.company),
      );
    }
    if (list === 'audit') {
      return this.#rows.filter(({ entry }) => entry.ticket === null && isOwn(entry.company));
    }
    return [...this.#tickets.values()]
      .filter((one) => isOwn(one.company))
      .map((one) => ({ entry: noEntry, text: ticketText(one, this.#plan.side) }));
  }

  #page(rows: readonly Row[], { searchParams }: URL): string {
    const page = Math.max(1, Number(searchParams.get('page') ?? 1));
    const pageSize = Math.min(Number(searchParams.get('page_size') ?? 50), this.#plan.pageMax);
    const shown = this.#inOrder(rows).slice((page - 1) * pageSize, page * pageSize);
    const totalPages = Math.ceil(rows.length / pageSize);
    return this.#written(shown, { page, pageSize, totalPages, total: rows.length });
  }

  #stretch(rows: readonly Row[], { searchParams }: URL): string {
    const limit = Math.min(Number(searchParams.get('limit') ?? 100), this.#plan.pageMax);
    if (searchParams.has('offset')) {
      const offset = Number(searchParams.get('offset'));
      const shown = this.#inOrder(rows).slice(offset, offset + limit);
      return this.#written(shown, { limit, offset, total: rows.length });
    }
    // A cursor counts rows from the oldest: those passed, or, newest first, those that are left.
    const at = searchParams.get('cursor');
    const isNewest = this.#plan.order === 'newest_first';
    const cursor = at === null ? (isNewest ? rows.length : 0) : Number(at.slice(1));
    const shown = isNewest
      ? rows.slice(Math.max(0, cursor - limit), cursor).toReversed()
      : rows.slice(cursor, cursor + limit);
    const next = isNewest ? cursor - shown.length : cursor + shown.length;
    const isLast = isNewest ? next <= 0 : next >= rows.length;
    return this.#written(shown, {
      limit,
      next_cursor: isLast ? null : `c${next}`,
      prev_cursor: null,
    });
  }

  #inOrder(rows: readonly Row[]): readonly Row[] {
    return this.#plan.order === 'newest_first' ? rows.toReversed() : rows;
  }

  #written(rows: readonly Row[], fields: object): string {
    for (const { entry } of rows) {
      if (entry !== noEntry) this.served.set(entry.mark, (this.served.get(entry.mark) ?? 0) + 1);
    }
    const data = rows.map(({ text }) => text).join(',');
    return `{"data":[${data}],${JSON.stringify(fields).slice(1)}`;
  }
}

/** Stands for a ticket, which is no record. */
const noEntry: Entry = { mark: '', id: 0, company: '', timeMs: 0, ticket: null, differs: {} };
