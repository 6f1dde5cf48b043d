// The loop of one sink: the only place that decides what an answer means for its position. Two ways
// of sending:
//
//   one at a time   send -> answer -> position. The same batch is sent again until it is wholly settled.
//   pipelined       up to `inFlightMax` batches unanswered, for sinks whose answer takes its time (settling). The first
//                   answer that is not `delivered` ends the pipeline: what follows the position is cut and sent anew,
//                   one batch at a time until that place is passed.
//
// What must stay true: the position passes an event only when it was delivered, made a dead letter,
// or was not for this sink; answers count in spool order; the next batch is cut while the one
// before it is under way.

import { asExportError, ExportError } from '../contracts/errors.ts';
import type { Event, Offset } from '../contracts/event.ts';
import type { Batch, Delivery, Notice, Sink } from '../contracts/sink.ts';
import type { DeadLetter, Spool } from '../contracts/spool.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { otherThan } from '../tools/fingerprint.ts';
import { pickLines, subLines } from './encode.ts';
import type { Outlet } from './outlet.ts';
import { Position } from './position.ts';

/** What a sender works with. */
export interface SenderSettings {
  readonly name: string;
  readonly sink: Sink;
  readonly outlet: Outlet;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly log: Log;
  readonly position: Offset;
  readonly inFlightMax: number;
  /** How long to gather events before a batch is cut. */
  readonly waitMs: number;
  readonly backOff: { next(): number; reset(): void };
  /** Of the sink's settings, with its secrets as they are now. */
  readonly fingerprint: () => string;
  /** How long a sink that refuses everything is left alone before it is asked again. */
  readonly refusedWaitMs: number;
}

/** What status and metrics show of a sink. */
export interface SenderState {
  readonly state: 'idle' | 'sending' | 'retrying' | 'refused' | 'stopped';
  readonly position: Offset;
  readonly delivered: number;
  readonly deadLetters: number;
  readonly retries: number;
  readonly error: ExportError | null;
  /** What the sink says of its far side though events go there. */
  readonly notice: Notice | null;
}

/** The two ways to end a sender: take no further batch, and give up on what is under way. */
export interface StopSignals {
  readonly stop: AbortSignal;
  readonly kill: AbortSignal;
}

/**
 * Single refusals in a row, with nothing ever delivered, that are taken as a refusal by the whole
 * sink.
 */
const refusalsInARowMax = 10;

/** Sends what the spool holds to one sink, until stopped. */
export class Sender {
  readonly #settings: SenderSettings;
  readonly #position: Position;
  #state: SenderState['state'] = 'idle';
  #error: ExportError | null = null;
  #delivered = 0;
  #deadLetters = 0;
  #retries = 0;
  #older = false;
  /** Ends the wait under way. */
  #wake: (() => void) | null = null;
  /** Epoch milliseconds until which the far side has asked to wait. */
  #toldToWaitUntil: number | null = null;
  /** Until the position is here, batches go one at a time. */
  #carefulUntil: Offset = 0;

  constructor(settings: SenderSettings) {
    this.#settings = settings;
    this.#position = new Position(settings.name, settings.position, settings);
  }

  get state(): SenderState {
    const idle = this.#state === 'sending' && this.#position.at >= this.#settings.spool.gauge.end;
    return {
      state: idle ? 'idle' : this.#state,
      position: this.#position.at,
      delivered: this.#delivered,
      deadLetters: this.#deadLetters,
      retries: this.#retries,
      error: this.#error,
      notice: this.#older ? olderState : (this.#settings.sink.notice?.() ?? null),
    };
  }

  /**
   * Sends now rather than when the wait is over. Where the far side has asked for the wait that
   * stays, and its end is returned, epoch milliseconds.
   */
  askNow(): number | null {
    this.#settings.backOff.reset();
    this.#wake?.();
    return this.#toldToWaitUntil;
  }

  /**
   * Resolves after `stop`, when what was under way is settled or given up and the position is
   * durable.
   */
  async run(signals: StopSignals): Promise<void> {
    const { stop, kill } = signals;
    kill.addEventListener('abort', () => this.#position.abandon(), { once: true });
    try {
      await this.#adopt(signals);
      while (!stop.aborted) {
        if (this.#careful) await this.#oneAtATime(signals);
        else await this.#pipelined(signals);
      }
    } catch (error) {
      if (!stop.aborted) throw error;
    } finally {
      try {
        await this.#settings.sink.close();
      } finally {
        await this.#position.saved();
      }
      this.#state = 'stopped';
    }
  }

  get #careful(): boolean {
    return this.#settings.inFlightMax <= 1 || this.#position.at < this.#carefulUntil;
  }

  /**
   * The far side may be further than we know: its answer to the last batch can have been lost, or
   * the state is older.
   */
  async #adopt({ stop, kill }: StopSignals): Promise<void> {
    const { sink, name } = this.#settings;
    while (sink.committed !== undefined) {
      try {
        const reach = await sink.committed(kill);
        if (reach?.ahead) this.#tellOlder();
        if (reach !== null && reach.position > this.#position.at) {
          this.#position.advance(reach.position);
        }
        return;
      } catch (error) {
        if (stop.aborted) throw error;
        await this.#pause(asExportError(error, `asking ${name} how far it is`), stop);
      }
    }
  }

  #tellOlder(): void {
    if (this.#older) return;
    this.#older = true;
    const { what, next } = olderState;
    this.#settings.log.error(what, { code: 'state_older', next });
  }

  async #oneAtATime(signals: StopSignals): Promise<void> {
    let upcoming = this.#cut(this.#position.at, signals.stop);
    do {
      const batch = await upcoming;
      // Cut, and so parsed and encoded, while this batch is on its way.
      upcoming = this.#cut(batch.end, signals.stop);
      upcoming.catch(() => undefined);
      await this.#deliver(batch, signals);
    } while (this.#careful && !signals.stop.aborted);
  }

  async #pipelined({ stop, kill }: StopSignals): Promise<void> {
    const { sink, inFlightMax } = this.#settings;
    const broken = new AbortController();
    const halt = AbortSignal.any([stop, broken.signal]);
    let next = this.#position.at;
    let underWay = 0;
    let settled: Promise<void> = Promise.resolve();
    let room = Promise.withResolvers<void>();
    halt.addEventListener('abort', () => room.resolve(), { once: true });

    const settle = async (answer: Promise<Delivery>, end: Offset, count: number) => {
      const delivery = await answer.catch((error) => this.#unsent(error));
      underWay -= 1;
      room.resolve();
      if (broken.signal.aborted) return;
      if (delivery.outcome === 'delivered') {
        this.#succeeded(count);
        this.#position.advance(end);
        return;
      }
      this.#carefulUntil = end;
      if (delivery.outcome !== 'partly') this.#failed(delivery.cause);
      broken.abort();
    };

    try {
      while (!halt.aborted) {
        await sink.ready?.(halt);
        const batch = await this.#cut(next, halt);
        const { end } = batch;
        // Only its size is kept: a window of batches would else keep all their pages in memory.
        const count = batch.events.length;
        const answer = count === 0 ? deliveredNothing : sink.send(batch, kill);
        const earlier = settled;
        underWay += 1;
        settled = earlier.then(() => settle(answer, end, count));
        answer.catch(() => undefined);
        next = end;
        while (underWay >= inFlightMax && !halt.aborted) {
          room = Promise.withResolvers();
          await room.promise;
        }
      }
    } catch (error) {
      if (!halt.aborted) throw error;
    }
    // Closing settles what is still open, so it comes before the wait for the answers.
    if (stop.aborted) await sink.close();
    await settled;
  }

  /** Waits for events, gathers for a while, and cuts the batch that starts at `from`. */
  async #cut(from: Offset, stop: AbortSignal): Promise<Batch> {
    const { outlet, spool, clock, waitMs } = this.#settings;
    for (;;) {
      if (spool.gauge.end <= from) {
        await spool.arrival(from, stop);
        if (waitMs > 0) await clock.sleep(waitMs, stop);
      }
      const batch = await outlet.cut(from);
      if (batch !== null) return batch;
    }
  }

  /** Sends one batch until nothing of it is left to settle. */
  async #deliver(batch: Batch, signals: StopSignals): Promise<void> {
    const open: Batch[] = [batch];
    for (let part = open.pop(); part !== undefined; part = open.pop()) {
      if (part.events.length === 0) {
        this.#position.advance(part.end);
        continue;
      }
      const answer = await this.#send(part, signals);
      open.push(...(await this.#settle(part, answer, signals)));
    }
  }

  async #send(batch: Batch, { stop, kill }: StopSignals): Promise<Delivery> {
    stop.throwIfAborted();
    this.#state = this.#error === null ? 'sending' : this.#state;
    try {
      return await this.#settings.sink.send(batch, kill);
    } catch (error) {
      if (kill.aborted) throw error;
      return this.#unsent(error);
    }
  }

  #unsent(error: unknown): Delivery {
    return { outcome: 'retry', cause: asExportError(error, `sending to ${this.#settings.name}`) };
  }

  /** What one answer means. Returns the batches that are still to be sent, the next one last. */
  async #settle(batch: Batch, answer: Delivery, signals: StopSignals): Promise<readonly Batch[]> {
    switch (answer.outcome) {
      case 'delivered':
        this.#succeeded(batch.events.length);
        this.#position.advance(batch.end, answer.mark === undefined ? {} : { mark: answer.mark });
        return [];
      case 'partly':
        return this.#settlePartly(batch, answer, signals);
      case 'retry':
        await this.#pause(answer.cause, signals.stop, answer.afterMs);
        await this.#adopt(signals);
        return this.#position.at >= batch.end ? [] : [behind(batch, this.#position.at)];
      case 'refused':
        return this.#settleRefused(batch, answer, signals);
    }
  }

  async #settlePartly(
    batch: Batch,
    answer: Extract<Delivery, { outcome: 'partly' }>,
    { stop }: StopSignals,
  ): Promise<readonly Batch[]> {
    const reasons = new Map(answer.refused.map((refusal) => [refusal.uid, refusal.reason]));
    const again = new Set(answer.again);
    const letters = batch.events.flatMap((event) => {
      const reason = reasons.get(event.uid);
      return reason === undefined ? [] : [letterFor(event, reason)];
    });
    const rest = batch.events.flatMap((event, index) => (again.has(event.uid) ? [index] : []));
    const taken = batch.events.length - letters.length - rest.length;
    if (taken > 0) this.#succeeded(taken);
    // The letters are not met again, so they become durable now; the position waits for the rest.
    await this.#bury(letters, rest.length === 0 ? batch.end : this.#position.at);
    if (rest.length === 0) return [];
    if (taken === 0 && letters.length === 0)
      await this.#pause(nothingTaken(this.#settings.name), stop);
    return [
      {
        ...batch,
        // Another id, since an id stands for the same events at each attempt.
        id: `${batch.id}+${rest.length}`,
        events: rest.flatMap((index) => batch.events[index] ?? []),
        lines: batch.lines.length === 0 ? batch.lines : pickLines(batch.lines, rest),
      },
    ];
  }

  async #settleRefused(
    batch: Batch,
    answer: Extract<Delivery, { outcome: 'refused' }>,
    { stop }: StopSignals,
  ): Promise<readonly Batch[]> {
    const hopeless = this.#delivered === 0 && this.#deadLetters >= refusalsInARowMax;
    if (answer.scope === 'sink' || hopeless) {
      const cause =
        answer.scope === 'sink' ? answer.cause : takesNothing(answer.cause, this.#deadLetters);
      await this.#rest(cause, stop);
      return [batch];
    }
    const only = batch.events[0];
    if (batch.events.length === 1 && only !== undefined) {
      await this.#bury([letterFor(only, answer.cause.message)], batch.end);
      return [];
    }
    return halves(batch);
  }

  /**
   * Resolves when the letters are durable: the far side's own position must not pass one that is
   * not.
   */
  async #bury(letters: readonly DeadLetter[], position: Offset): Promise<void> {
    this.#deadLetters += letters.length;
    for (const letter of letters) {
      this.#settings.log.warn('the sink refused an event for good; it is kept as a dead letter', {
        uid: letter.uid,
        stream: letter.context.stream,
        reason: letter.reason,
      });
    }
    this.#position.advance(position, { deadLetters: letters });
    if (letters.length > 0) await this.#position.saved();
  }

  #succeeded(count: number): void {
    this.#delivered += count;
    if (this.#error !== null) this.#settings.log.info('the sink takes events again');
    this.#error = null;
    this.#state = 'sending';
    this.#settings.backOff.reset();
  }

  #failed(cause: ExportError): void {
    this.#retries += 1;
    this.#error = cause;
    this.#state = 'retrying';
  }

  async #pause(cause: ExportError, stop: AbortSignal, afterMs?: number): Promise<void> {
    const { backOff, clock, log } = this.#settings;
    const waitMs = afterMs ?? backOff.next();
    this.#failed(cause);
    log.warn('the sink did not take a batch; it is sent again', {
      error: cause.message,
      next: cause.next,
      wait_ms: waitMs,
    });
    if (afterMs === undefined) {
      await this.#waitOrWake(waitMs, stop);
      return;
    }
    this.#toldToWaitUntil = clock.now() + waitMs;
    await clock.sleep(waitMs, stop);
    this.#toldToWaitUntil = null;
  }

  /**
   * Waits until it is over, an operator asks, or a secret of the sink's settings is another one.
   */
  async #waitOrWake(ms: number, stop: AbortSignal): Promise<void> {
    const { clock, fingerprint } = this.#settings;
    const over = new AbortController();
    const either = AbortSignal.any([stop, over.signal]);
    this.#wake = () => over.abort(new Error('asked now'));
    try {
      await Promise.race([
        clock.sleep(ms, either),
        otherThan(fingerprint(), this.#settings, either),
      ]);
    } catch (error) {
      if (stop.aborted) throw error;
    } finally {
      this.#wake = null;
      over.abort(new Error('waited'));
    }
  }

  /**
   * The sink refuses everything: says so, and asks again after a long while, since a credential may
   * be mended.
   */
  async #rest(cause: ExportError, stop: AbortSignal): Promise<void> {
    const { log, refusedWaitMs } = this.#settings;
    this.#state = 'refused';
    this.#error = cause;
    log.error('the sink refuses everything; its events stay held', {
      error: cause.message,
      next: cause.next,
      wait_ms: refusedWaitMs,
    });
    await this.#waitOrWake(refusedWaitMs, stop);
  }
}

/** Told while the process runs that has found it. */
const olderState: Notice = {
  what: 'its far side has more than the state knows of: the state is older than what was delivered (state_older)',
  next: 'Nothing is lost or cut: reading goes on at the older place, and what stands there is left out when it comes again. Look why the state is older; sinks that cannot look get it once more, with the same uid.',
};

const deliveredNothing: Promise<Delivery> = Promise.resolve({ outcome: 'delivered' });

function letterFor(event: Event, reason: string): DeadLetter {
  return {
    uid: event.uid,
    offset: event.offset,
    reason,
    context: event.context,
    // A copy: the record's bytes are part of its page, all of which would else go with it.
    record: new Uint8Array(event.raw),
  };
}

/** A batch in two, the first half last, so that order is kept when they are taken from the end. */
function halves(batch: Batch): readonly Batch[] {
  const middle = batch.events.length >> 1;
  const border = batch.events[middle]?.offset ?? batch.end;
  return [
    partOf(batch, { from: middle, to: batch.events.length, start: border, end: batch.end }),
    partOf(batch, { from: 0, to: middle, start: batch.start, end: border }),
  ];
}

/** What a batch has at and after `start`. */
function behind(batch: Batch, start: Offset): Batch {
  if (start <= batch.start) return batch;
  const from = batch.events.findIndex(({ offset }) => offset >= start);
  const to = batch.events.length;
  return partOf(batch, { from: from < 0 ? to : from, to, start, end: batch.end });
}

interface Part {
  readonly from: number;
  readonly to: number;
  readonly start: Offset;
  readonly end: Offset;
}

function partOf(batch: Batch, { from, to, start, end }: Part): Batch {
  return {
    id: `${batch.id}/${start}-${end}`,
    events: batch.events.slice(from, to),
    lines: batch.lines.length === 0 ? batch.lines : subLines(batch.lines, from, to),
    start,
    end,
  };
}

/** A sink that has refused event after event: what it said of the last one stands for all. */
function takesNothing(said: ExportError, refused: number): ExportError {
  return new ExportError('sink_refused', said.message, {
    next: `It has taken no event since sluice began: compare the sink’s format and address with what the receiver expects. It is tried again by itself; the events stay held, and the ${refused} that it refused are its dead letters.`,
    details: said.details,
    cause: said,
  });
}

function nothingTaken(sink: string): ExportError {
  return new ExportError('sink_unreachable', `sending to ${sink}: nothing of a batch was taken`, {
    next: 'It is sent again by itself; nothing is lost.',
  });
}
