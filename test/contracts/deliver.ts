// The engine's side of the contract in its shortest form, for the contract suite of sinks: one batch after the other,
// each until it is settled, by the rules in src/contracts/sink.ts. The real loop is src/send/sender.ts.

import { setTimeout as delay } from 'node:timers/promises';
import type { Event, Offset, Uid } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';
import type { Batch, Refusal, Sink } from '../../src/contracts/sink.ts';

/** An open sink, as far as delivering goes. */
export interface Deliverable {
  readonly sink: Sink;
  batch(events: readonly Event[], id?: string): Batch;
}

/** What is left when all is settled. */
export interface Settled {
  readonly refused: readonly Refusal[];
  readonly attempts: number;
  /** The mark of the last delivery that had one. */
  readonly mark: Json | null;
}

const attemptsMax = 2000;
const never = new AbortController().signal;

/** Delivers the events in batches of `batchSize`; rejects where the sink refuses everything, or it never ends. */
export async function deliver(
  { sink, batch }: Deliverable,
  events: readonly Event[],
  batchSize: number,
): Promise<Settled> {
  const refused: Refusal[] = [];
  let [attempts, mark]: [number, Json | null] = [0, null];
  const waiting: (readonly Event[])[] = [];
  for (let at = 0; at < events.length; at += batchSize)
    waiting.unshift(events.slice(at, at + batchSize));
  for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) {
    if (part.length === 0) continue;
    if (++attempts > attemptsMax) throw new Error(`not settled after ${attemptsMax} attempts`);
    const sent = batch(part);
    const answering = sink.send(sent, never);
    sink.flush?.();
    const answer = await answering;
    switch (answer.outcome) {
      case 'delivered':
        mark = answer.mark ?? mark;
        // The engine frees their memory, and another use may overwrite it.
        if (sink.isDoneOnceDelivered === true) sent.lines.bytes.fill(0);
        break;
      case 'partly': {
        refused.push(...answer.refused);
        const again = new Set(answer.again);
        waiting.push(part.filter(({ uid }) => again.has(uid)));
        break;
      }
      case 'retry': {
        await delay(2); // stands for the engine's back-off
        const reached = await committed(sink);
        waiting.push(part.filter(({ offset }) => offset >= reached));
        break;
      }
      case 'refused': {
        if (answer.scope === 'sink') throw answer.cause;
        const middle = part.length >> 1;
        if (middle > 0) waiting.push(part.slice(middle), part.slice(0, middle));
        else refused.push(...refusalsOf(part, answer.cause.message));
        break;
      }
    }
  }
  return { refused, attempts, mark };
}

function refusalsOf(events: readonly Event[], reason: string): readonly Refusal[] {
  return events.map(({ uid }: { uid: Uid }) => ({ uid, reason }));
}

async function committed(sink: Sink): Promise<Offset> {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await sink.committed?.(never))?.position ?? 0;
    } catch (error) {
      if (attempt === 50) throw error;
      await delay(20); // not back yet: the engine tries again too
    }
  }
}
