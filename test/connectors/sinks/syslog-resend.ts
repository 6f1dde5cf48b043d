// The engine's side of settled delivery, as small as it can be: batches are sent ahead, answers are taken in order, and
// after `retry` everything from the oldest unanswered batch goes again. For the tests of the syslog sink; the real
// loop is src/send/sender.ts.

import { setTimeout as delay } from 'node:timers/promises';
import type { Event } from '../../../src/contracts/event.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import type { OpenedSink } from '../../support/sink-opening.ts';

/** What it took to deliver. */
export interface Resent {
  /** Batches that were answered `retry`. */
  readonly retries: number;
  /** Events that were handed to the sink, repeats included. */
  readonly handed: number;
  /** Of each `retry` in a row only one, by message. */
  readonly causes: ReadonlySet<string>;
}

/** Delivers all events, however often that takes; rejects when a batch is refused. */
export async function deliverAll(
  { sink, batch }: OpenedSink,
  events: readonly Event[],
  { batchSize = 50, ahead = 32 }: { readonly batchSize?: number; readonly ahead?: number } = {},
): Promise<Resent> {
  const signal = new AbortController().signal;
  const causes = new Set<string>();
  const underWay: { readonly from: number; readonly answer: Promise<Delivery> }[] = [];
  let [next, settled, retries, handed] = [0, 0, 0, 0];
  while (settled < events.length) {
    while (underWay.length < ahead && next < events.length) {
      const part = events.slice(next, next + batchSize);
      underWay.push({ from: next, answer: sink.send(batch(part), signal) });
      handed += part.length;
      next += part.length;
      await new Promise((resolve) => setImmediate(resolve)); // as the engine does between two cuts
    }
    const oldest = underWay.shift();
    if (!oldest) throw new Error('nothing is under way');
    const answer = await oldest.answer;
    switch (answer.outcome) {
      case 'delivered':
        settled = Math.min(oldest.from + batchSize, events.length);
        break;
      case 'retry':
        causes.add(answer.cause.message);
        retries += 1;
        await Promise.all(underWay.splice(0).map((later) => later.answer));
        next = oldest.from;
        await delay(5); // stands for the engine's back-off
        break;
      case 'partly':
      case 'refused':
        throw new Error(`a batch was answered ${answer.outcome}`);
    }
  }
  return { retries, handed, causes };
}

/** The uid in a message's structured data. */
export function uidOf(message: string): string {
  return /uid="([0-9a-f]{64})"/.exec(message)?.[1] ?? `no uid in: ${message.slice(0, 200)}`;
}
