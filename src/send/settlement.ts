// The meaning of a receiver's response for a sink's position, and the part of the batch to send
// again. Invariants: the position passes an event only when it was delivered or made a dead letter;
// a permanently rejected event is isolated without losing its neighbours.

import {
  type AsideEvent,
  asExportError,
  type Batch,
  type DeadLetter,
  type Delivery,
  type Event,
  ExportError,
  type Notice,
  type Offset,
  type Refusal,
  type SettledEvent,
  type Uid,
  type Verdict,
} from '../contracts/index.ts';
import { Evidence, type Suspect } from './evidence.ts';
import { GivenUp } from './given-up.ts';
import type { Lanes } from './lanes.ts';
import {
  alone,
  type BatchPart,
  batchFrom,
  picked,
  remainingPart,
  spareRequests,
  splitPart,
} from './parts.ts';
import type { Position } from './position.ts';
import type { SinkHealth, StopSignals } from './sink-health.ts';
import { probesUntilStuck, probeUntilSettled, type TrialDeps } from './trial.ts';

/** A rejected event that is not known to be to blame. */
interface Refused {
  readonly event: Event;
  readonly reason: string;
  readonly by: Verdict;
}

/** An event whose dead letter waits for the next acknowledgement. */
interface Pending extends Refused {
  readonly part: BatchPart;
  /** The position after the dead letter. */
  readonly end: Offset;
}

/** Dependencies of settlement. */
export interface SettlementDeps
  extends Omit<
    TrialDeps,
    'isSettled' | 'delivered' | 'hasPassed' | 'isGivenUp' | 'evidence' | 'health' | 'canSetAside'
  > {
  readonly position: Position;
  readonly health: SinkHealth;
  readonly lanes: Lanes;
  /**
   * True for an event that the receiver has accepted in a pipeline, after others that it has not.
   */
  readonly isKept: (offset: Offset) => boolean;
  /** Resolves when no request is under way and the answer of the last one has been settled. */
  readonly quiet: () => Promise<void>;
}

/** Events that wait because the receiver rejects them and accepts none. */
export interface Suspects {
  /** All events of a rejected batch; at least `refused`. */
  readonly events: number;
  /** Number of events rejected alone. */
  readonly refused: number;
  /** Several probes have found nothing that the receiver accepts. */
  readonly stuck: boolean;
  /** The first ones rejected alone, in spool order. */
  readonly first: readonly Pick<Suspect, 'uid' | 'stream' | 'reason'>[];
}

/** Maximum suspects listed by name; there may be a whole batch. */
const namedMax = 20;

/** Settles the batches of one sink. */
export class Settlement {
  readonly #deps: SettlementDeps;
  readonly #position: Position;
  readonly #health: SinkHealth;
  readonly #evidence: Evidence;
  /** Settled out of order and after the position, with their uids. */
  readonly #ahead = new Map<Offset, Uid>();
  readonly #givenUp: GivenUp;
  /** Events of the batch on trial. */
  #onTrial: readonly Event[] = [];
  /** Rejected alone after another event was accepted: to blame if the next one is accepted. */
  #pending: Pending | null = null;
  #older = false;

  constructor(deps: SettlementDeps) {
    this.#deps = deps;
    this.#position = deps.position;
    this.#health = deps.health;
    const { sink } = deps;
    this.#evidence = new Evidence(sink.destinationOf?.bind(sink));
    this.#givenUp = new GivenUp({ ...deps, bury: (events) => this.#buryGiven(events) });
  }

  /** Null: no event is suspected. */
  get suspects(): Suspects | null {
    const refused = this.#evidence.suspects;
    if (this.#onTrial.length === 0) return null;
    const open = [...this.#onTrial, ...refused].filter((event) => !this.#isSettled(event));
    const events = new Set(open.map(({ offset }) => offset)).size;
    if (events === 0) return null;
    const first = refused
      .slice(0, namedMax)
      .map(({ uid, stream, reason }) => ({ uid, stream, reason }));
    const stuck = this.#health.state.probes >= probesUntilStuck;
    return { events, refused: refused.length, stuck, first };
  }

  /** A request is about to be sent. */
  begin(): void {
    this.#evidence.begin();
  }

  /** Makes dead letters of suspects, all or those with these uids; resolves with their number when they are durable. */
  async giveUp(uids: readonly string[] | null): Promise<number> {
    if (this.#onTrial.length === 0) return 0;
    const onTrial = this.#onTrial.map((event) => ({ event, offset: event.offset, uid: event.uid }));
    const all = [...this.#evidence.suspects, ...onTrial].filter(
      (one) => one.offset >= this.#position.at && !this.#isDone(one),
    );
    const chosen = all.filter(({ uid }) => uids === null || uids.includes(uid));
    const given = this.#givenUp.move([...new Map(chosen.map((one) => [one.uid, one])).values()]);
    this.#health.retryNow();
    return await given;
  }

  /** The part without events that are settled or set aside. */
  async prepare(whole: BatchPart): Promise<BatchPart> {
    const part = await this.#diverted(whole);
    await this.#givenUp.settled();
    if (this.#ahead.size === 0) return part;
    const { batch } = part;
    const left = batch.events.flatMap((event, index) => (this.#isSettled(event) ? [] : [index]));
    if (left.length === batch.events.length) return part;
    return { ...part, batch: picked(batch, left) };
  }

  /** Suspects become dead letters at an operator's request, while the position stays. */
  async #buryGiven(events: readonly Event[]): Promise<void> {
    const reasons = new Map(this.#evidence.suspects.map(({ uid, reason }) => [uid, reason]));
    const deadLetters = events.map((event) =>
      deadLetterFor(event, reasons.get(event.uid) ?? 'moved to the dead letters by hand'),
    );
    this.#settledAhead(events);
    await this.#store(deadLetters, this.#position.at);
    for (const { offset } of events) this.#evidence.forget(offset);
  }

  /** The part without events whose destination has set-aside events: they follow those. */
  async #diverted(part: BatchPart): Promise<BatchPart> {
    const { lanes } = this.#deps;
    if (lanes.isEmpty) return part;
    const { batch } = part;
    const left: number[] = [];
    const aside: AsideEvent[] = [];
    for (const [index, event] of batch.events.entries()) {
      const destination = this.#evidence.destinationOf(event);
      if (!lanes.has(destination) || this.#isSettled(event)) left.push(index);
      else aside.push({ ...deadLetterFor(event, lanes.reasonOf(destination)), destination });
    }
    if (aside.length === 0) return part;
    await this.#setAside(aside);
    return { ...part, batch: picked(batch, left) };
  }

  /** Resolves once the events are durable; only then may the position pass them. */
  async #setAside(events: readonly AsideEvent[]): Promise<void> {
    const { lanes } = this.#deps;
    this.#givenUp.spare(events);
    this.#advance(this.#position.at, { aside: events });
    await this.#position.saved();
    for (const [destination, of] of Map.groupBy(events, (event) => event.destination)) {
      lanes.setAside(destination, of.length, of[0]?.reason ?? '');
    }
    for (const { offset } of events) this.#evidence.forget(offset);
    this.#settledAhead(events.filter(({ offset }) => offset >= this.#position.at));
  }

  /** Reads which events an earlier process has settled after the position. */
  async load(): Promise<void> {
    const { spool, name } = this.#deps;
    this.#settledAhead(await spool.settledFrom(name, this.#position.at));
  }

  #settledAhead(events: readonly SettledEvent[]): void {
    for (const { offset, uid } of events) this.#ahead.set(offset, uid);
  }

  /** Settled, accepted after a batch that was not, or about to become a dead letter. */
  #isDone(event: SettledEvent): boolean {
    const { uid, offset } = event;
    return this.#isSettled(event) || this.#deps.isKept(offset) || this.#givenUp.has(uid);
  }

  /** Another state may have given its offset to another event. */
  #isSettled({ offset, uid }: SettledEvent): boolean {
    return this.#ahead.get(offset) === uid;
  }

  /** The notice if the receiver shows that the state is older. */
  get notice(): Notice | null {
    return this.#older ? olderState : null;
  }

  /**
   * Adopts the receiver's position if it is further: an acknowledgement was lost, or the state is
   * older.
   */
  async adopt({ stop, kill }: StopSignals): Promise<void> {
    const { sink, name } = this.#deps;
    while (sink.committed !== undefined) {
      try {
        const reach = await sink.committed(kill);
        if (reach?.ahead) this.#reportOlder();
        if (reach !== null && reach.position > this.#position.at) {
          this.#position.advance(reach.position);
        }
        return;
      } catch (error) {
        if (stop.aborted) throw error;
        await this.#health.pause(asExportError(error, `reading the position of ${name}`), stop);
      }
    }
  }

  async #hasPassed(offset: Offset, signals: StopSignals): Promise<boolean> {
    if (this.#deps.sink.committed === undefined) return false;
    await this.adopt(signals);
    return this.#position.at > offset;
  }

  #reportOlder(): void {
    if (this.#older) return;
    this.#older = true;
    const { what, next } = olderState;
    this.#deps.log.error('sink_ahead_of_state', what, { code: 'state_older', next });
  }

  /** Settles one response. Returns the parts still to send, the next one last. */
  async settle(
    part: BatchPart,
    answer: Delivery,
    signals: StopSignals,
  ): Promise<readonly BatchPart[]> {
    const { batch } = part;
    part.attempt.requests += 1;
    switch (answer.outcome) {
      case 'delivered':
        this.#health.succeeded(batch.events.length);
        await this.#accepted(part, batch.events);
        if (part.twin !== null) part.twin.isGuilty = true;
        if (this.#pending !== null) {
          // Of another destination: the position waits for the event before.
          this.#settledAhead(batch.events);
          this.passed(batch.end);
        } else this.#advance(batch.end, answer.mark === undefined ? {} : { mark: answer.mark });
        return [];
      case 'partly':
        return this.#settlePartly(part, answer, signals);
      case 'retry':
        await this.#health.pause(answer.cause, signals.stop, answer.afterMs);
        await this.adopt(signals);
        if (this.#position.at >= batch.end) return [];
        return [remainingPart(part, batchFrom(batch, this.#position.at), part.since)];
      case 'refused':
        return this.#settleRefused(part, answer, signals);
    }
  }

  async #settlePartly(
    part: BatchPart,
    answer: Extract<Delivery, { outcome: 'partly' }>,
    signals: StopSignals,
  ): Promise<readonly BatchPart[]> {
    const { batch } = part;
    const refusals = new Map(answer.refused.map((refusal) => [refusal.uid, refusal]));
    const again = new Set(answer.again);
    const accepted = batch.events.filter(({ uid }) => !refusals.has(uid) && !again.has(uid));
    await this.#accepted(part, accepted, refusals.size > 0);
    const judged = this.#judge(batch.events, refusals, accepted);
    const { deadLetters } = judged;
    const suspects = await this.#withoutAside(judged.suspects, accepted);
    const suspected = new Set(suspects.map(({ event }) => event));
    const rest = batch.events.flatMap((event, index) =>
      again.has(event.uid) || suspected.has(event) ? [index] : [],
    );
    if (accepted.length > 0) this.#health.succeeded(accepted.length);
    // No probe sends them, although the position is before them.
    if (rest.length > 0) this.#settledAhead([...accepted, ...deadLetters]);
    // The dead letters are not seen again, so they become durable now; the position waits for the
    // rest.
    if (rest.length === 0) {
      await this.#buryOrHold(deadLetters, batch.end);
      return [];
    }
    await this.#bury(deadLetters, this.#position.at);
    const [first] = suspects;
    const left = picked(batch, rest);
    if (first !== undefined) return await this.#tryOne(part, { ...first, batch: left }, signals);
    if (accepted.length + deadLetters.length === 0)
      await this.#health.pause(nothingAccepted(this.#deps.name), signals.stop);
    return [remainingPart(part, left, part.since)];
  }

  /** Sets suspects aside if their destination accepts nothing while another one accepts events, or could. */
  async #withoutAside(
    suspects: readonly Refused[],
    accepted: readonly Event[],
  ): Promise<readonly Refused[]> {
    if (suspects.length === 0 || !this.#deps.lanes.canSetAside) return suspects;
    const accepting = this.#evidence.destinationsOf(accepted);
    const at = ({ event }: Refused) => this.#evidence.destinationOf(event);
    const isAside = (one: Refused) =>
      one.by === 'only_destination' || (accepted.length > 0 && !accepting.has(at(one)));
    const aside = suspects.filter(isAside);
    if (aside.length > 0)
      await this.#setAside(
        aside.map((one) => ({ ...deadLetterFor(one.event, one.reason), destination: at(one) })),
      );
    return suspects.filter((one) => !isAside(one));
  }

  /** Decides which rejected events are to blame as far as known. */
  #judge(
    events: readonly Event[],
    refusals: ReadonlyMap<string, Refusal>,
    accepted: readonly Event[],
  ): { readonly deadLetters: readonly DeadLetter[]; readonly suspects: readonly Refused[] } {
    const isMixed = refusals.size > 0 && accepted.length > 0;
    const accepting = isMixed ? this.#evidence.destinationsOf(accepted) : new Set();
    const deadLetters: DeadLetter[] = [];
    const suspects: Refused[] = [];
    for (const event of events) {
      const refusal = refusals.get(event.uid);
      if (refusal === undefined) continue;
      const { reason, by = 'receiver' } = refusal;
      if (by === 'only_destination') {
        suspects.push({ event, reason, by });
        continue;
      }
      const isSure =
        by === 'sink' ||
        (by === 'receiver' && accepting.has(this.#evidence.destinationOf(event))) ||
        this.#evidence.refused(event, { reason, by, inBatchAt: null }) !== 'open';
      if (isSure) deadLetters.push(deadLetterFor(event, reason));
      else suspects.push({ event, reason, by });
    }
    return { deadLetters, suspects };
  }

  async #settleRefused(
    part: BatchPart,
    answer: Extract<Delivery, { outcome: 'refused' }>,
    signals: StopSignals,
  ): Promise<readonly BatchPart[]> {
    const { batch } = part;
    const { cause, by = 'receiver' } = answer;
    if (answer.scope === 'sink' || batch.pages.length > 0) {
      await this.#health.rest(cause, signals.stop);
      return [remainingPart(part, batch, part.since)];
    }
    const [event] = batch.events;
    const { turn } = this.#evidence;
    if (batch.events.length !== 1 || event === undefined) {
      return splitPart(part, part.since ?? turn);
    }
    const reason = cause.message;
    if (by === 'sink') {
      await this.#buryOrHold([deadLetterFor(event, reason)], batch.end);
      return [];
    }
    const guilt = this.#evidence.refused(event, { reason, by, inBatchAt: part.since });
    if (this.#pending !== null) {
      const { part: before, ...pending } = this.#pending;
      this.#pending = null;
      await this.#tryOne(before, { ...pending, batch: before.batch }, signals);
      return [remainingPart(part, batch, part.since)];
    }
    // The next send of this sink would pass the event at the receiver.
    const isInOrder = this.#deps.sink.committed !== undefined;
    if (guilt === 'proven' && !isInOrder) {
      await this.#buryOrHold([deadLetterFor(event, reason)], batch.end);
      return [];
    }
    if (guilt === 'open' || isInOrder)
      return await this.#tryOne(part, { batch, event, reason, by }, signals);
    this.#pending = { event, reason, by, part, end: batch.end };
    return [];
  }

  /** Nothing of a batch is left to send. */
  async conclude(): Promise<void> {
    await this.#buryPending();
  }

  /** There is nothing for this sink up to here. */
  passed(end: Offset): void {
    if (this.#pending === null) this.#advance(end);
    else this.#pending = { ...this.#pending, end };
  }

  async #buryPending(): Promise<void> {
    if (this.#pending === null) return;
    const { event, reason, end } = this.#pending;
    this.#pending = null;
    await this.#bury([deadLetterFor(event, reason)], end);
  }

  /** The position does not pass an unsettled event. */
  async #buryOrHold(deadLetters: readonly DeadLetter[], end: Offset): Promise<void> {
    await this.#bury(deadLetters, this.#pending === null ? end : this.#position.at);
    this.passed(end);
  }

  /** Probes a suspect until it is settled. Returns the rest of its batch. */
  async #tryOne(
    part: BatchPart,
    suspect: Refused & { readonly batch: Batch },
    signals: StopSignals,
  ): Promise<readonly BatchPart[]> {
    const { batch, event, reason, by } = suspect;
    const index = batch.events.indexOf(event);
    const isHead = index === 0;
    const single = alone(batch, index);
    this.#onTrial = part.attempt.hasAccepted ? batch.events : part.attempt.events;
    const refused = { batch: single, event, reason, by, inBatchAt: part.since };
    const deps = {
      ...this.#deps,
      evidence: this.#evidence,
      isSettled: (event: Event) => this.#isDone(event),
      delivered: (event: Event) => {
        this.#givenUp.spare([event]);
        this.#settledAhead([event]);
      },
      hasPassed: (offset: Offset, signals: StopSignals) => this.#hasPassed(offset, signals),
      isGivenUp: (event: Event) => this.#givenUp.has(event.uid) || this.#isSettled(event),
      canSetAside: this.#deps.lanes.canSetAside,
    };
    const ended = await probeUntilSettled(refused, spareRequests(part), deps, signals);
    part.attempt.hasAccepted = true;
    this.#onTrial = [];
    const rest = batch.events.flatMap((_, i) => (i === index ? [] : [i]));
    const isLast = rest.length === 0;
    const place = isLast ? batch.end : isHead ? single.end : this.#position.at;
    if (ended.end === 'elsewhere') {
      const destination = this.#evidence.destinationOf(event);
      await this.#setAside([{ ...deadLetterFor(event, reason), destination }]);
    }
    if (ended.end === 'delivered') this.#givenUp.spare([event]);
    // It is the dead letter of an operator's request already.
    await this.#givenUp.settled();
    if (ended.end === 'guilty' && !this.#isSettled(event))
      await this.#bury([deadLetterFor(event, ended.reason)], place);
    else this.#advance(place);
    return isLast ? [] : [remainingPart(part, picked(batch, rest), part.since)];
  }

  /** The receiver has accepted these events. */
  async #accepted(
    part: BatchPart,
    events: readonly Event[],
    isWatched = part.since !== null,
  ): Promise<void> {
    if (events.length === 0) return;
    part.attempt.hasAccepted = true;
    this.#givenUp.spare(events);
    if (isWatched || !this.#evidence.isEmpty) this.#evidence.accepted(events);
    const { event } = this.#pending ?? {};
    if (event === undefined) return;
    const destination = this.#evidence.destinationOf(event);
    if (this.#evidence.destinationsOf(events).has(destination)) await this.#buryPending();
  }

  #advance(to: Offset, step: Parameters<Position['advance']>[1] = {}): void {
    this.#position.advance(to, step);
    for (const offset of this.#ahead.keys())
      if (offset < this.#position.at) this.#ahead.delete(offset);
  }

  /**
   * Resolves when the dead letters are durable: the receiver's position must not pass one before.
   */
  async #bury(deadLetters: readonly DeadLetter[], position: Offset): Promise<void> {
    this.#givenUp.spare(deadLetters);
    await this.#store(deadLetters, position);
  }

  async #store(deadLetters: readonly DeadLetter[], position: Offset): Promise<void> {
    this.#health.buried(deadLetters.length);
    for (const deadLetter of deadLetters) {
      this.#deps.log.warn(
        'event_refused',
        'the sink refused an event for good; it is kept as a dead letter',
        {
          uid: deadLetter.uid,
          stream: deadLetter.context.stream,
          reason: deadLetter.reason,
        },
      );
    }
    this.#advance(position, { deadLetters });
    if (deadLetters.length > 0) await this.#position.saved();
  }
}

/** Shown while the process that detected it runs. */
const olderState: Notice = {
  what: 'the destination has more events than the state knows: the state is older than its deliveries (state_older)',
  next: 'Nothing is lost or cut: reading resumes at the older position. Sinks that check their destination (file, s3, Kafka exactly once) skip repeated events; an archive and all others get them once more, with the same uid. Find out why the state is older.',
};

function deadLetterFor(event: Event, reason: string): DeadLetter {
  return {
    uid: event.uid,
    offset: event.offset,
    reason,
    context: event.context,
    // A copy: the record's bytes are part of its page, which would stay in memory otherwise.
    record: new Uint8Array(event.raw),
  };
}

function nothingAccepted(sink: string): ExportError {
  return new ExportError(
    'sink_unreachable',
    `sending to ${sink}: no event of a batch was accepted`,
    {
      next: 'It is sent again by itself; nothing is lost.',
    },
  );
}
