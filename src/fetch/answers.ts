// Stores every upstream response if a sink proves upstream's responses (a page sink): the chain from each request to
// the next must have no holes. It wraps a stream's upstream, and gets what the stream commits (stream-spool.ts), so the
// list and collection engines are unaware of them. A response whose body is stored as a page becomes that page's context. Any other response becomes a page of
// kind `answer`, which only page sinks receive; it is stored with the stream's next page, at the end of its poll, or
// once enough wait.
// Invariants: responses are stored in the order of their arrival and before their poll ends. A response equal to a
// recent one is skipped, so an idle stream stores one only now and then. A disk failure drops none: the poll fails, and
// they keep waiting.

import { hash } from 'node:crypto';
import {
  type AnswerFacts,
  type Append,
  asExportError,
  type FetchSpool,
  type HttpResponse,
  type ListEndpoint,
  type ListStream,
  type NewPage,
  type PageContext,
  type Pagination,
  type Received,
  type Stream,
  type TrailEntry,
  type Upstream,
  type UpstreamRequest,
  uidBytes,
} from '../contracts/index.ts';
import { type PollResult, pageContext } from '../poll/index.ts';

import { cleanText } from '../tools/index.ts';
import { type EncodingDeps, EncodingWatch } from './encoding.ts';

/** Dependencies of the response store. */
export interface AnswersDeps {
  readonly spool: FetchSpool;
  readonly tools: EncodingDeps['tools'];
  readonly found?: EncodingDeps['found'];
  /**
   * Minimum time between two stored copies of the same response; undefined: responses are not stored. It may change.
   */
  readonly everyMs: (source: string) => number | undefined;
}

/** A response that is not stored yet. */
interface Pending {
  readonly context: PageContext;
  /** The buffer that the response arrived in. */
  readonly body: Uint8Array;
  /** `next` and `records` are added once they are known. */
  readonly facts: { -readonly [K in keyof AnswerFacts]: AnswerFacts[K] };
  /** The parent it belongs to, for a stream with parents. */
  readonly parent: string | null;
}

/** The last stored response to the same request. */
interface Held {
  readonly at: number;
  readonly digest: string;
}

/** Limit in bytes for responses that wait for their page. */
const pendingBytesMax = 1024 * 1024;
/**
 * How many of the latest responses may still be under judgement: a page and the next one, for several parents at a
 * time.
 */
const judgedMax = { list: 2, collection: 2, parents: 8, push: 0 } as const;
/** Stored bytes of a failed response. */
const failureBytesMax = 64 * 1024;
/** A larger body is transferred to the spool's thread, so it is copied while the requester still reads it. */
const sharedBytesMax = 1024 * 1024;
/** Number of requests whose last response is remembered. */
const rememberedMax = 1_000;
const dateMax = 100;
const none: ReadonlySet<string> = new Set();

/** The responses to one stream. */
export class StreamResponses {
  /** The wrapped stream, for its poller. */
  readonly stream: Stream;
  readonly #deps: AnswersDeps;
  #pending: Pending[] = [];
  /** Null: none, as in most of many streams. */
  #lately: Map<string, Held> | null = null;
  /** Cursors of an earlier reading, while the poller reads again from one of them. */
  #earlier: ReadonlySet<string> = none;
  readonly #encoding: EncodingWatch;
  /** Bodies of responses that were stored by themselves: their pages may follow. */
  readonly #stored = new WeakSet<Uint8Array>();

  constructor(stream: Stream, deps: AnswersDeps) {
    this.#deps = deps;
    this.#encoding = new EncodingWatch(stream, deps);
    this.stream = this.#recording(stream);
  }

  /** The poller reads again from a position of this trail. */
  rewinds(trail: readonly TrailEntry[]): void {
    this.#earlier = new Set(trail.map(({ cursor }) => cursor));
  }

  /** Runs a poll, and stores all its responses at its end. */
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

  #recording(stream: Stream): Stream {
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
      if (this.#everyMs === undefined) {
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

  get #everyMs(): number | undefined {
    return this.#deps.everyMs(this.stream.source);
  }

  get #pendingBytes(): number {
    return this.#pending.reduce((sum, { body }) => sum + body.length, 0);
  }

  #pendingOf(response: HttpResponse, answer: AnswerFacts, parent: string | null): Pending {
    const { status, body } = response;
    const isRewind = answer.asked !== null && this.#earlier.has(answer.asked);
    if (status < 300 && !isRewind) this.#earlier = none;
    const facts = { ...answer, ...(isRewind && { isRewind }) };
    const context: PageContext = {
      ...pageContext(this.stream, 'answer', this.#deps.tools.clock.now()),
      ...(parent !== null && { parent }),
      answer: facts,
    };
    return {
      context,
      body: status === 200 ? body : new Uint8Array(body.subarray(0, failureBytesMax)),
      facts,
      parent,
    };
  }

  /** Appends, with the responses that arrived before each of its pages, in order. */
  async append(entry: Append): Promise<number> {
    if (this.stream.kind === 'push') for (const { body } of entry.pages) this.#encoding.see(body);
    const taken: Pending[] = [];
    const pages = entry.pages.flatMap((page) => {
      const own = this.#pending.find((one) => one.body === page.body);
      if (own === undefined)
        return [this.#stored.has(page.body) ? { ...page, givesBody: false } : page];
      const before = this.#takeUpTo(own);
      taken.push(...before);
      const context = { ...page.context, answer: own.facts };
      return [...this.#news(before.slice(0, -1)), { ...page, context }];
    });
    // A checkpoint must not reach a position to which no stored response led: this may be the last write of this
    // process.
    const leading = this.#leadingTo(entry);
    const before = leading === undefined ? [] : this.#takeUpTo(leading);
    taken.push(...before);
    return await this.#held(taken, { ...entry, pages: [...pages, ...this.#news(before)] });
  }

  /** The latest waiting response that led to the checkpoint's position. */
  #leadingTo({ checkpoint, parent }: Append): Pending | undefined {
    if (checkpoint === undefined || this.#pending.length === 0) return undefined;
    const text = JSON.stringify(checkpoint);
    return this.#pending.findLast((one) => {
      const { next } = one.facts;
      const isTheirs = one.parent === (parent?.id ?? null);
      return isTheirs && typeof next === 'string' && text.includes(JSON.stringify(next));
    });
  }

  /** Stores the waiting responses except the latest `but`. */
  async #hold(but: number): Promise<void> {
    const taken = this.#pending.splice(0, Math.max(0, this.#pending.length - but));
    const pages = this.#news(taken);
    if (pages.length > 0) await this.#held(taken, { stream: this.stream.name, pages });
  }

  /** Removes a response from the waiting ones, with the earlier ones of the same parent. */
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
      this.#lately = null;
      this.#pending.unshift(...taken);
      throw error;
    }
  }

  /** The pages of responses, without those that equal a recently stored one. */
  #news(answers: readonly Pending[]): readonly NewPage[] {
    return answers.flatMap(({ context, body, facts }) => {
      const { status, path, asked } = facts;
      const isOfAll = status === 401 || status === 429 || status >= 500;
      const key = isOfAll ? `${status}` : `${status} ${context.parent} ${path} ${asked}`;
      // Each failure has different text, such as the id of the request.
      const digest = status === 200 ? hash('sha256', body, 'base64') : '';
      const { fetchedAt: at } = context;
      this.#lately ??= new Map();
      const lately = this.#lately;
      const before = lately.get(key);
      const everyMs = this.#everyMs ?? Number.POSITIVE_INFINITY;
      if (before?.digest === digest && Math.abs(at - before.at) < everyMs) return [];
      if (lately.size >= rememberedMax) lately.clear();
      lately.set(key, { at, digest });
      this.#stored.add(body);
      return [answerPage(context, body)];
    });
  }
}

/**
 * The page of a response without records. It uses one sequence number of the spool, for positions, and is addressed to
 * a sink that no config can name, so a version without response pages skips it.
 */
function answerPage(context: PageContext, answered: Uint8Array): NewPage {
  // The `slice` of a Buffer would be no copy.
  const body = answered.length > sharedBytesMax ? new Uint8Array(answered) : answered;
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

/** The request as stored: without the parameter of the position, and the position. */
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
