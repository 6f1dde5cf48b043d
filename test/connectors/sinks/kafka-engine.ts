// For the tests of the Kafka sink: what the engine does with a sink, in its shortest form, and a hand on the requests
// that kafkajs sends, so that a test can stop, repeat or lose one at a named place.

import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Event, Offset } from '../../../src/contracts/event.ts';
import type { Batch, Delivery } from '../../../src/contracts/sink.ts';
import { newTopic, type TopicOptions } from '../../support/kafka.ts';
import type { OpenedSink } from '../../support/sink-opening.ts';
import { afterThisTest } from '../../support/temp.ts';

/** A topic of one's own. Asked again where the broker has not heard yet of the topic that it has just made. */
export async function aTopic(prefix: string, options?: TopicOptions): Promise<string> {
  for (let asked = 1; ; asked++) {
    try {
      return await newTopic(prefix, options);
    } catch (error) {
      if (asked === 5) throw error;
    }
  }
}

/** A signal that nobody aborts. */
export const goOn: AbortSignal = new AbortController().signal;

/** A batch of these events, with the offset that the sink has reached after it if it is not the last event's. */
export function batchOf(opened: OpenedSink, events: readonly Event[], end?: Offset): Batch {
  const batch = opened.batch(events);
  return end === undefined ? batch : { ...batch, end };
}

/** How a delivery went. */
export interface Delivered {
  /** uids that became dead letters. */
  readonly dead: readonly string[];
  /** Every answer that was not `delivered`, in order. */
  readonly troubles: readonly Delivery[];
}

/** Delivers the events as the engine does: the far side's position first, halves of what is refused, retries. */
export async function deliver(opened: OpenedSink, events: readonly Event[]): Promise<Delivered> {
  const dead: string[] = [];
  const troubles: Delivery[] = [];
  const open: (readonly Event[])[] = [events];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (part.length === 0) continue;
    const answer = await opened.sink.send(opened.batch(part), goOn);
    if (answer.outcome === 'delivered') continue;
    troubles.push(answer);
    switch (answer.outcome) {
      case 'partly':
        dead.push(...answer.refused.map(({ uid }) => uid));
        break;
      case 'retry': {
        await delay(20);
        const reached = (await committedOf(opened)) ?? 0;
        open.push(part.filter(({ offset }) => offset >= reached));
        break;
      }
      case 'refused': {
        if (answer.scope === 'sink') throw answer.cause;
        const [only] = part;
        if (part.length === 1 && only !== undefined) dead.push(only.uid);
        else open.push(part.slice(part.length >> 1), part.slice(0, part.length >> 1));
        break;
      }
    }
  }
  return { dead, troubles };
}

/** What the far side says of its position; asked again while Kafka is away or its coordinator is still loading. */
export async function committedOf(opened: OpenedSink): Promise<Offset | null> {
  for (;;) {
    try {
      return (await opened.sink.committed?.(goOn)) ?? null;
    } catch (error) {
      if (!(error instanceof ExportError) || error.code !== 'sink_unreachable') throw error;
      await delay(20);
    }
  }
}

/** A request that kafkajs sends to a broker. */
export type KafkaRequest = 'produce' | 'txnOffsetCommit' | 'endTxn' | 'initProducerId';

/** Takes the place of a request; `send` sends it, with other arguments if given. */
export type Instead = (
  send: (changed?: Readonly<Record<string, unknown>>) => Promise<unknown>,
  asked: Readonly<Record<string, unknown>>,
) => Promise<unknown>;

type Requests = Record<
  KafkaRequest,
  (asked: Readonly<Record<string, unknown>>) => Promise<unknown>
>;

/** Calls `instead` for each such request from now on, of all kafkajs clients here, until the test ends. */
export function instead(request: KafkaRequest, take: Instead): { restore(): void } {
  const load = createRequire(import.meta.url);
  const requests = load('kafkajs/src/broker').prototype as Requests; // not exported, hence untyped
  const original = requests[request];
  requests[request] = function replaced(this: Requests, asked) {
    return take((changed) => original.call(this, { ...asked, ...changed }), asked);
  };
  const restore = () => {
    requests[request] = original;
  };
  afterThisTest(restore);
  return { restore };
}

/** What kafkajs throws when a connection closes before the answer. */
export function connectionClosed(): Error {
  return Object.assign(new Error('Closed connection'), {
    name: 'KafkaJSConnectionClosedError',
    retriable: true,
  });
}
