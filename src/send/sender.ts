// The loop of one sink: cut a batch, send it, have its answer settled (settlement.ts). Two ways of
// sending:
//
//   one at a time   send -> answer -> position. The same batch is sent again until it is wholly settled.
//   pipelined       up to `inFlightMax` batches unanswered, for sinks whose answer takes its time (settling). The first
//                   answer that is not `delivered` ends the pipeline: its batch is cut anew and settled by itself. What
//                   was said meanwhile of those behind it is kept, and only the others are sent again.
//
// What must stay true: the position passes an event only when it was delivered, made a dead letter,
// or was not for this sink; answers count in spool order; the next batch is cut while the one
// before it is under way.

import { asExportError, type ExportError } from '../contracts/errors.ts';
import type { Offset } from '../contracts/event.ts';
import type { Batch, Delivery, Notice, Sink } from '../contracts/sink.ts';
import type { SendSpool } from '../contracts/spool.ts';
import { isEmpty } from './batch-parts.ts';
import { type AsideFacts, Lanes } from './lanes.ts';
import type { Outlet } from './outlet.ts';
import { type BatchPart, splitPart, wholePart } from './parts.ts';
import { Position } from './position.ts';
import { Settlement, type Suspects } from './settlement.ts';
import { type HealthDeps, SinkHealth } from './sink-health.ts';
import type { StopSignals } from './stop-signals.ts';

/** What a sender works with. */
export interface SenderSettings extends HealthDeps {
  readonly name: string;
  readonly sink: Sink;
  readonly outlet: Outlet;
  readonly spool: SendSpool;
  readonly position: Offset;
  readonly inFlightMax: number;
  /** How long to gather events before a batch is cut. */
  readonly waitMs: number;
}

/** What status and metrics show of a sink. */
export interface SenderState {
  readonly state: 'idle' | 'sending' | 'retrying' | 'refused' | 'stopped';
  readonly position: Offset;
  readonly delivered: number;
  readonly deadLetters: number;
  readonly retries: number;
  readonly error: ExportError | null;
  /** Up to where it was sent, settled or not. */
  readonly sent: Offset;
  /** Milliseconds until the sink finishes what was sent, by intent; null: it waits for nothing. */
  readonly dueInMs: number | null;
  /** What the sink says of its far side though events go there. */
  readonly notice: Notice | null;
  /** Events that the receiver refuses while it accepts none; null: there are none. */
  readonly suspects: Suspects | null;
  /** Destinations at fault, for which events are set aside while others are delivered. */
  readonly setAside: readonly AsideFacts[];
  /** One of them may accept events soon. */
  readonly waitsAside: boolean;
}

/** How a sink stands, as it is noted for whoever looks from elsewhere. */
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

/** A batch of a pipeline. Not the batch itself: a window of them would keep all their pages. */
interface Sent {
  readonly start: Offset;
  readonly end: Offset;
  /** Of events. */
  readonly count: number;
  readonly answer: Promise<Delivery>;
}

/** Sends what the spool holds to one sink, until stopped. */
export class Sender {
  readonly #settings: SenderSettings;
  readonly #position: Position;
  readonly #health: SinkHealth;
  readonly #settlement: Settlement;
  readonly #lanes: Lanes;
  /** Of the pipeline before, in spool order: taken by the far side, behind what it did not take. */
  #kept: readonly Sent[] = [];
  /** Of a pipeline: up to where it was sent. */
  #sent: Offset = 0;
  /** Nothing is read any more. */
  #isFinishing = false;
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

  /** Sends now, as SinkHealth says. */
  askNow(): number | null {
    this.#lanes.askNow();
    this.#wakeLanes?.();
    return this.#health.askNow();
  }

  /** Makes dead letters of suspects, of all or of those with these uids; returns how many. */
  async giveUp(uids: readonly string[] | null): Promise<number> {
    return this.#settlement.giveUp(uids).length + (await this.#lanes.giveUp(uids));
  }

  /** Nothing is read any more: what the sink would finish together with what comes later is due. */
  finish(): void {
    this.#isFinishing = true;
    this.#settings.sink.flush?.();
  }

  /** Resolves after `stop`, when all under way is settled or given up and the position durable. */
  async run(signals: StopSignals): Promise<void> {
    const { stop, kill } = signals;
    kill.addEventListener('abort', () => this.#position.abandon(), { once: true });
    try {
      await this.#settlement.adopt(signals);
      await this.#lanes.load();
      const pipelined = this.#settings.inFlightMax > 1;
      while (!stop.aborted)
        await (pipelined ? this.#pipelined(signals) : this.#oneAtATime(signals));
    } catch (error) {
      if (stop.aborted) return;
      // The run ends by this, as where the spool has failed: it takes no position any more either.
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
      // Cut, and so parsed and encoded, while this batch is on its way.
      upcoming = this.#cut(batch.end, signals.stop);
      upcoming.catch(() => undefined);
      await this.#deliver([wholePart(batch)], signals);
      await this.#workLanesUntil(upcoming, signals);
    }
  }

  /** Works on destinations at fault until the next batch is there; at least one step of each due. */
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

  /** Resolves when a destination at fault is to be probed, or when stopped. */
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
    // A pipeline ends when a destination at fault is to be probed.
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
    // Closing settles what is still open, so it comes before the wait for the answers.
    if (stop.aborted) await sink.close();
    await settled;
    this.#kept = [...kept, ...this.#kept];
    if (!stop.aborted) await this.#lanes.work(signals);
    if (failed !== null) await this.#settleAnew(failed, signals);
  }

  /** What the far side has taken there already; it is kept no more. */
  #keptAt(place: Offset): Sent | null {
    this.#kept = this.#kept.filter(({ end }) => end > place);
    const [first, ...rest] = this.#kept;
    if (first === undefined || first.start > place) return null;
    this.#kept = rest;
    return first;
  }

  async #sendFrom(start: Offset, halt: AbortSignal, kill: AbortSignal): Promise<Sent> {
    const { sink } = this.#settings;
    await sink.ready?.(halt);
    const cut = await this.#cut(start, halt, this.#kept[0]?.start);
    const { batch } = await this.#settlement.prepare(wholePart(cut));
    const answer = isEmpty(batch) ? deliveredNothing : sink.send(batch, kill);
    answer.catch(() => undefined);
    return { start, end: batch.end, count: batch.events.length, answer };
  }

  /** Settles by itself the batch whose answer has ended the pipeline. */
  async #settleAnew(
    { sent, said }: { readonly sent: Sent; readonly said: Delivery },
    signals: StopSignals,
  ): Promise<void> {
    signals.stop.throwIfAborted();
    const batch = await this.#cut(this.#position.at, signals.stop, sent.end);
    const part = wholePart(batch);
    // A connection that broke is often there again at once: only what fails anew has a wait before it.
    const answer = said.outcome === 'retry' ? { afterMs: 0, ...said } : said;
    await this.#deliver(await this.#settlement.settle(part, answer, signals), signals);
  }

  /**
   * Waits for events, gathers for a while, and cuts the batch that starts at `from`, with nothing
   * from `until` on.
   */
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

  /** Sends parts, the first one last, until nothing of them is left to settle. */
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
      }
    }
    await this.#settlement.conclude();
  }

  async #send(batch: Batch, { stop, kill }: StopSignals): Promise<Delivery> {
    const { sink } = this.#settings;
    stop.throwIfAborted();
    this.#health.begun();
    this.#settlement.begin();
    try {
      const answer = sink.send(batch, kill);
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
