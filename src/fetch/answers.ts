// Every answer of upstream held, where a sink proves what upstream has answered (a page sink): else
// the chain from what was asked to what comes next would have holes. It stands around a stream's
// upstream and spool, so that no engine knows of it. An answer whose body is held as a page becomes
// that page's context; any other becomes a page of the kind `answer`, which only page sinks get. It
// is held with the stream's next page, at the end of its poll, or once many wait.
// What must stay true: answers are held in the order in which they came, and before the poll that
// they came in has ended; one that says what was held lately is left out, so that an idle stream
// costs an answer now and then; a failing disk drops none: the poll fails, and they wait.

import { hash } from 'node:crypto';
import { asExportError } from '../contracts/errors.ts';
import type { AnswerFacts, PageContext } from '../contracts/event.ts';
import type { ListEndpoint, ListStream, Pagination, Stream } from '../contracts/source.ts';
import type { Append, FetchSpool, NewPage } from '../contracts/spool.ts';
import { uidBytes } from '../contracts/spool.ts';
import type { HttpResponse } from '../contracts/tools.ts';
import type { Received, Upstream, UpstreamRequest } from '../contracts/upstream.ts';
import { cleanText } from '../tools/clean-text.ts';
import { type EncodingDeps, EncodingWatch } from './encoding.ts';
import type { PollResult } from './outcome.ts';
import { pageContext } from './own-pages.ts';

/** What answers are held with. */
export interface AnswersDeps {
  readonly spool: FetchSpool;
  readonly tools: EncodingDeps['tools'];
  readonly found?: EncodingDeps['found'];
  /** One that says the same again is held once in so long; undefined: none is. It may change. */
  readonly everyMs: () => number | undefined;
}

/** An answer that is not held yet. */
interface Pending {
  readonly context: PageContext;
  /** The memory that the answer came in. */
  readonly body: Uint8Array;
  /** What `next` and `records` are added to, once they are known. */
  readonly facts: { -readonly [K in keyof AnswerFacts]: AnswerFacts[K] };
  /** Whose it is, where a stream asks for many at a time. */
  readonly parent: string | null;
}

/** What was held of an answer to the same request. */
interface Held {
  readonly at: number;
  readonly digest: string;
}

/** Answers wait for the page that they may be until so much has come. */
const pendingBytesMax = 1024 * 1024;
/** The latest are still being judged: a page and the next one, of several parents at a time. */
const judgedMax = { list: 2, collection: 2, parents: 8, push: 0 } as const;
/** Of a failure so much is held. */
const failureBytesMax = 64 * 1024;
/** A body above this is handed over to the spool's thread, while whoever asked still reads it. */
const sharedBytesMax = 1024 * 1024;
/** Requests whose last answer is remembered. */
const rememberedMax = 1_000;
const dateMax = 100;

/** The answers that one stream gets. */
export class StreamResponses {
  /** The stream, and the spool that its pages go to, as its poller is to see them. */
  readonly stream: Stream;
  readonly spool: FetchSpool;
  readonly #deps: AnswersDeps;
  #pending: Pending[] = [];
  readonly #lately = new Map<string, Held>();
  /** Places where the list was read before, while the poller reads it again from one of them. */
  #earlier: ReadonlySet<string> = new Set();
  readonly #encoding: EncodingWatch;

  constructor(stream: Stream, deps: AnswersDeps) {
    const { spool } = deps;
    this.#deps = deps;
    this.#encoding = new EncodingWatch(stream, deps);
    this.stream = this.#heard(stream);
    this.spool = {
      append: (entry) => this.#append(entry),
      recall: (name) => spool.recall(name),
      trail: async (name) => {
        const trail = await spool.trail(name);
        this.#earlier = new Set(trail.map(({ cursor }) => cursor));
        return trail;
      },
      entities: (name, which) => spool.entities(name, which),
      room: (signal) => spool.room(signal),
      parents: spool.parents,
    };
  }

  /** A poll, with all that was answered in it held at its end. */
  async during(poll: () => Promise<PollResult>): Promise<PollResult> {
    let result: PollResult;
    try {
      result = await poll();
    } catch (error) {
      await this.#hold(0).catch(() => undefined);
      throw error;
    }
    try {
      await this.#hold(0);
      await this.#encoding.report();
    } catch (error) {
      return { outcome: 'retry', cause: asExportError(error, 'storing the response of upstream') };
    }
    return result;
  }

  #heard(stream: Stream): Stream {
    switch (stream.kind) {
      case 'list':
        return this.#ofList(stream, null);
      case 'collection':
        return { ...stream, list: this.#ofList(stream.list, null) };
      case 'parents':
        return {
          ...stream,
          listOf: (id) => {
            const list = stream.listOf(id);
            return list === null ? null : this.#ofList<ListStream>(list, id);
          },
        };
      case 'push':
        return stream;
    }
  }

  #ofList<L extends ListEndpoint>(list: L, parent: string | null): L {
    const get: Upstream['get'] = async (request, signal) => {
      const { upstream, pagination } = list;
      if (this.#deps.everyMs() === undefined) {
        const answer = await upstream.get(request, signal);
        if (answer.outcome === 'ok') this.#encoding.see(answer.body);
        return answer;
      }
      let last: Pending | undefined;
      const answer = await upstream.get(request, signal, (response) => {
        last = this.#pendingOf(response, factsOf(request, response, pagination), parent);
        this.#pending.push(last);
      });
      try {
        if (this.#pendingBytes > pendingBytesMax) await this.#hold(judgedMax[this.stream.kind]);
      } catch (error) {
        return {
          outcome: 'retry',
          cause: asExportError(error, 'storing the response of upstream'),
        };
      }
      if (answer.outcome === 'ok') this.#encoding.see(answer.body);
      const facts = last?.facts;
      if (answer.outcome !== 'ok' || facts === undefined) return answer;
      return { ...answer, shows: (shown) => void Object.assign(facts, shown) };
    };
    return { ...list, upstream: { get } };
  }

  get #pendingBytes(): number {
    return this.#pending.reduce((sum, { body }) => sum + body.length, 0);
  }

  #pendingOf(response: HttpResponse, answer: AnswerFacts, parent: string | null): Pending {
    const { status, body } = response;
    const isRewind = answer.asked !== null && this.#earlier.has(answer.asked);
    if (status < 300 && !isRewind) this.#earlier = new Set();
    const facts = { ...answer, ...(isRewind && { isRewind }) };
    const context: PageContext = {
      ...pageContext(this.stream, 'answer', this.#deps.tools.clock.now()),
      ...(parent !== null && { parent }),
      answer: facts,
    };
    return { context, body: status === 200 ? body : body.slice(0, failureBytesMax), facts, parent };
  }

  /** Appends, with the answers that came before one of its pages, each in its place. */
  async #append(entry: Append): Promise<number> {
    if (this.stream.kind === 'push') for (const { body } of entry.pages) this.#encoding.see(body);
    const taken: Pending[] = [];
    const pages = entry.pages.flatMap((page) => {
      const own = this.#pending.find((one) => one.body === page.body);
      if (own === undefined) return [page];
      const before = this.#takeUpTo(own);
      taken.push(...before);
      const context = { ...page.context, answer: own.facts };
      return [...this.#news(before.slice(0, -1)), { ...page, context }];
    });
    // A checkpoint must not come to a place that no held answer has led to: it may be the last thing
    // that this process holds.
    const leading = this.#leadingTo(entry);
    const before = leading === undefined ? [] : this.#takeUpTo(leading);
    taken.push(...before);
    return await this.#held(taken, { ...entry, pages: [...pages, ...this.#news(before)] });
  }

  /** The latest that waits of those that lead to where a checkpoint goes on. */
  #leadingTo({ checkpoint, parent }: Append): Pending | undefined {
    if (checkpoint === undefined || this.#pending.length === 0) return undefined;
    const text = JSON.stringify(checkpoint);
    return this.#pending.findLast((one) => {
      const { next } = one.facts;
      const isTheirs = one.parent === (parent?.id ?? null);
      return isTheirs && typeof next === 'string' && text.includes(JSON.stringify(next));
    });
  }

  /** Holds what waits, but for the latest. */
  async #hold(but: number): Promise<void> {
    const taken = this.#pending.splice(0, Math.max(0, this.#pending.length - but));
    const pages = this.#news(taken);
    if (pages.length > 0) await this.#held(taken, { stream: this.stream.name, pages });
  }

  /** Takes an answer out of those that wait, with the ones to the same asker before it. */
  #takeUpTo(last: Pending): Pending[] {
    const end = this.#pending.indexOf(last);
    const isTaken = (one: Pending, at: number) => at <= end && one.parent === last.parent;
    const taken = this.#pending.filter(isTaken);
    this.#pending = this.#pending.filter((one, at) => !isTaken(one, at));
    return taken;
  }

  async #held(taken: readonly Pending[], entry: Append): Promise<number> {
    try {
      return await this.#deps.spool.append(entry);
    } catch (error) {
      this.#lately.clear();
      this.#pending.unshift(...taken);
      throw error;
    }
  }

  /** The pages of answers, without those that say what was held lately. */
  #news(answers: readonly Pending[]): readonly NewPage[] {
    return answers.flatMap(({ context, body, facts }) => {
      const { status, path, asked } = facts;
      const isOfAll = status === 401 || status === 429 || status >= 500;
      const key = isOfAll ? `${status}` : `${status} ${context.parent} ${path} ${asked}`;
      // A failure says something else each time, such as the request's id.
      const digest = status === 200 ? hash('sha256', body, 'base64') : '';
      const { fetchedAt: at } = context;
      const before = this.#lately.get(key);
      const everyMs = this.#deps.everyMs() ?? Number.POSITIVE_INFINITY;
      if (before?.digest === digest && Math.abs(at - before.at) < everyMs) return [];
      if (this.#lately.size >= rememberedMax) this.#lately.clear();
      this.#lately.set(key, { at, digest });
      return [answerPage(context, body)];
    });
  }
}

/**
 * The page of an answer that is no record. It has one number of the spool's, for positions, and is
 * marked for a sink that no config can have: a version that knows of no answers passes it over.
 */
function answerPage(context: PageContext, answered: Uint8Array): NewPage {
  const body = answered.length > sharedBytesMax ? answered.slice() : answered;
  return { context, body, items: '', kept: null, uids: new Uint8Array(uidBytes), onlySink: '' };
}

function factsOf(
  request: UpstreamRequest,
  { status, headers: { date }, requestId }: Parameters<Received>[0],
  pagination: Pagination,
): AnswerFacts {
  return {
    status,
    ...askedOf(request, pagination),
    ...(requestId !== undefined && { requestId }),
    ...(date !== undefined && { date: cleanText(date, dateMax) }),
  };
}

/** What was asked for: the request without the parameter that names a place, and that. */
function askedOf(
  { path, query, address, body }: UpstreamRequest,
  { cursor_param, offset_param, page_param }: Pagination,
): Pick<AnswerFacts, 'path' | 'asked'> {
  if (address !== undefined) return { path, asked: address };
  const parameters = body === undefined ? query : Object.entries(body);
  const texts = parameters.map(
    ([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
  );
  const places: readonly (string | undefined)[] = [cursor_param, offset_param, page_param];
  const asked = texts.find(([name]) => places.includes(name))?.[1] ?? null;
  const rest = texts.filter(([name]) => !places.includes(name));
  const text = new URLSearchParams(rest.map(([name, value]) => [name, value])).toString();
  return { path: text === '' ? path : `${path}?${text}`, asked };
}
