// Splunk's HTTP Event Collector as a customer has it: indexers (`splunk-indexer.ts`) behind a balancer that sends each
// request without its cookie to the next indexer, and one with it to the same as before. A cookie can end, an indexer
// can be killed: then the balancer chooses another, gives its cookie, and says nothing.
import {
  type HttpAnswer,
  type HttpReceiver,
  type HttpReceiverOptions,
  type ReceivedRequest,
  startHttpReceiver,
} from './http-receiver.ts';
import type { IndexedEvent } from './splunk-events.ts';
import { type IndexerOptions, SplunkIndexer } from './splunk-indexer.ts';

export interface SplunkOptions extends Partial<IndexerOptions>, Pick<HttpReceiverOptions, 'tls'> {
  /** Default 2. */
  readonly indexers?: number;
}

/** Stands before the balancer: answers a request itself, or with what `pass` says, which it may also keep back. */
export type Interference = (request: ReceivedRequest, pass: () => HttpAnswer) => HttpAnswer;

/** A running Splunk. It ends with the test that started it. */
export interface Splunk extends Pick<HttpReceiver, 'url' | 'requests' | 'close' | 'reopen'> {
  readonly indexers: readonly SplunkIndexer[];
  /** What a search over all indexers finds, in the order of writing. */
  readonly indexed: readonly IndexedEvent[];
  /** All cookies that were given so far lead nowhere any more. */
  expireCookies(): void;
  /** From now on calls this first; null: nothing. */
  interfere(how: Interference | null): void;
}

/** Tokens that `startSplunk` knows where nothing else is said. */
export const splunkTokens = {
  acked: {
    token: 'ac4ed000-0000-4000-8000-000000000001',
    ack: true,
    indexes: ['main', 'security'],
  },
  plain: { token: 'b1a1b000-0000-4000-8000-000000000002', ack: false, indexes: ['main'] },
  disabled: {
    token: 'd15ab1ed-0000-4000-8000-000000000003',
    ...{ ack: true, indexes: ['main'], disabled: true },
  },
} as const;

const usual: IndexerOptions = {
  tokens: Object.values(splunkTokens),
  pendingMax: 1_000_000,
  contentLengthMax: 838_860_800,
  truncate: 10_000,
  pollsInVain: 0,
  unknownChannel: 'false',
  refuses: null,
};

/** Starts indexers and their balancer on a free loopback port. */
export async function startSplunk(options: SplunkOptions = {}): Promise<Splunk> {
  const { indexers: count = 2, tls, ...more } = options;
  const http = await startHttpReceiver(tls === undefined ? {} : { tls });
  const indexed: IndexedEvent[] = [];
  const indexers = Array.from(
    { length: count },
    (_, i) => new SplunkIndexer(i, { ...usual, ...more }, (events) => indexed.push(...events)),
  );
  const balancer = new Balancer(indexers);
  let interference: Interference | null = null;
  http.answer((request) => {
    const pass = () => balancer.pass(request);
    return interference === null ? pass() : interference(request, pass);
  });
  return {
    ...{ url: http.url, requests: http.requests, indexers, indexed },
    close: () => http.close(),
    reopen: () => http.reopen(),
    expireCookies: () => balancer.expireCookies(),
    interfere: (how) => {
      interference = how;
    },
  };
}

const cookieName = 'hec-lb';

class Balancer {
  readonly #indexers: readonly SplunkIndexer[];
  #next = 0;
  /** Part of every cookie that still holds. */
  #generation = 1;

  constructor(indexers: readonly SplunkIndexer[]) {
    this.#indexers = indexers;
  }

  expireCookies(): void {
    this.#generation += 1;
  }

  pass(request: ReceivedRequest): HttpAnswer {
    const kept = this.#kept(request.headers.cookie ?? '');
    const indexer = kept ?? this.#choose();
    if (indexer === undefined) {
      const body = '<html><h1>503 Service Temporarily Unavailable</h1></html>';
      return { answer: 'reply', status: 503, headers: { 'content-type': 'text/html' }, body };
    }
    const answer = indexer.answer(request);
    if (answer.answer !== 'reply' || kept !== undefined) return answer;
    const cookie = `${cookieName}=${this.#generation}-${indexer.number}; Path=/; HttpOnly`;
    return { ...answer, headers: { ...answer.headers, 'set-cookie': cookie } };
  }

  #kept(cookies: string): SplunkIndexer | undefined {
    const value = cookies
      .split(/;\s*/)
      .map((cookie) => cookie.split('='))
      .find(([name]) => name === cookieName)?.[1];
    return this.#indexers.find(
      ({ isUp, number }) => isUp && value === `${this.#generation}-${number}`,
    );
  }

  #choose(): SplunkIndexer | undefined {
    const up = this.#indexers.filter(({ isUp }) => isUp);
    this.#next += 1;
    return up[this.#next % up.length];
  }
}
