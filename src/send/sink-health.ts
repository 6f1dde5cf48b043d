// How a sink fares: its state, its counts, and how long it is left alone after an answer that is no
// delivery. A wait that the far side asks for is kept; any other ends early where an operator asks
// or a secret was mended.

import type { ExportError } from '../contracts/errors.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { otherThan } from '../tools/fingerprint.ts';

/** What waits are made with. */
export interface HealthDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly backOff: { next(): number; reset(): void };
  /** Of the sink's settings, with its secrets as they are now. */
  readonly fingerprint: () => string;
  /** How long a sink that refuses everything is left alone before it is asked again. */
  readonly refusedWaitMs: number;
  /** The shortest wait before something is sent again. */
  readonly retryMinMs: number;
}

/** How one sink fares. */
export class SinkHealth {
  readonly #deps: HealthDeps;
  #state: 'idle' | 'sending' | 'retrying' | 'refused' | 'stopped' = 'idle';
  #error: ExportError | null = null;
  #delivered = 0;
  #deadLetters = 0;
  #retries = 0;
  /** Probes in a row in which the receiver refused every event. */
  #probes = 0;
  /** Ends the wait under way. */
  #wake: (() => void) | null = null;
  /** Epoch milliseconds until which the far side has asked to wait. */
  #retryAfterUntil: number | null = null;
  /** From before what was refused was sent: a secret that was mended since is another one. */
  #tried: string;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    this.#tried = deps.fingerprint();
  }

  get state() {
    return {
      state: this.#state,
      delivered: this.#delivered,
      deadLetters: this.#deadLetters,
      retries: this.#retries,
      error: this.#error,
      probes: this.#probes,
    };
  }

  /**
   * Has the batch sent now rather than when the wait is over. Where the far side has asked for the
   * wait that stays, and its end is returned, epoch milliseconds.
   */
  askNow(): number | null {
    this.#deps.backOff.reset();
    this.#wake?.();
    return this.#retryAfterUntil;
  }

  /** A batch is on its way. */
  begun(): void {
    if (this.#error === null) this.#state = 'sending';
  }

  /** Nothing is sent any more. */
  ended(): void {
    this.#state = 'stopped';
  }

  /** Events have become dead letters. */
  buried(count: number): void {
    this.#deadLetters += count;
  }

  /** Events were taken. */
  succeeded(count: number): void {
    this.#delivered += count;
    if (this.#error !== null)
      this.#deps.log.info('sink_recovered', 'the receiver accepts events again');
    this.#error = null;
    this.#probes = 0;
    this.#state = 'sending';
    this.#deps.backOff.reset();
  }

  /** A probe has ended, and the receiver refused all of it. */
  probed(): void {
    this.#probes += 1;
  }

  /** A batch was not taken. */
  failing(cause: ExportError): void {
    this.#error = cause;
    this.#state = 'retrying';
  }

  /** Waits until the batch is sent again, as long as the far side asks for or ever longer. */
  async pause(cause: ExportError, stop: AbortSignal, afterMs?: number): Promise<void> {
    const { backOff, clock, log } = this.#deps;
    const waitMs = afterMs ?? backOff.next();
    this.#retries += 1;
    this.failing(cause);
    log.warn('sink_failed', 'the receiver did not accept a batch; sending again', {
      error: cause.message,
      next: cause.next,
      wait_ms: waitMs,
    });
    if (afterMs === undefined) {
      await this.#waitOrWake(waitMs, stop);
      return;
    }
    this.#retryAfterUntil = clock.now() + waitMs;
    await clock.sleep(waitMs, stop);
    this.#retryAfterUntil = null;
  }

  /**
   * Waits before the next probe of events that the receiver refuses. `arrival`: resolves when there
   * is another event to probe with; the wait then ends after its shortest time.
   */
  async suspend(
    cause: ExportError,
    stop: AbortSignal,
    arrival?: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { backOff, log, clock, retryMinMs } = this.#deps;
    const waitMs = backOff.next();
    this.#retries += 1;
    this.failing(cause);
    log.warn(
      'sink_accepts_nothing',
      'the receiver accepts no event; refused events wait for the next probe',
      {
        error: cause.message,
        next: cause.next,
        wait_ms: waitMs,
      },
    );
    const other =
      arrival &&
      (async (signal: AbortSignal) => {
        await clock.sleep(Math.min(retryMinMs, waitMs), signal);
        await arrival(signal);
      });
    await this.#waitOrWake(waitMs, stop, other);
  }

  /** Waits until it is over, an operator asks, or a secret of the settings has changed. */
  async #waitOrWake(
    ms: number,
    stop: AbortSignal,
    other?: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { clock, fingerprint } = this.#deps;
    const over = new AbortController();
    const either = AbortSignal.any([stop, over.signal]);
    this.#wake = () => over.abort(new Error('asked now'));
    try {
      await Promise.race([
        clock.sleep(ms, either),
        otherThan(this.#tried, this.#deps, either),
        ...(other === undefined ? [] : [other(either)]),
      ]);
    } catch (error) {
      if (stop.aborted) throw error;
    } finally {
      this.#wake = null;
      this.#tried = fingerprint();
      over.abort(new Error('waited'));
    }
  }

  /** The sink refuses everything: says so, and asks again much later; rights may be given. */
  async rest(cause: ExportError, stop: AbortSignal): Promise<void> {
    const { log, refusedWaitMs } = this.#deps;
    this.#state = 'refused';
    this.#error = cause;
    log.error('sink_refused', 'the receiver refuses everything; events stay in the spool', {
      error: cause.message,
      next: cause.next,
      wait_ms: refusedWaitMs,
    });
    await this.#waitOrWake(refusedWaitMs, stop);
  }
}
