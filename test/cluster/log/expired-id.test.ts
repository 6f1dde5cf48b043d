// A shard that rests for longer than the brokers keep an unused transactional id (`transactional.id.expiration.ms`, 7 days by
// default): its next transaction begins with a new producer, and the process before still writes nothing.

import { randomUUID } from 'node:crypto';
import { describeTransactionsV0 } from '@platformatic/kafka';
import { expect, test } from 'vitest';
import { LogClient } from '../../../src/cluster/log/client.ts';
import { ShardLog } from '../../../src/cluster/log/shard-log.ts';
import { parseHostPort } from '../../../src/contracts/settings.ts';
import type { OutboxRow } from '../../../src/hold/outbox.ts';
import { systemClock } from '../../../src/tools/clock.ts';
import { startKafka } from '../../support/kafka.ts';
import { silent } from '../../support/silent-log.ts';
import { afterThisTest, tempDir, waitUntil } from '../../support/temp.ts';

const clock = systemClock();

test('a shard writes again after the broker has forgotten its transactional id, and no older process does', async () => {
  const { addresses } = await startKafka({
    settings: {
      'transactional.id.expiration.ms': '2000',
      'transaction.remove.expired.transaction.cleanup.interval.ms': '500',
      // What a partition knows of the producer goes as well.
      'producer.id.expiration.ms': '2000',
      'producer.id.expiration.check.interval.ms': '500',
    },
  });
  const brokers = [parseHostPort(addresses.plain)].filter((one) => one !== null);
  const settings = { brokers, prefix: `p-${randomUUID()}` };
  const client = new LogClient(settings, clock);
  afterThisTest(() => client.close());
  const isForgotten = async () => {
    const id = `${settings.prefix}.shard.0`;
    return await client.anywhere('looking', async (connection) => {
      const asked = describeTransactionsV0.api.async(connection, [id]);
      const error = await asked.then(() => '', String);
      return error.includes('transactionalId could not be found');
    });
  };
  const forgotten = () =>
    waitUntil(isForgotten, { what: 'the end of the transactional id', timeoutMs: 60_000 });
  const row = (name: string): OutboxRow => ({
    ...{ table: 'note', key: ['stream', name] },
    value: Buffer.from(`${JSON.stringify({ kind: 'stream', name, facts: '{}', at: 0 })}\n`),
  });
  const lines: string[] = [];
  const log = { ...silent, warn: (event: string) => void lines.push(event) };
  // As the group answers a process that owns.
  const confirm = async () => 0;
  const take = async () => {
    const shard = await ShardLog.take(settings, { clock, log, confirm });
    afterThisTest(() => shard.cut());
    return shard;
  };
  const first = await take();
  await first.rebuild(tempDir());
  await first.commit([row('one')]);

  await forgotten();
  await first.commit([row('two')]);
  expect(lines).toEqual(['kafka_commit_failed']);

  const second = await take();
  await second.rebuild(tempDir());
  await second.commit([row('three')]);
  await forgotten();
  await expect(first.commit([row('late')])).rejects.toMatchObject({ code: 'state_locked' });
  await second.commit([row('four')]);
}, 180_000);
