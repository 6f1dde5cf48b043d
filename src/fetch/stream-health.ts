// The state of a stream: the effect of each poll's result on it, and the wait until the next poll. A wait that the
// response has decided (contracts/answer.ts) is kept; otherwise the wait follows the schedule, or grows with each
// failure.

import type { Clock, ExportError, Log, Wait } from '../contracts/index.ts';
import {
  deniedWaitMsMax,
  type FailedPoll,
  isPatience,
  type PollResult,
  passingMs,
  type Timetable,
} from '../poll/index.ts';

import { BackOff, LastingBackOff } from '../tools/index.ts';

/** Minimum wait after a poll that found the tail, whatever the schedule says. */
const idleWaitMsMin = 100;
/** Minimum wait after a failed poll, whatever upstream says. */
const retryWaitMsMin = 1_000;
/** Limit of growing waits: rights may be granted, other faults repaired. */
const waitMsMax = { denied: deniedWaitMsMax, refused: 3_600_000, blocked: 3_600_000 };

/** Limit of the wait after a full disk: polls pause until it has room, and then nothing else holds them back. */
const fullDiskWaitMsMax = 30_000;

/** The wait if the response decided none; an operator may cut it short. */
export const notDecided: Wait = { ms: 0, cut: () => undefined };

interface HealthDeps {
  /** The failure, with the end of its API if that explains it; default: unchanged. */
  readonly named?: (cause: ExportError) => ExportError;
  readonly timetable: Timetable;
  readonly clock: Clock;
  readonly log: Log;
  /** From 0 up to 1, for jitter. */
  readonly random: () => number;
}

/** The state of one stream. */
export class StreamHealth {
  readonly #deps: HealthDeps;
  readonly #failures;
  readonly #refusals;
  #state: 'waiting' | 'retrying' | 'halted' = 'waiting';
  #polls = 0;
  #records = 0;
  #caughtUpAt: number | null = null;
  #error: ExportError | null = null;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    this.#failures = new BackOff(deps);
    this.#refusals = new LastingBackOff(deps);
  }

  /** The state after the last poll. */
  get state() {
    return {
      state: this.#state,
      polls: this.#polls,
      records: this.#records,
      caughtUpAt: this.#caughtUpAt,
      error: this.#error,
    };
  }

  /**
   * Applies a poll's result to the state, and returns the wait. `isEnded`: the failure is the end of its API, which is
   * no fault and is reported elsewhere.
   */
  observe(result: PollResult, begunAt: number, isEnded = false): Wait {
    const { clock, timetable } = this.#deps;
    this.#polls += 1;
    if (result.outcome !== 'done') return this.#failed(result, isEnded);
    this.#records += result.fresh;
    if (!result.more) this.#caughtUpAt = clock.now();
    this.#doubt(result.doubt ?? null);
    this.#state = 'waiting';
    if (result.fresh > 0 || !result.more) this.resetWaits();
    // A list that never ends and brings no record must not become a hot loop.
    if (result.more && result.againMs === undefined) {
      return { ...notDecided, ms: result.fresh > 0 ? 0 : this.#failures.next() };
    }
    const ms = result.againMs ?? timetable.untilNext(begunAt, result.fresh);
    return { ...notDecided, ms: Math.max(idleWaitMsMin, ms) };
  }

  /** Logs a doubt that only a part of the list is read. */
  #doubt(doubt: ExportError | null): void {
    const { log } = this.#deps;
    if (doubt === null && this.#error !== null)
      log.info('stream_recovered', 'the stream can be read again');
    if (doubt !== null && doubt.message !== this.#error?.message) {
      const { code, message, next } = doubt;
      log.error('stream_partly_read', 'possibly only a part of the stream is read', {
        code,
        error: message,
        next,
      });
    }
    this.#error = doubt;
  }

  /** The cause of growing waits is over, or an operator says so. */
  resetWaits(): void {
    this.#failures.reset();
    this.#refusals.reset();
  }

  /** A wait near zero would be a hot loop: repeated ones grow. */
  #failed(failed: FailedPoll, isEnded: boolean): Wait {
    const { outcome, cause, wait = notDecided, isDefinite, advanced } = failed;
    if (advanced === true) this.resetWaits();
    const kind = outcome === 'retry' && isPatience(failed) ? 'denied' : outcome;
    const lasting = kind === 'retry' ? null : this.#refusals.next(waitMsMax[kind]);
    const isHalted = isDefinite === true || (lasting?.lastedMs ?? 0) >= passingMs(failed);
    this.#state = isHalted ? 'halted' : 'retrying';
    this.#error = cause;
    const isDecided = wait.ms >= retryWaitMsMin;
    const mostMs = cause.code === 'disk_full' ? fullDiskWaitMsMax : Number.POSITIVE_INFINITY;
    const growing = () => lasting?.waitMs ?? Math.min(mostMs, this.#failures.next());
    const isTooShort = isPatience(failed) && (lasting?.waitMs ?? 0) > wait.ms;
    const decided = isDecided && !isTooShort ? wait : { ...notDecided, ...wait, ms: growing() };
    const { code, message, next, details } = this.#deps.named?.(cause) ?? cause;
    const ours = { code, error: message, next };
    // First for the reader of the line, and last because no detail may overwrite these names.
    const fields = { ...ours, ...details, ...ours, wait_ms: decided.ms };
    if (isEnded)
      this.#deps.log.debug(
        'stream_refused_after_end',
        'the stream of an API that has ended is not read',
        fields,
      );
    else if (this.#state === 'halted')
      this.#deps.log.error('stream_halted', 'the stream is halted', fields);
    else this.#deps.log.warn('stream_failed', 'the stream could not be read; retrying', fields);
    return decided;
  }
}
