// Reading committed records, against a real Apache Kafka: the three logs of one transactional id at which
// @platformatic/kafka's own read_committed is wrong, read by us, by kafkajs, and, so that a correction is seen,
// by that library.

import { randomUUID } from 'node:crypto';
import { Consumer, ProduceAcks, stringDeserializers } from '@platformatic/kafka';
import { beforeAll, expect, test } from 'vitest';
import { committedRecords, LogClient } from '../../../src/cluster/log/client.ts';
import { Client } from '../../../src/kafka/platformatic-client.ts';
import { systemClock } from '../../../src/tools/clock.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../../support/kafka.ts';
import { afterThisTest } from '../../support/temp.ts';

let brokers: readonly { readonly host: string; readonly port: number }[] = [];
beforeAll(async () => {
  brokers = (await kafkaBrokers()).map((broker) => {
    const [host = '', port = ''] = broker.split(':');
    return { host, port: Number(port) };
  });
});

const connections = { clientId: 'test', tls: undefined, connection: {} };

/** A step of a log: how its transaction ends, and the values that it writes. */
type Step = readonly ['commit' | 'abort', ...values: readonly string[]];

/** A topic that one transactional id has written, step by step. */
async function aLog(steps: readonly Step[]): Promise<string> {
  const topic = await newTopic('committed');
  // The broker is named as the leader before it has the partition, and a Produce in a transaction is not repeated.
  await readByUs(topic);
  const client = new Client({
    ...{ brokers, connections },
    producer: {
      ...{ clientId: 'test', transactionalId: randomUUID(), idempotent: true, retries: 100 },
      ...{ retryDelay: 50, producerId: -1n, producerEpoch: -1, autocreateTopics: false },
    },
  });
  for (const [end, ...values] of steps) {
    const transaction = await client.beginTransaction();
    const metadata = await client.metadata({ topics: [topic] });
    const added = Promise.withResolvers<void>();
    transaction.addPartitions(metadata, [{ topic, partition: 0, value: Buffer.of() }], (error) =>
      error ? added.reject(error) : added.resolve(),
    );
    await added.promise;
    for (const value of values) {
      const messages = [{ topic, partition: 0, value: Buffer.from(value) }];
      await transaction.send({ messages, acks: ProduceAcks.ALL });
    }
    await transaction[end]();
  }
  await client.disconnect();
  return topic;
}

async function readByUs(topic: string): Promise<readonly string[]> {
  const clock = systemClock();
  const client = new LogClient({ brokers, prefix: '' }, clock);
  afterThisTest(() => client.close());
  const read: string[] = [];
  const of = { topic, partition: 0 };
  for await (const records of committedRecords(client, of, { clock, stalledMs: 20_000 })) {
    read.push(...records.map(({ value }) => String(value)));
  }
  return read;
}

const small = { maxWaitTime: 50, maxBytes: 1_000_000 };

async function readByTheLibrary(topic: string, last: string): Promise<readonly string[]> {
  const consumer = new Consumer({
    ...{ clientId: 'test', groupId: randomUUID(), isolationLevel: 1, autocommit: false },
    bootstrapBrokers: [...brokers],
    deserializers: stringDeserializers,
  });
  const stream = await consumer.consume({ topics: [topic], mode: 'earliest', ...small });
  const read: string[] = [];
  for await (const { value } of stream) {
    read.push(String(value));
    if (value === last) break;
  }
  await consumer.close(true);
  return read;
}

const large = (name: string) => `${name}${'.'.repeat(600_000)}`;
const names = (values: readonly string[]) => values.map((value) => value.replace(/\.+$/, ''));

const logs: Readonly<
  Record<string, { readonly steps: readonly Step[]; readonly library: readonly string[] }>
> = {
  'commit and abort by turns': {
    steps: [
      ['commit', 'c1'],
      ['abort', 'a1'],
      ['commit', 'c2'],
      ['abort', 'a2'],
      ['commit', 'c3'],
    ],
    library: ['c1', 'a1', 'c2', 'c3'],
  },
  'an abort without a record after older commits': {
    steps: [['abort', 'a1'], ['commit', 'c1'], ['commit', 'c2'], ['abort'], ['commit', 'c3']],
    library: ['c3'],
  },
};

test.each(Object.entries(logs))(
  '%s: committed records, all of them',
  async (_, { steps, library }) => {
    const committed = steps.flatMap(([end, ...values]) => (end === 'commit' ? values : []));
    const topic = await aLog(steps);

    expect(await readByUs(topic)).toEqual(committed);
    expect((await consumeAll(topic)).map(({ value }) => value)).toEqual(committed);
    // When this fails the library is correct: then committed.ts can be removed.
    expect(await readByTheLibrary(topic, committed.at(-1) ?? '')).toEqual(library);
  },
);

test('an aborted transaction that is larger than a fetch: none of its records', async () => {
  const aborted = Array.from({ length: 20 }, (_, index) => large(`a${index}`));
  const topic = await aLog([
    ['commit', 'c1'],
    ['abort', ...aborted],
    ['commit', 'c2'],
  ]);

  expect(names(await readByUs(topic))).toEqual(['c1', 'c2']);
  expect(names((await consumeAll(topic)).map(({ value }) => value))).toEqual(['c1', 'c2']);
  const library = await readByTheLibrary(topic, 'c2');
  expect(names(library)).toContain('a0');
});
