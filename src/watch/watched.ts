// What the status server is told of the journey at one moment: plain facts, taken where they are known and put together
// by boot, so that watching knows no stage. What must stay true: nothing here is a secret, a token or a cursor, and
// looking costs little, since it happens every few seconds for as long as the program runs.

import type { Notice } from '../contracts/sink.ts';

/** The failure that a stream or sink is in. */
export interface WatchedError {
  readonly code: string;
  readonly message: string;
  readonly next: string;
  /** Upstream's own code for the failure, where it gave one. */
  readonly upstreamCode: string | null;
  /** What upstream calls the failed request, where it named it. */
  readonly requestId: string | null;
  readonly traceId: string | null;
}

/** A stream. Times are epoch milliseconds; counts are since the start of the process. */
export interface WatchedStream {
  readonly name: string;
  readonly source: string;
  readonly upstream: string;
  readonly state: 'waiting' | 'polling' | 'retrying' | 'halted';
  /** Null where a calendar decides. */
  readonly everyMs: number | null;
  readonly polls: number;
  readonly records: number;
  /** Polls that fell due while one was still running. */
  readonly skipped: number;
  /** When it was last read to its tail; null: not yet. */
  readonly caughtUpAt: number | null;
  /** When it is polled next, past while it waits for its turn; null: it is polled now, or never again. */
  readonly nextPollAt: number | null;
  readonly order: string | null;
  readonly checkpointAt: number | null;
  /** Latest time of a record read, as of the last checkpoint looked at; null where none had one. */
  readonly newestRecordAt: number | null;
  /** The tightest of the limits that its requests pass; null: none is known. */
  readonly budget: WatchedBudget | null;
  readonly error: WatchedError | null;
}

/** What an upstream allows on one path. */
export interface WatchedBudget {
  /** Path or template; `*`: the credential as a whole. */
  readonly path: string;
  /** Until the next request may go. */
  readonly waitMs: number;
  readonly limit: number | null;
  readonly remaining: number | null;
}

/** A sink. Counts are since the start of the process, but for `lettersHeld`. */
export interface WatchedSink {
  readonly name: string;
  readonly type: string;
  readonly state: 'idle' | 'sending' | 'retrying' | 'refused' | 'stopped';
  readonly position: number;
  /** Events that it has yet to pass. */
  readonly backlog: number;
  readonly delivered: number;
  readonly deadLetters: number;
  /** Dead letters that wait for an operator, also those of earlier runs. */
  readonly lettersHeld: number;
  /** Why the latest of them were refused, the most frequent reason first; at most ten. */
  readonly letterReasons: readonly WatchedReason[];
  readonly retries: number;
  readonly error: WatchedError | null;
  /** What the sink says of its far side though events go there. */
  readonly notice: Notice | null;
}

/** Why events became dead letters. */
export interface WatchedReason {
  readonly reason: string;
  /** Among the latest letters. */
  readonly count: number;
  /** Epoch milliseconds of the last one. */
  readonly lastAt: number;
}

/** An upstream with what it allows and announces. */
export interface WatchedUpstream {
  readonly name: string;
  readonly baseUrl: string;
  /** Paths with a budget or a wait. */
  readonly throttles: readonly WatchedBudget[];
  /** Endpoints that upstream says are going away; epoch milliseconds, null without a date. */
  readonly endOfLife: readonly {
    readonly endpoint: string;
    readonly deprecationMs: number | null;
    readonly sunsetMs: number | null;
  }[];
}

/** A condition that a source was found in: a gap, a reset. */
export interface WatchedCondition {
  readonly condition: string;
  readonly stream: string;
  /** RFC 3339. */
  readonly observedAt: string;
  readonly message: string;
}

/** The filter of a route, as it does with one source. */
export interface WatchedFilter {
  /** `routes[0]`. */
  readonly route: string;
  readonly source: string;
  readonly failures: number;
  /** Why it failed last; null: it never did. */
  readonly why: string | null;
}

/** The journey at one moment. */
export interface Watched {
  readonly upstreams: readonly WatchedUpstream[];
  readonly streams: readonly WatchedStream[];
  readonly spool: {
    readonly bytes: number;
    readonly bytesMax: number;
    /** Offsets of the ends of what is held. */
    readonly oldest: number;
    readonly end: number;
    /** When the oldest page held was read; null where none is. */
    readonly oldestAt: number | null;
  };
  readonly sinks: readonly WatchedSink[];
  /** The latest, newest first. */
  readonly conditions: readonly WatchedCondition[];
  /** How often each condition was found, by its name and its stream. */
  readonly conditionCounts: readonly {
    readonly condition: string;
    readonly stream: string;
    readonly count: number;
  }[];
  /** Why the config as it stands in its file does not run; null: it does. `at` is in epoch milliseconds. */
  readonly reloadRefused: {
    readonly at: number;
    readonly code: string;
    readonly message: string;
    readonly next: string;
  } | null;
  /** Each filter of the routes by source, with the events that it could not judge and that were delivered for it. */
  readonly filterFailures: readonly WatchedFilter[];
  /** Lines of the log that the collector never got; null: none is configured. */
  readonly logLinesLost: number | null;
}

/** Of it, what does not come from the process around the journey. */
export type WatchedJourney = Omit<Watched, 'reloadRefused' | 'logLinesLost'>;
