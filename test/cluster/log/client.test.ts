// Requests to the leader of a partition, against a real Apache Kafka, where one is faked: a broker that has just become the
// leader of a new topic answers for a moment that it does not know it. With several brokers that happens at a first start.

import { fetchV15, listOffsetsV8, ResponseError } from '@platformatic/kafka';
import { expect, test, vi } from 'vitest';
import { LogClient } from '../../../src/cluster/log/client.ts';
import { parseHostPort } from '../../../src/contracts/settings.ts';
import { systemClock } from '../../../src/tools/clock.ts';
import { kafkaBrokers, newTopic } from '../../support/kafka.ts';
import { afterThisTest } from '../../support/temp.ts';

const unknownTopic = 3;

async function aClient(): Promise<LogClient> {
  const brokers = (await kafkaBrokers()).flatMap((broker) => parseHostPort(broker) ?? []);
  const client = new LogClient({ brokers, prefix: '' }, systemClock());
  afterThisTest(() => client.close());
  return client;
}

test('a request is repeated to a leader that does not know its new partition yet', async () => {
  const of = { topic: await newTopic('new-leader'), partition: 0 };
  const client = await aClient();
  const answer = new ResponseError(
    1,
    15,
    { '/responses/0/partitions/0': [unknownTopic, null] },
    {},
  );
  const spies = [fetchV15.api, listOffsetsV8.api].map((api) =>
    vi.spyOn(api, 'async').mockRejectedValueOnce(answer).mockRejectedValueOnce(answer),
  );
  afterThisTest(() => vi.restoreAllMocks());

  expect(await client.end(of)).toBe(0n);
  expect(await client.fetch(of, 0n, 1)).toEqual({ records: [], position: 0n });
  expect(spies.map(({ mock }) => mock.calls.length)).toEqual([3, 3]);
});

test('a topic that no broker names is reported at once', async () => {
  const client = await aClient();

  const end = client.end({ topic: `gone-${crypto.randomUUID()}`, partition: 0 });

  await expect(end).rejects.toMatchObject({ kind: 'topic_missing' });
});
