// The trial of a rejected event while nothing else is accepted: it is a suspect, and is probed with
// growing waits. A probe sends the suspect, then events of other streams one by one. If one of them
// is accepted, the suspect is sent once more: if accepted, the receiver had a fault; if rejected,
// the event is to blame. Invariants: the position does not move; no event becomes a dead letter
// without that evidence; an event that a probe delivered is not sent again by this process. A sink
// that commits its position with its events gets no other event by `send`, because its position
// would pass the suspect. It has `tryOut`, or it waits until the suspect is accepted or an operator
// moves it to the dead letters.

import {
  asExportError,
  type Batch,
  type Delivery,
  type Event,
  ExportError,
  type Log,
  type Offset,
  type SendSpool,
  type Sink,
  type Verdict,
} from '../contracts/index.ts';
import type { Evidence, RequestCount } from './evidence.ts';
import type { Outlet } from './outlet.ts';
import { ReadAhead } from './read-ahead.ts';
import type { SinkHealth, StopSignals } from './sink-health.ts';

/** Dependencies of a trial. */
export interface TrialDeps {
  readonly name: string;
  readonly sink: Sink;
  readonly spool: SendSpool;
  readonly outlet: Pick<Outlet, 'cut'>;
  readonly log: Log;
  readonly evidence: Evidence;
  readonly health: SinkHealth;
  /** Sends a batch once. */
  readonly send: (batch: Batch, signals: StopSignals) => Promise<Delivery>;
  /** True for an event that needs no probe, because it is settled. */
  readonly isSettled: (event: Event) => boolean;
  /** An event was delivered out of order. */
  readonly delivered: (event: Event) => void;
  /** True if events of one destination can be set aside for others. */
  readonly canSetAside: boolean;
  /** After an unknown result: true if the receiver reports a position after the event. */
  readonly hasPassed: (offset: Offset, signals: StopSignals) => Promise<boolean>;
  /** True for an event that an operator has moved to the dead letters. */
  readonly isGivenUp: (event: Event) => boolean;
}

/** An event that was rejected alone, and why. */
export interface Refused {
  /** Only this event. */
  readonly batch: Batch;
  readonly event: Event;
  readonly reason: string;
  readonly by: Verdict;
  /** When a batch with the event was first rejected; null: never. */
  readonly inBatchAt: RequestCount | null;
}

/**
 * The result. `delivered`: the suspect was accepted. `guilty`: it is to blame, for this reason.
 * `elsewhere`: another destination accepts an event, and the suspect's does not.
 */
export type TrialEnd =
  | { readonly end: 'delivered' | 'elsewhere' }
  | { readonly end: 'guilty'; readonly reason: string };

/** The meaning of a response for one event that was sent alone. */
type Outcome =
  | { readonly is: 'accepted' }
  | { readonly is: 'refused'; readonly reason: string; readonly by: Verdict }
  | { readonly is: 'unknown' };

/** Maximum events of other streams in a probe. */
const othersMax = 8;
/** Fully rejected probes after which a run that ends by itself waits no longer. */
export const probesUntilStuck = 3;

/** Probes one suspect until it is settled; `spare`: requests that may follow at once. */
export async function probeUntilSettled(
  refused: Refused,
  spare: number,
  deps: TrialDeps,
  signals: StopSignals,
): Promise<TrialEnd> {
  const trial = new Trial(refused, deps);
  const atOnce = await trial.probeOthers(spare, signals);
  if (atOnce !== null) return atOnce;
  deps.log.warn(
    'event_suspected',
    'the receiver refuses events and accepts none; they stay in the spool as suspects',
    {
      uid: refused.event.uid,
      stream: refused.event.stream,
      reason: trial.reason,
    },
  );
  for (;;) {
    await trial.wait(signals.stop);
    const end = await trial.probe(signals);
    if (end !== null) return end;
  }
}

class Trial {
  readonly #deps: TrialDeps;
  readonly #refused: Refused;
  readonly #ahead: ReadAhead;
  #last: { readonly reason: string; readonly by: Verdict };
  /** False: the last probe found no other event. */
  #hasOthers = true;

  constructor(refused: Refused, deps: TrialDeps) {
    this.#deps = deps;
    this.#refused = refused;
    this.#last = refused;
    this.#ahead = new ReadAhead(refused.event, deps);
  }

  /** The receiver's last response. */
  get reason(): string {
    return this.#last.reason;
  }

  /** Waits until the next probe is due, or a first other event arrives. */
  async wait(stop: AbortSignal): Promise<void> {
    const { health, spool, evidence } = this.#deps;
    const seen = this.#ahead.seen;
    const arrival = this.#hasOthers
      ? undefined
      : (signal: AbortSignal) => spool.arrival(seen, signal);
    await health.suspend(this.#cause(evidence.suspects.length), stop, arrival);
  }

  /** One probe; null: it settled nothing. */
  async probe(signals: StopSignals): Promise<TrialEnd | null> {
    const { event } = this.#refused;
    if (this.#deps.isGivenUp(event)) return this.#guilty('moved to the dead letters by hand');
    const end = await this.#sendSuspect(signals);
    if (end !== 'refused') return end;
    const others = await this.probeOthers(othersMax, signals);
    if (others === null) this.#deps.health.probed();
    return others;
  }

  /** Sends events of other streams; then, if one was accepted, the suspect. */
  async probeOthers(most: number, signals: StopSignals): Promise<TrialEnd | null> {
    const { evidence, health } = this.#deps;
    let sent = 0;
    if (most === 0 || !this.#canProbeOthers) return null;
    for await (const other of this.#ahead.next(most)) {
      const [event] = other.events;
      if (event === undefined) continue;
      sent += 1;
      const outcome = await this.#tryOut(other, event, signals);
      if (outcome.is === 'unknown') break;
      if (outcome.is === 'refused') {
        // A verdict of the sink itself does not show the receiver's behaviour.
        if (outcome.by !== 'sink') evidence.refused(event, { ...outcome, inBatchAt: null });
        continue;
      }
      health.succeeded(0);
      const isSame = evidence.destinationOf(event) === evidence.destinationOf(this.#refused.event);
      if (!isSame && this.#deps.canSetAside) return { end: 'elsewhere' };
      if (!isSame) continue;
      const end = await this.#sendSuspect(signals);
      return end === 'refused' ? null : end;
    }
    this.#hasOthers = sent > 0;
    return null;
  }

  get #canProbeOthers(): boolean {
    const { committed, tryOut } = this.#deps.sink;
    return committed === undefined || tryOut !== undefined;
  }

  /** Null: no response about the event; `refused`: rejected again, without evidence against it. */
  async #sendSuspect(signals: StopSignals): Promise<TrialEnd | 'refused' | null> {
    const { batch, event, inBatchAt } = this.#refused;
    const { evidence, health } = this.#deps;
    const outcome = await this.#send(batch, event, signals);
    if (outcome.is === 'unknown') {
      // The acknowledgement may be lost, and the event delivered.
      if (!(await this.#deps.hasPassed(event.offset, signals))) return null;
      evidence.forget(event.offset);
      return { end: 'delivered' };
    }
    if (outcome.is === 'accepted') {
      evidence.accepted([event]);
      health.succeeded(1);
      return { end: 'delivered' };
    }
    this.#last = outcome;
    if (outcome.by === 'sink') return this.#guilty(outcome.reason);
    const guilt = evidence.refused(event, { ...outcome, inBatchAt });
    return guilt !== 'open' ? this.#guilty(outcome.reason) : 'refused';
  }

  #guilty(reason: string): TrialEnd {
    this.#deps.evidence.forget(this.#refused.event.offset);
    return { end: 'guilty', reason };
  }

  async #tryOut(other: Batch, event: Event, signals: StopSignals): Promise<Outcome> {
    const { sink, evidence, health } = this.#deps;
    if (sink.tryOut === undefined) {
      const outcome = await this.#send(other, event, signals);
      if (outcome.is === 'accepted') {
        evidence.accepted([event]);
        health.succeeded(1);
        this.#deps.delivered(event);
      }
      return outcome;
    }
    evidence.begin();
    try {
      const answer = await sink.tryOut(other, signals.kill);
      const outcome = await this.#outcomeOf(answer, event, signals.stop);
      if (outcome.is === 'accepted') evidence.accepted([event]);
      return outcome;
    } catch (error) {
      if (signals.kill.aborted) throw error;
      const cause = asExportError(error, `probing ${this.#deps.name}`);
      await health.pause(cause, signals.stop);
      return { is: 'unknown' };
    }
  }

  async #send(batch: Batch, event: Event, signals: StopSignals): Promise<Outcome> {
    const answer = await this.#deps.send(batch, signals);
    return await this.#outcomeOf(answer, event, signals.stop);
  }

  async #outcomeOf(answer: Delivery, { uid }: Event, stop: AbortSignal): Promise<Outcome> {
    const { health } = this.#deps;
    switch (answer.outcome) {
      case 'delivered':
        return { is: 'accepted' };
      case 'partly': {
        const refusal = answer.refused.find((one) => one.uid === uid);
        if (refusal !== undefined) {
          return { is: 'refused', reason: refusal.reason, by: refusal.by ?? 'receiver' };
        }
        return { is: answer.again.includes(uid) ? 'unknown' : 'accepted' };
      }
      case 'retry':
        await health.pause(answer.cause, stop, answer.afterMs);
        return { is: 'unknown' };
      case 'refused':
        if (answer.scope === 'batch') {
          const { cause, by = 'receiver' } = answer;
          return { is: 'refused', reason: cause.message, by };
        }
        await health.rest(answer.cause, stop);
        return { is: 'unknown' };
    }
  }

  #cause(suspects: number): ExportError {
    const { name } = this.#deps;
    const command = `sluice dead-letters add --sink ${name}`;
    if (suspects < 2) {
      const next = `The event stays in the spool and is sent again automatically; it becomes a dead letter if the receiver accepts another event and still refuses this one. To move it now: ${command}`;
      return new ExportError('record_refused', this.#last.reason, { next });
    }
    const next = `The receiver refuses ${suspects} different events and accepts none: check the destination (index, pipeline, token, limits) that its answer names. The events stay in the spool in order, and delivery resumes automatically. If the events themselves are at fault: ${command}`;
    return new ExportError('sink_refused', this.#last.reason, { next });
  }
}
