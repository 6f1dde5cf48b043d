// For the tests of the Kafka sink: the engine's calls of a sink in their shortest form, and control of the requests
// that either client sends, so that a test can stop, repeat or lose one at a named point.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Event, Offset } from '../../../src/contracts/event.ts';
import type { Batch, Delivery } from '../../../src/contracts/sink.ts';
import { newTopic, type TopicOptions } from '../../support/kafka.ts';
import { type OpenedSink, openSink, someEvents } from '../../support/sink-opening.ts';
import { afterThisTest } from '../../support/temp.ts';

/** A topic of one's own. */
export async function aTopic(prefix: string, options?: TopicOptions): Promise<string> {
  return await newTopic(prefix, options);
}

/** A signal that is never aborted. */
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

/** Delivers the events as the engine does: the receiver's position first, halves of rejected batches, retries. */
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

/** The position at the receiver; queried again while Kafka is away or its coordinator is still loading. */
export async function committedOf(opened: OpenedSink): Promise<Offset | null> {
  for (;;) {
    try {
      return (await opened.sink.committed?.(goOn))?.position ?? null;
    } catch (error) {
      if (!(error instanceof ExportError) || error.code !== 'sink_unreachable') throw error;
      await delay(20);
    }
  }
}

/** A whole life of a sink with exactly_once, as the engine would lead it. */
export interface FeedTask {
  readonly driver: Driver;
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly spoolId: string;
  /** Our own position, written after each response: the rest after a kill must come from Kafka. */
  readonly positionFile: string;
  readonly events: number;
  readonly batch: number;
}

/** Opens the sink, delivers what is not delivered yet, batch by batch, and closes it; resolves to Kafka's position. */
export async function feed(task: FeedTask): Promise<Offset | null> {
  const { driver, brokers, topic, spoolId, positionFile, events, batch } = task;
  const config = { driver, brokers, topic, key: 'uid', exactly_once: true };
  const opened = await openSink(kafkaSink, config, { spoolId });
  const own = existsSync(positionFile) ? Number(readFileSync(positionFile, 'utf8')) : 0;
  const theirs = (await committedOf(opened)) ?? 0;
  for (let at = Math.max(own, theirs); at < events; at += batch) {
    await deliver(opened, someEvents(Math.min(batch, events - at), at));
    writeFileSync(positionFile, String(Math.min(at + batch, events)));
  }
  const reached = await committedOf(opened);
  await opened.sink.close();
  await opened.tools.http.close();
  return reached;
}

/** The values of `driver`: what is promised holds for each. */
export type Driver = 'kafkajs' | 'platformatic';
export const drivers: readonly Driver[] = ['kafkajs', 'platformatic'];

/** A request that a client sends to a broker. */
export type KafkaRequest = 'produce' | 'txnOffsetCommit' | 'endTxn' | 'initProducerId';

/** Replaces a request; `send` sends it and returns the response as the client reads it. */
export type Instead = (send: () => Promise<unknown>) => Promise<unknown>;

/** Calls `take` for each such request from now on, of all clients of that driver here, until the test ends. */
export function instead(
  request: KafkaRequest,
  take: Instead,
  driver: Driver = 'kafkajs',
): { restore(): void } {
  const restore =
    driver === 'kafkajs' ? insteadOfKafkajs(request, take) : insteadOfPlatformatic(request, take);
  afterThisTest(restore);
  return { restore };
}

const load = createRequire(import.meta.url);

type Requests = Record<KafkaRequest, (asked: unknown) => Promise<unknown>>;

function insteadOfKafkajs(request: KafkaRequest, take: Instead): () => void {
  const requests = load('kafkajs/src/broker').prototype as Requests; // not exported, hence untyped
  const original = requests[request];
  requests[request] = function replaced(this: Requests, asked) {
    return take(() => original.call(this, asked));
  };
  return () => {
    requests[request] = original;
  };
}

// Kafka protocol guide, "The Messages": the api keys.
const apiKeys: Readonly<Record<KafkaRequest, number>> = {
  produce: 0,
  initProducerId: 22,
  endTxn: 26,
  txnOffsetCommit: 28,
};

type Answered = (error: Error | null, answer?: unknown) => void;

interface Sender {
  send(apiKey: number, ...rest: readonly unknown[]): void;
}

function insteadOfPlatformatic(request: KafkaRequest, take: Instead): () => void {
  const sender = load('@platformatic/kafka').Connection.prototype as Sender; // typed by its first and last argument
  const original = sender.send;
  sender.send = function replaced(this: Sender, apiKey, ...rest) {
    if (apiKey !== apiKeys[request]) return original.call(this, apiKey, ...rest);
    const callback = rest.at(-1) as Answered;
    const send = () =>
      new Promise((resolve, reject) => {
        const settle: Answered = (error, answer) => (error ? reject(error) : resolve(answer));
        original.call(this, apiKey, ...rest.slice(0, -1), settle);
      });
    take(send).then((answer) => callback(null, answer), callback);
  };
  return () => {
    sender.send = original;
  };
}

/** The client's error when a connection closes before the response; `again`: whether the client itself retries once. */
export function connectionClosed(driver: Driver = 'kafkajs', { again = true } = {}): Error {
  if (driver === 'platformatic') {
    return new (load('@platformatic/kafka').NetworkError)('Connection closed', { canRetry: again });
  }
  return Object.assign(new Error('Closed connection'), {
    name: 'KafkaJSConnectionClosedError',
    retriable: again,
  });
}
