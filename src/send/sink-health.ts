// A sink's health: its state, its counts, and its wait after a response other than a delivery. A
// wait that the receiver requests is kept; any other ends early on an operator's request or a
// repaired secret.

import type { Clock, ExportError, Log } from '../contracts/index.ts';
import { otherThan } from '../tools/index.ts';

/** How a sender ends. `stop`: send no further batch; `kill`: abandon the batches in flight. */
export interface StopSignals {
  readonly stop: AbortSignal;
  readonly kill: AbortSignal;
}

/** Dependencies of waits. */
export interface HealthDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly backOff: { next(): number; reset(): void };
  /** Of the sink's settings with the current secrets. */
  readonly fingerprint: () => string;
  /** Runs the commands behind the secrets again, for a receiver that refuses; default: none. */
  readonly refresh?: () => Promise<void>;
  /** Wait before the next attempt at a sink that rejects everything. */
  readonly refusedWaitMs: number;
  /** Minimum wait before a repeated send. */
  readonly retryMinMs: number;
}

/** The health of one sink. */
export class SinkHealth {
  readonly #deps: HealthDeps;
  #state: 'idle' | 'sending' | 'retrying' | 'refused' | 'stopped' = 'idle';
  #error: ExportError | null = null;
  #delivered = 0;
  #deadLetters = 0;
  #retries = 0;
  /** Consecutive probes in which the receiver rejected every event. */
  #probes = 0;
  /** Ends the current wait. */
  #wake: (() => void) | null = null;
  /** Epoch milliseconds until which the receiver requested to wait. */
  #retryAfterUntil: number | null = null;
  /** Taken before the rejected batch was sent: a secret repaired since then differs. */
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
   * Ends the wait and sends now. If the receiver requested the wait, it stays, and its end is
   * returned in epoch milliseconds.
   */
  retryNow(): number | null {
    this.#deps.backOff.reset();
    this.#wake?.();
    return this.#retryAfterUntil;
  }

  /** A batch is in flight. */
  begun(): void {
    if (this.#error === null) this.#state = 'sending';
  }

  /** The sink has stopped. */
  ended(): void {
    this.#state = 'stopped';
  }

  /** Events have become dead letters. */
  buried(count: number): void {
    this.#deadLetters += count;
  }

  /** Events were accepted. */
  succeeded(count: number): void {
    this.#delivered += count;
    if (this.#error !== null)
      this.#deps.log.info('sink_recovered', 'the receiver accepts events again');
    this.#error = null;
    this.#probes = 0;
    this.#state = 'sending';
    this.#deps.backOff.reset();
  }

  /** A probe has ended, and the receiver rejected every event. */
  probed(): void {
    this.#probes += 1;
  }

  /** A batch was not accepted. */
  failing(cause: ExportError): void {
    this.#error = cause;
    this.#state = 'retrying';
  }

  /**
   * Waits before the batch is sent again: as long as the receiver requests, or with growing
   * back-off.
   */
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
      await this.#waitOrWake(waitMs, stop, { refuses: cause.code === 'sink_refused' });
      return;
    }
    this.#retryAfterUntil = clock.now() + waitMs;
    await clock.sleep(waitMs, stop);
    this.#retryAfterUntil = null;
  }

  /**
   * Waits before the next probe of rejected events. `arrival`: resolves when there is another event
   * to probe with; the wait then ends after its minimum.
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
    await this.#waitOrWake(waitMs, stop, { refuses: true, other });
  }

  /**
   * Waits until the time is over, an operator requests a retry, or a secret of the settings has
   * changed.
   */
  async #waitOrWake(
    ms: number,
    stop: AbortSignal,
    {
      refuses = false,
      other,
    }: {
      readonly refuses?: boolean;
      readonly other?: ((signal: AbortSignal) => Promise<void>) | undefined;
    } = {},
  ): Promise<void> {
    const { clock, fingerprint, refresh = async () => undefined } = this.#deps;
    const over = new AbortController();
    const either = AbortSignal.any([stop, over.signal]);
    this.#wake = () => over.abort(new Error('retried now'));
    try {
      await Promise.race([
        clock.sleep(ms, either),
        otherThan(this.#tried, { clock, fingerprint, ...(refuses && { refresh }) }, either),
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

  /**
   * The sink rejects everything: reports it and retries much later, because permissions may be
   * granted.
   */
  async rest(cause: ExportError, stop: AbortSignal): Promise<void> {
    const { log, refusedWaitMs } = this.#deps;
    this.#state = 'refused';
    this.#error = cause;
    log.error('sink_refused', 'the receiver refuses everything; events stay in the spool', {
      error: cause.message,
      next: cause.next,
      wait_ms: refusedWaitMs,
    });
    await this.#waitOrWake(refusedWaitMs, stop, { refuses: true });
  }
}
