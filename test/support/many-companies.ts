// A scripted upstream with many companies, written independently of src/sandbox, and the receiver of their events. Each
// company has two lists, which get a record at a steady pace, and hosts. Companies may be broken, each in one way of
// "what the documents leave open". The receiver computes the age of each record at its arrival.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The ways in which a company can be broken. */
export const troubles = [
  'denied',
  'unauthorised',
  'gone',
  'throttled',
  'slow',
  'endless',
  'empty_pages',
  'nonsense',
  'huge',
  'flapping',
  'wrong_clock',
  'silent',
] as const;

/** One of them. */
export type Trouble = (typeof troubles)[number];

/** The company that is broken where one is. */
export const badCompany = 'c-0';

/** Settings of the upstream. */
interface ManyCompaniesOptions {
  readonly companies: number;
  /** Each list gets a record after this time. */
  readonly recordEveryMs: number;
  /** How long a page of a slow company takes. Default: 30 s. */
  readonly slowMs?: number;
  /** Size of a huge page. Default: 57 MB. */
  readonly hugeBytes?: number;
}

const pageMax = 100;
const dayMs = 86_400_000;

/** Starts it on a free loopback port. */
export async function startManyCompanies(options: ManyCompaniesOptions) {
  const upstream = new ManyCompanies(options);
  const server = createServer((request, response) => upstream.answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    upstream,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The upstream and the receiver. */
class ManyCompanies {
  /** The broken companies, and how each is broken. */
  readonly broken = new Map<string, Trouble>();
  /** Requests so far, by company. */
  readonly requests = new Map<string, number>();
  /** Milliseconds from the creation of a record to its arrival, for all companies that are not broken. */
  ages: number[] = [];
  /** Lists of the other companies from which a record has arrived. */
  readonly seen = new Set<string>();
  readonly #options: ManyCompaniesOptions;
  readonly #begunAt = Date.now();
  #answers = 0;
  #huge: Buffer | null = null;

  constructor(options: ManyCompaniesOptions) {
    this.#options = options;
  }

  /** The company ids, the bad one first. */
  get ids(): readonly string[] {
    return Array.from({ length: this.#options.companies }, (_, i) => `c-${i}`);
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://upstream');
    if (request.method === 'POST') {
      if (url.pathname === '/intake') void this.#take(request, response);
      else json(response, { access_token: 't', token_type: 'Bearer', expires_in: 3600 });
      request.resume();
      return;
    }
    const [, company = '', list = ''] =
      /companies\/([^/]+)\/(.+)$/.exec(url.pathname) ??
      /hosts\/host-of-(.+)()$/.exec(url.pathname) ??
      [];
    this.requests.set(company, (this.requests.get(company) ?? 0) + 1);
    this.#answers += 1;
    const trouble = this.broken.get(company);
    if (trouble === undefined) this.#page(company, list, url, response);
    else this.#misbehave(trouble, { company, list, url }, response);
  }

  /** A page, oldest first: the cursor is the number of the next record. */
  #page(company: string, list: string, url: URL, response: ServerResponse, skewMs = 0): void {
    const host = { host_id: `host-of-${company}`, name: company };
    if (list === '' || list === 'hosts') {
      json(response, list === '' ? host : { data: [host], next_cursor: null });
      return;
    }
    const { recordEveryMs } = this.#options;
    const there = Math.floor((Date.now() - this.#begunAt) / recordEveryMs);
    const from = Number(url.searchParams.get('cursor') ?? 0);
    const to = Math.min(there, from + pageMax);
    const data = Array.from({ length: Math.max(0, to - from) }, (_, i) => {
      const at = this.#begunAt + (from + i + 1) * recordEveryMs;
      return recordOf(company, list, from + i, at + skewMs);
    });
    json(response, { data, next_cursor: String(Math.max(from, to)) });
  }

  #misbehave(
    trouble: Trouble,
    { company, list, url }: { company: string; list: string; url: URL },
    response: ServerResponse,
  ): void {
    const page = (skewMs = 0) => this.#page(company, list, url, response, skewMs);
    const from = Number(url.searchParams.get('cursor') ?? 0);
    const { slowMs = 30_000 } = this.#options;
    const ways: Readonly<Record<Trouble, () => void>> = {
      denied: () => problem(response, 403),
      unauthorised: () => problem(response, 401),
      gone: () => problem(response, 404),
      throttled: () => problem(response.setHeader('retry-after', '600'), 429),
      slow: () => setTimeout(page, slowMs).unref(),
      endless: () => json(response, endlessPage(company, list, from)),
      empty_pages: () => json(response, { data: [], next_cursor: String(from + 1) }),
      nonsense: () => this.#nonsense(response),
      huge: () => this.#hugePage(company, list, response),
      flapping: () => {
        if (this.#answers % 3 === 0) problem(response, 503);
        else if (this.#answers % 3 === 1) response.destroy();
        else page();
      },
      wrong_clock: () => {
        response.sendDate = false;
        response.setHeader('date', new Date(Date.now() + 400 * dayMs).toUTCString());
        response.setHeader('x-ratelimit-remaining', '0');
        response.setHeader('x-ratelimit-reset', String(Math.floor(Date.now() / 1_000) + 3_600));
        page(400 * dayMs);
      },
      silent: () => {},
    };
    ways[trouble]();
  }

  #nonsense(response: ServerResponse): void {
    const bodies = ['<html><body>login</body></html>', '{}', '[', '{"data":{"a":1}}', ''];
    response.setHeader('content-type', 'application/json');
    response.end(bodies[this.#answers % bodies.length]);
  }

  /** One new record, and old ones up to the size. */
  #hugePage(company: string, list: string, response: ServerResponse): void {
    const { hugeBytes = 57_000_000 } = this.#options;
    if (this.#huge === null) {
      const rest: string[] = [];
      for (let bytes = 0, n = 0; bytes < hugeBytes; n += 1) {
        const text = JSON.stringify({
          ...recordOf(company, list, n, this.#begunAt),
          text: 'x'.repeat(900),
        });
        bytes += text.length + 1;
        rest.push(text);
      }
      this.#huge = Buffer.from(`,${rest.join(',')}],"next_cursor":null}`);
    }
    const now = JSON.stringify(recordOf(company, list, Date.now(), Date.now()));
    response.setHeader('content-type', 'application/json');
    response.write(`{"data":[${now}`);
    response.end(this.#huge);
  }

  /** Lines as upstream sent them. */
  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const now = Date.now();
    for (const line of Buffer.concat(chunks).toString().split('\n')) {
      const found = /"timestamp":"([^"]+)","company_id":"([^"]+)","list":"([^"]+)"/.exec(line);
      const [, at = '', company = '', list = ''] = found ?? [];
      if (found === null || this.broken.has(company)) continue;
      this.seen.add(`${company}/${list}`);
      this.ages.push(now - Date.parse(at));
    }
    response.end();
  }
}

/** A page of new records, with another one after it. */
function endlessPage(company: string, list: string, from: number) {
  const data = Array.from({ length: pageMax }, (_, i) =>
    recordOf(company, list, from + i, Date.now()),
  );
  return { data, next_cursor: String(from + pageMax) };
}

function recordOf(company: string, list: string, n: number, at: number) {
  return {
    id: `${list}-${n}`,
    timestamp: new Date(at).toISOString(),
    company_id: company,
    list,
  };
}

function json(response: ServerResponse, body: unknown): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
}

function problem(response: ServerResponse, status: number): void {
  response.statusCode = status;
  response.setHeader('content-type', 'application/problem+json');
  response.end(JSON.stringify({ title: 'refused', status, trace_id: `t-${status}` }));
}

/** A config that reads all of them. `sink`: default: the receiver. */
export function configOfMany(
  dir: string,
  url: string,
  {
    ids,
    every,
    page,
    sink = `{ type: http, url: "${url}/intake", format: { type: json, schema: original }, batch: { wait: 100ms } }`,
  }: {
    readonly ids: string;
    readonly every: string;
    readonly page: number;
    readonly sink?: string;
  },
): string {
  const list = (name: string) =>
    `  ${name}: { type: logs, upstream: ops, every: ${every}, path: "/api/logs/v1/companies/{company_id}/${name}", pagination: { style: cursor } }`;
  return `state: { dir: ${dir}/state }
upstreams:
  ops:
    api: services
    base_url: ${url}
    allow_http: true
    auth: { client_id: i, client_secret: s, scope: "urn:x" }
    companies: { file: ${ids} }
sources:
${list('web')}
${list('dns')}
  hosts: { type: hosts, upstream: ops, every: ${every} }
sinks:
  post: ${sink}
status: { listen: "127.0.0.1:${page}" }
`;
}
