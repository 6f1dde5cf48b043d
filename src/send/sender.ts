// The loop of one sink: cut a batch, send it, settle its acknowledgement (settlement.ts). There are
// two ways of sending:
//
//   one at a time   send -> acknowledgement -> position. The same batch is sent again until every event is settled.
//   pipelined       up to `inFlightMax` batches in flight, for sinks with slow acknowledgements (settling). The first
//                   one other than `delivered` ends the pipeline: its batch is cut again and settled by itself.
//                   Acknowledgements of later batches are kept, and only the other batches are sent again.
//
// Invariants: the position passes an event only when it was delivered, made a dead letter, or was
// not for this sink; acknowledgements count in spool order; the next batch is cut while the one
// before it is in flight.

import { setImmediate as immediate } from 'node:timers/promises';
import {
  asExportError,
  type Batch,
  type Delivery,
  type ExportError,
  type Notice,
  type Offset,
  type SendSpool,
  type Sink,
} from '../contracts/index.ts';
import { type AsideFacts, Lanes } from './lanes.ts';
import type { Outlet } from './outlet.ts';
import { type BatchPart, isEmpty, splitPart, wholePart } from './parts.ts';
import { Position } from './position.ts';
import { Settlement, type Suspects } from './settlement.ts';
import { type HealthDeps, SinkHealth, type StopSignals } from './sink-health.ts';

/** Dependencies of a sender. */
export interface SenderSettings extends HealthDeps {
  readonly name: string;
  readonly sink: Sink;
  readonly outlet: Outlet;
  readonly spool: SendSpool;
  readonly position: Offset;
  readonly inFlightMax: number;
  /** How long events are gathered before a batch is cut. */
  readonly waitMs: number;
}

/** A sink's state for status and metrics. */
export interface SenderState {
  readonly state: 'idle' | 'sending' | 'retrying' | 'refused' | 'stopped';
  readonly position: Offset;
  readonly delivered: number;
  readonly deadLetters: number;
  readonly retries: number;
  readonly error: ExportError | null;
  /** Offset up to which it was sent, settled or not. */
  readonly sent: Offset;
  /**
   * Milliseconds until the sink completes written events on purpose; null: nothing waits for that.
   */
  readonly dueInMs: number | null;
  /** The sink's notice about its destination although it accepts events. */
  readonly notice: Notice | null;
  /** Events that the receiver rejects while it accepts none; null: none. */
  readonly suspects: Suspects | null;
  /** Destinations at fault, whose events are set aside while others are delivered. */
  readonly setAside: readonly AsideFacts[];
  /** One of them may accept events soon. */
  readonly waitsAside: boolean;
}

/** A sink's state as stored for other processes. */
export function sinkFacts({
  state,
  position,
  delivered,
  deadLetters,
  retries,
  ...of
}: SenderState) {
  const { error, notice, suspects, setAside } = of;
  const cause = error && { code: error.code, message: error.message, next: error.next };
  const counts = { position, delivered, deadLetters, retries };
  return {
    ...{ state, ...counts, error: cause, notice: notice && { ...notice } },
    set_aside: setAside.map((one) => ({ ...one })),
    suspects: suspects && { ...suspects, first: suspects.first.map((one) => ({ ...one })) },
  };
}

/**
 * A batch in a pipeline. Not the batch itself: a window of them would keep all their pages in
 * memory.
 */
interface Sent {
  readonly start: Offset;
  readonly end: Offset;
  /** Number of events. */
  readonly count: number;
  readonly answer: Promise<Delivery>;
}

/** Sends the spool's events to one sink, until stopped. */
export class Sender {
  readonly #settings: SenderSettings;
  readonly #position: Position;
  readonly #health: SinkHealth;
  readonly #settlement: Settlement;
  readonly #lanes: Lanes;
  /**
   * Batches of the previous pipeline, in spool order: accepted by the receiver after a batch that
   * was not.
   */
  #kept: readonly Sent[] = [];
  /** Of a pipeline: offset up to which it was sent. */
  #sent: Offset = 0;
  /** No stream reads any more. */
  #isFinishing = false;
  /** The last request outside of a pipeline. */
  #request: Promise<unknown> = Promise.resolve();
  /** Ends the wait for the next probe of a destination at fault. */
  #wakeLanes: (() => void) | null = null;

  constructor(settings: SenderSettings) {
    this.#settings = settings;
    this.#position = new Position(settings.name, settings.position, settings);
    this.#health = new SinkHealth(settings);
    const send = (batch: Batch, signals: StopSignals) => this.#send(batch, signals);
    const { aside } = settings.spool;
    this.#lanes = new Lanes({ ...settings, aside, health: this.#health, send });
    this.#settlement = new Settlement({
      ...settings,
      lanes: this.#lanes,
      position: this.#position,
      health: this.#health,
      send,
      isKept: (offset) => this.#kept.some(({ start, end }) => start <= offset && offset < end),
      quiet: async () => {
        await this.#request;
        await immediate();
      },
    });
  }

  get state(): SenderState {
    const { at } = this.#position;
    const { state, probes: _, ...counts } = this.#health.state;
    return {
      state: state === 'sending' && at >= this.#settings.spool.gauge.end ? 'idle' : state,
      position: at,
      ...counts,
      sent: Math.max(at, this.#sent),
      dueInMs: this.#settings.sink.dueInMs?.() ?? null,
      notice: this.#settlement.notice ?? this.#settings.sink.notice?.() ?? null,
      suspects: this.#settlement.suspects,
      setAside: this.#lanes.facts,
      waitsAside: !this.#lanes.isEmpty && !this.#lanes.isStuck,
    };
  }

  /** Sends now, as `retryNow` of SinkHealth. */
  retryNow(): number | null {
    this.#lanes.retryNow();
    this.#wakeLanes?.();
    return this.#health.retryNow();
  }

  /** Makes dead letters of suspects, all or those with these uids; resolves with their number when they are durable. */
  async giveUp(uids: readonly string[] | null): Promise<number> {
    return (await this.#settlement.giveUp(uids)) + (await this.#lanes.giveUp(uids));
  }

  /**
   * No stream reads any more: the sink completes the events that it would complete with later ones.
   */
  finish(): void {
    this.#isFinishing = true;
    this.#settings.sink.flush?.();
  }

  /**
   * Resolves after `stop`, when everything in flight is settled or abandoned and the position is
   * durable.
   */
  async run(signals: StopSignals): Promise<void> {
    const { stop, kill } = signals;
    kill.addEventListener('abort', () => this.#position.abandon(), { once: true });
    try {
      await this.#settlement.adopt(signals);
      await this.#settlement.load();
      await this.#lanes.load();
      const pipelined = this.#settings.inFlightMax > 1;
      while (!stop.aborted)
        await (pipelined ? this.#pipelined(signals) : this.#oneAtATime(signals));
    } catch (error) {
      if (stop.aborted) return;
      // The run ends with this error, such as a failed spool, which accepts no position any more.
      this.#position.abandon();
      throw error;
    } finally {
      try {
        await this.#settings.sink.close();
      } finally {
        await this.#position.saved();
      }
      this.#health.ended();
    }
  }

  async #oneAtATime(signals: StopSignals): Promise<void> {
    let upcoming = this.#cut(this.#position.at, signals.stop);
    await this.#workLanesUntil(upcoming, signals);
    while (!signals.stop.aborted) {
      const batch = await upcoming;
      // Cut, and so parsed and encoded, while this batch is in flight.
      upcoming = this.#cut(batch.end, signals.stop);
      upcoming.catch(() => undefined);
      await this.#deliver([wholePart(batch)], signals);
      await this.#workLanesUntil(upcoming, signals);
    }
  }

  /**
   * Works on destinations at fault until the next batch is ready; at least one step of each due
   * one.
   */
  async #workLanesUntil(upcoming: Promise<unknown>, signals: StopSignals): Promise<void> {
    let isThere = false;
    const there = upcoming.then(
      () => {
        isThere = true;
      },
      () => {
        isThere = true;
      },
    );
    while (!signals.stop.aborted && !this.#lanes.isEmpty) {
      await this.#lanes.work(signals);
      await Promise.race([there, this.#lanesDue(signals.stop)]);
      if (isThere) return;
    }
  }

  /** Resolves when a destination at fault must be probed, or when stopped. */
  async #lanesDue(stop: AbortSignal): Promise<void> {
    const dueInMs = this.#lanes.dueInMs;
    const over = new AbortController();
    const either = AbortSignal.any([stop, over.signal]);
    this.#wakeLanes = () => over.abort();
    if (dueInMs === null) return;
    await this.#settings.clock.sleep(dueInMs, either).catch(() => undefined);
    this.#wakeLanes = null;
  }

  async #pipelined(signals: StopSignals): Promise<void> {
    const { stop, kill } = signals;
    const { sink, inFlightMax } = this.#settings;
    const broken = new AbortController();
    const halt = AbortSignal.any([stop, broken.signal]);
    const kept: Sent[] = [];
    let failed: { readonly sent: Sent; readonly said: Delivery } | null = null;
    let next = this.#position.at;
    let underWay = 0;
    let settled: Promise<void> = Promise.resolve();
    let room = Promise.withResolvers<void>();
    halt.addEventListener('abort', () => room.resolve(), { once: true });
    // A pipeline ends when a destination at fault must be probed.
    if (!this.#lanes.isEmpty)
      void this.#lanesDue(halt).then(() => broken.abort(new Error('a destination is due')));

    const settle = async (sent: Sent) => {
      const said = await sent.answer.catch((error) => this.#unsent(error));
      underWay -= 1;
      room.resolve();
      if (broken.signal.aborted) {
        if (said.outcome === 'delivered' || said.outcome === 'partly') kept.push(sent);
      } else if (said.outcome === 'delivered') {
        this.#health.succeeded(sent.count);
        this.#position.advance(sent.end);
      } else {
        failed = { sent, said };
        if (said.outcome !== 'partly') this.#health.failing(said.cause);
        broken.abort();
      }
    };

    try {
      while (!halt.aborted) {
        const sent = this.#keptAt(next) ?? (await this.#sendFrom(next, halt, kill));
        const earlier = settled;
        underWay += 1;
        settled = earlier.then(() => settle(sent));
        next = sent.end;
        this.#sent = next;
        while (underWay >= inFlightMax && !halt.aborted) {
          room = Promise.withResolvers();
          if (this.#isFinishing) sink.flush?.();
          await room.promise;
        }
      }
    } catch (error) {
      if (!halt.aborted) throw error;
    }
    this.#sent = 0;
    // Closing settles the open batches, so it precedes the wait for their acknowledgements.
    if (stop.aborted) await sink.close();
    await settled;
    this.#kept = [...kept, ...this.#kept];
    if (!stop.aborted) await this.#lanes.work(signals);
    if (failed !== null) await this.#settleByItself(failed, signals);
  }

  /** The batch that the receiver has already accepted from there; removes it and all before it. */
  #keptAt(place: Offset): Sent | null {
    this.#kept = this.#kept.filter(({ end }) => end > place);
    const [first, ...rest] = this.#kept;
    if (first === undefined || first.start > place) return null;
    this.#kept = rest;
    return first;
  }

  async #sendFrom(start: Offset, halt: AbortSignal, kill: AbortSignal): Promise<Sent> {
    const { sink, outlet } = this.#settings;
    await sink.ready?.(halt);
    const cut = await this.#cut(start, halt, this.#kept[0]?.start);
    const { batch } = await this.#settlement.prepare(wholePart(cut));
    // A batch as it was cut is cut again for another attempt.
    const freeLines = batch === cut ? outlet.releaseOf(cut) : undefined;
    const answer = isEmpty(batch) ? deliveredNothing : sink.send(batch, kill, freeLines);
    answer.catch(() => undefined);
    return { start, end: batch.end, count: batch.events.length, answer };
  }

  /** Settles the batch whose acknowledgement has ended the pipeline. */
  async #settleByItself(
    { sent, said }: { readonly sent: Sent; readonly said: Delivery },
    signals: StopSignals,
  ): Promise<void> {
    signals.stop.throwIfAborted();
    const batch = await this.#cut(this.#position.at, signals.stop, sent.end);
    const part = wholePart(batch);
    // A broken connection often works again at once: only a repeated failure waits.
    const answer = said.outcome === 'retry' ? { afterMs: 0, ...said } : said;
    await this.#deliver(await this.#settlement.settle(part, answer, signals), signals);
  }

  /** Waits for events, gathers for a while, and cuts the batch from `from` up to before `until`. */
  async #cut(from: Offset, stop: AbortSignal, until?: Offset): Promise<Batch> {
    const { outlet, spool, clock, waitMs, sink } = this.#settings;
    for (;;) {
      if (spool.gauge.end <= from) {
        if (this.#isFinishing) sink.flush?.();
        await spool.arrival(from, stop);
        if (waitMs > 0) await clock.sleep(waitMs, stop);
      }
      const batch = await outlet.cut(from, until);
      if (batch !== null) return batch;
    }
  }

  /** Sends parts, the first one last, until all of them are settled. */
  async #deliver(parts: readonly BatchPart[], signals: StopSignals): Promise<void> {
    const open = [...parts];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const part = await this.#settlement.prepare(next);
      if (isEmpty(part.batch)) {
        this.#settlement.passed(part.batch.end);
      } else if (part.isGuilty && part.batch.events.length > 1) {
        open.push(...splitPart(part, part.since ?? 0));
      } else {
        const answer = await this.#send(part.batch, signals);
        open.push(...(await this.#settlement.settle(part, answer, signals)));
        const isFirst = part.attempt.requests === 1;
        if (isFirst && answer.outcome === 'delivered') this.#release(part.batch);
      }
    }
    await this.#settlement.conclude();
  }

  /** The first attempt has delivered this batch, so the engine reads it no more. */
  #release(batch: Batch): void {
    const { sink, outlet } = this.#settings;
    if (sink.isDoneOnceDelivered === true) outlet.releaseOf(batch)();
  }

  async #send(batch: Batch, { stop, kill }: StopSignals): Promise<Delivery> {
    const { sink } = this.#settings;
    stop.throwIfAborted();
    this.#health.begun();
    this.#settlement.begin();
    try {
      const answer = sink.send(batch, kill);
      this.#request = answer.catch(() => undefined);
      sink.flush?.();
      return await answer;
    } catch (error) {
      if (kill.aborted) throw error;
      return this.#unsent(error);
    }
  }

  #unsent(error: unknown): Delivery {
    return { outcome: 'retry', cause: asExportError(error, `sending to ${this.#settings.name}`) };
  }
}

const deliveredNothing: Promise<Delivery> = Promise.resolve({ outcome: 'delivered' });
