// What an answer of the far side means for a sink's position, and what of the batch is to be sent
// again. What must stay true: the position passes an event only when it was delivered or made a
// dead letter, and one that the far side refuses for good is found without losing those beside it.

import { asExportError, ExportError } from '../contracts/errors.ts';
import type { Event, Offset } from '../contracts/event.ts';
import type { Batch, Delivery, Notice, Sink } from '../contracts/sink.ts';
import type { DeadLetter } from '../contracts/spool.ts';
import type { Log } from '../contracts/tools.ts';
import { behind, halves, picked } from './batch-parts.ts';
import type { Position } from './position.ts';
import type { SinkHealth } from './sink-health.ts';

/** The two ways to end a sender: take no further batch, and give up on what is under way. */
export interface StopSignals {
  readonly stop: AbortSignal;
  readonly kill: AbortSignal;
}

interface SettlementMeans {
  readonly name: string;
  readonly sink: Sink;
  readonly log: Log;
}

/** Single refusals in a row, nothing ever delivered, that count as the sink's refusal. */
const refusalsInARowMax = 10;

/** Settles the batches of one sink. */
export class Settlement {
  readonly #means: SettlementMeans;
  readonly #position: Position;
  readonly #health: SinkHealth;
  #older = false;

  constructor(means: SettlementMeans, position: Position, health: SinkHealth) {
    this.#means = means;
    this.#position = position;
    this.#health = health;
  }

  /** What the far side has shown of the state. */
  get notice(): Notice | null {
    return this.#older ? olderState : null;
  }

  /** The far side may be further than we know: an answer was lost, or the state is older. */
  async adopt({ stop, kill }: StopSignals): Promise<void> {
    const { sink, name } = this.#means;
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
        await this.#health.pause(asExportError(error, `asking ${name} how far it is`), stop);
      }
    }
  }

  #tellOlder(): void {
    if (this.#older) return;
    this.#older = true;
    const { what, next } = olderState;
    this.#means.log.error(what, { code: 'state_older', next });
  }

  /** What one answer means. Returns the batches that are still to be sent, the next one last. */
  async settle(batch: Batch, answer: Delivery, signals: StopSignals): Promise<readonly Batch[]> {
    switch (answer.outcome) {
      case 'delivered':
        this.#health.succeeded(batch.events.length);
        this.#position.advance(batch.end, answer.mark === undefined ? {} : { mark: answer.mark });
        return [];
      case 'partly':
        return this.#settlePartly(batch, answer, signals);
      case 'retry':
        await this.#health.pause(answer.cause, signals.stop, answer.afterMs);
        await this.adopt(signals);
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
    if (taken > 0) this.#health.succeeded(taken);
    // The letters are not met again, so they become durable now; the position waits for the rest.
    await this.#bury(letters, rest.length === 0 ? batch.end : this.#position.at);
    if (rest.length === 0) return [];
    if (taken === 0 && letters.length === 0)
      await this.#health.pause(nothingTaken(this.#means.name), stop);
    return [picked(batch, rest)];
  }

  async #settleRefused(
    batch: Batch,
    answer: Extract<Delivery, { outcome: 'refused' }>,
    { stop }: StopSignals,
  ): Promise<readonly Batch[]> {
    const { delivered, deadLetters } = this.#health.state;
    const hopeless = delivered === 0 && deadLetters >= refusalsInARowMax;
    const isOfSink = answer.scope === 'sink' || batch.pages.length > 0;
    if (isOfSink || hopeless) {
      const cause = isOfSink ? answer.cause : takesNothing(answer.cause, deadLetters);
      await this.#health.rest(cause, stop);
      return [batch];
    }
    const only = batch.events[0];
    if (batch.events.length === 1 && only !== undefined) {
      await this.#bury([letterFor(only, answer.cause.message)], batch.end);
      return [];
    }
    return halves(batch);
  }

  /** Resolves when the letters are durable: the far side must not pass one that is not. */
  async #bury(letters: readonly DeadLetter[], position: Offset): Promise<void> {
    this.#health.buried(letters.length);
    for (const letter of letters) {
      this.#means.log.warn('the sink refused an event for good; it is kept as a dead letter', {
        uid: letter.uid,
        stream: letter.context.stream,
        reason: letter.reason,
      });
    }
    this.#position.advance(position, { deadLetters: letters });
    if (letters.length > 0) await this.#position.saved();
  }
}

/** Told while the process runs that has found it. */
const olderState: Notice = {
  what: 'its far side has more than the state knows of: the state is older than what was delivered (state_older)',
  next: 'Nothing is lost or cut: reading goes on at the older place. What comes again from there is left out by sinks that look at what they have (file, s3, Kafka exactly once); an archive and all others get it once more, with the same uid. Look why the state is older.',
};

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
