// Decides when the next request on one path may go. Pure arithmetic on given times, without waiting
// or knowledge of requests (throttles.ts has both), so that its promise can be tested exhaustively.
// Invariants: no window of a ceiling's length contains more requests than the ceiling allows; after
// a rejection no request is sent earlier than upstream permits.

import { BackOff } from '../tools/index.ts';
import type { RateSign } from './rate-sign.ts';

/** At most `requests` in any window of `perMs`. */
export interface Ceiling {
  readonly requests: number;
  readonly perMs: number;
}

/**
 * `pauseMs`: the wait after "none remaining" without a reset time. `random` gives [0, 1). `sentMs`:
 * times of earlier requests that count too, oldest first: those of a previous process.
 */
export interface ThrottleOptions {
  readonly ceilings?: readonly Ceiling[];
  readonly sentMs?: readonly number[];
  readonly pauseMs?: number;
  readonly random: () => number;
}

/** The budget that upstream last reported. */
export interface Budget {
  readonly limit?: number;
  readonly remaining?: number;
}

/** Minimum wait after a rejection, whatever upstream reports: prevents a hot loop. */
const refusedMsMin = 1_000;
const defaultPauseMs = 30_000;
/** Jitter for requests that wait for the same moment, so that they do not all resume together. */
const spreadShare = 0.1;
const spreadMsMax = 5_000;

/**
 * One path's throttle, with the given ceilings (all apply). After a 429 it is blocked for Retry-After, or for
 * growing jittered waits from 1 s to 5 min; rejections of requests that were already in flight do
 * not make the wait grow. The waits restart from 1 s once the rejected request succeeds, or no
 * rejection has occurred for as long again: other requests may succeed all the time. All times are
 * monotonic milliseconds and never go back. A class, because each of thousands of paths may have one.
 */
export class Throttle {
  readonly #options: ThrottleOptions;
  readonly #windows: readonly Window[];
  readonly #waits: BackOff;
  #parkedUntilMs = Number.NEGATIVE_INFINITY;
  #budget: Budget = {};
  #refusedRequest = '';
  #ownWaitMs = 0;

  constructor(options: ThrottleOptions) {
    this.#options = options;
    this.#windows = (options.ceilings ?? []).map(slidingWindow);
    for (const at of options.sentMs ?? []) this.take(at);
    this.#waits = new BackOff(options);
  }

  /** Milliseconds until a request may go; 0: now. */
  delayAt(nowMs: number): number {
    let delayMs = this.waitMs(nowMs);
    for (const window of this.#windows) delayMs = Math.max(delayMs, window.delayAt(nowMs));
    return delayMs;
  }

  /** Milliseconds of that wait that upstream requested, or that a rejection caused; 0: none. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#parkedUntilMs - nowMs);
  }

  /** Counts a request that goes now; call it only when `delayAt` is 0. */
  take(nowMs: number): void {
    for (const window of this.#windows) window.take(nowMs);
  }

  /** Updates the budget and waits from a response; `request` distinguishes requests on the path. */
  observe(sign: RateSign, nowMs: number, request = ''): void {
    const { limit, remaining, retryAfterMs, resetMs } = sign;
    if (limit !== undefined || remaining !== undefined) {
      this.#budget = {
        ...(limit === undefined ? {} : { limit }),
        ...(remaining === undefined ? {} : { remaining }),
      };
    }
    if (sign.refused) {
      this.#parkRefused(sign, nowMs);
      this.#refusedRequest = request;
      return;
    }
    const isOver = nowMs >= this.#parkedUntilMs + this.#ownWaitMs;
    if (retryAfterMs !== undefined) this.#park(retryAfterMs, nowMs);
    else if (request === this.#refusedRequest || isOver) this.#waits.reset();
    if (remaining === 0) this.#park(resetMs ?? this.#options.pauseMs ?? defaultPauseMs, nowMs);
  }

  /** The budget that upstream last reported; empty if none. */
  budget(): Budget {
    return this.#budget;
  }

  /** Times of the requests that still count for a ceiling, oldest first. */
  sentMs(nowMs: number): readonly number[] {
    return this.#windows
      .map((window) => window.sentMs(nowMs))
      .reduce((most, sent) => (sent.length > most.length ? sent : most), []);
  }

  #park(ms: number, nowMs: number): void {
    this.#parkedUntilMs = Math.max(this.#parkedUntilMs, nowMs + ms);
  }

  #parkRefused({ retryAfterMs = 0, resetMs = 0 }: RateSign, nowMs: number): void {
    // A past reset was raised to one second: that is not a wait that upstream requests.
    const untilResetMs = resetMs > refusedMsMin ? resetMs : 0;
    const askedMs = retryAfterMs >= refusedMsMin ? retryAfterMs : untilResetMs;
    if (askedMs > 0) {
      const spreadMs = Math.min(askedMs * spreadShare, spreadMsMax);
      this.#park(askedMs + this.#options.random() * spreadMs, nowMs);
    } else if (nowMs >= this.#parkedUntilMs) {
      this.#ownWaitMs = this.#waits.next();
      this.#park(this.#ownWaitMs, nowMs);
    }
  }
}

interface Window {
  delayAt(nowMs: number): number;
  take(nowMs: number): void;
  sentMs(nowMs: number): readonly number[];
}

/**
 * A log of the last `requests` times instead of a token bucket, because a bucket passes almost
 * twice its size in some windows. A request may go once the one `requests` before it is a whole
 * window ago.
 */
function slidingWindow(ceiling: Ceiling): Window {
  const sentMs: number[] = [];
  let oldest = 0;
  return {
    delayAt(nowMs) {
      if (sentMs.length < ceiling.requests) return 0;
      const sent = sentMs[oldest] ?? Number.NEGATIVE_INFINITY;
      return Math.max(0, sent + ceiling.perMs - nowMs);
    },
    take(nowMs) {
      if (sentMs.length < ceiling.requests) {
        sentMs.push(nowMs);
        return;
      }
      sentMs[oldest] = nowMs;
      oldest = (oldest + 1) % ceiling.requests;
    },
    sentMs: (nowMs) =>
      [...sentMs.slice(oldest), ...sentMs.slice(0, oldest)].filter(
        (at) => at > nowMs - ceiling.perMs,
      ),
  };
}
