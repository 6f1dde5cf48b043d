// When the next request on one path may go. Pure arithmetic on the times it is given: it neither
// waits nor knows whom it serves (throttles.ts does), so its promise can be tested exhaustively:
// within no window of a ceiling's length do more requests go out than the ceiling allows, and no
// refusal is answered by a request sooner than upstream asked for.

import { backOff } from '../tools/back-off.ts';
import type { RateSign } from './rate-sign.ts';

/** At most `requests` in any window of `perMs`. */
export interface Ceiling {
  readonly requests: number;
  readonly perMs: number;
}

/**
 * `pauseMs`: the wait after "none remaining" where no reset is said. `random` gives [0, 1). `sentMs`: when requests went
 * that count as well, oldest first: those of a process before.
 */
export interface ThrottleOptions {
  readonly ceilings?: readonly Ceiling[];
  readonly sentMs?: readonly number[];
  readonly pauseMs?: number;
  readonly random: () => number;
}

/** The budget as upstream last told it. */
export interface Budget {
  readonly limit?: number;
  readonly remaining?: number;
}

/** One path's throttle. All times are monotonic milliseconds and never go back. */
export interface Throttle {
  /** Milliseconds until a request may go; 0 for now. */
  delayAt(nowMs: number): number;
  /** Counts a request that goes now; call it only when `delayAt` is 0. */
  take(nowMs: number): void;
  /** Learns from an answer; `request` tells one request on the path from another. */
  observe(sign: RateSign, nowMs: number, request?: string): void;
  /** What upstream last said; empty when it said nothing. */
  budget(): Budget;
  /** When those requests went that still count for a ceiling, oldest first. */
  sentMs(nowMs: number): readonly number[];
}

/** No wait after a refusal is shorter, whatever upstream says: no hot loop. */
const refusedMsMin = 1_000;
const defaultPauseMs = 30_000;
/** Spread over those that wait for the same moment, so that they do not all return in it. */
const spreadShare = 0.1;
const spreadMsMax = 5_000;

/**
 * A throttle with the given ceilings (all hold). After a 429 it is parked for Retry-After, or for
 * growing jittered waits from 1 s to 5 min; refusals of requests that were already under way do not
 * make the wait grow. They begin anew once the request that was refused is answered, or nothing was
 * refused for as long again: others may be answered all the time.
 */
export function createThrottle(options: ThrottleOptions): Throttle {
  const windows = (options.ceilings ?? []).map(slidingWindow);
  for (const at of options.sentMs ?? []) for (const window of windows) window.take(at);
  const waits = backOff({ random: options.random });
  let parkedUntilMs = Number.NEGATIVE_INFINITY;
  let budget: Budget = {};
  let refusedRequest = '';
  let ownWaitMs = 0;

  const park = (ms: number, nowMs: number) => {
    parkedUntilMs = Math.max(parkedUntilMs, nowMs + ms);
  };
  const parkRefused = ({ retryAfterMs = 0, resetMs = 0 }: RateSign, nowMs: number) => {
    // A reset that is past was made a second: it is not what upstream asks for.
    const untilResetMs = resetMs > refusedMsMin ? resetMs : 0;
    const askedMs = retryAfterMs >= refusedMsMin ? retryAfterMs : untilResetMs;
    if (askedMs > 0) {
      const spreadMs = Math.min(askedMs * spreadShare, spreadMsMax);
      park(askedMs + options.random() * spreadMs, nowMs);
    } else if (nowMs >= parkedUntilMs) {
      ownWaitMs = waits.next();
      park(ownWaitMs, nowMs);
    }
  };

  return {
    delayAt(nowMs) {
      let delayMs = Math.max(0, parkedUntilMs - nowMs);
      for (const window of windows) delayMs = Math.max(delayMs, window.delayAt(nowMs));
      return delayMs;
    },
    take(nowMs) {
      for (const window of windows) window.take(nowMs);
    },
    observe(sign, nowMs, request = '') {
      if (sign.limit !== undefined || sign.remaining !== undefined) {
        budget = {
          ...(sign.limit === undefined ? {} : { limit: sign.limit }),
          ...(sign.remaining === undefined ? {} : { remaining: sign.remaining }),
        };
      }
      if (sign.refused) {
        parkRefused(sign, nowMs);
        refusedRequest = request;
        return;
      }
      if (sign.retryAfterMs !== undefined) park(sign.retryAfterMs, nowMs);
      else if (request === refusedRequest || nowMs >= parkedUntilMs + ownWaitMs) waits.reset();
      if (sign.remaining === 0) park(sign.resetMs ?? options.pauseMs ?? defaultPauseMs, nowMs);
    },
    budget: () => budget,
    sentMs: (nowMs) =>
      windows
        .map((window) => window.sentMs(nowMs))
        .reduce((most, sent) => (sent.length > most.length ? sent : most), []),
  };
}

interface Window {
  delayAt(nowMs: number): number;
  take(nowMs: number): void;
  sentMs(nowMs: number): readonly number[];
}

/**
 * A log of the last `requests` times rather than a token bucket, since a bucket lets almost twice
 * its size through in some windows. A request may go once the one `requests` before it is a whole
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
