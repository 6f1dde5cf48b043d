// A changed config that puts a source into another shard, on a real Apache Kafka: a source that has a state is read in the shard
// that has it, or the config is refused with the next step. Nothing is read again.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { expect, test } from 'vitest';
import { Control } from '../../src/cluster/control.ts';
import { readConfig } from '../../src/config/config.ts';
import { shardOfStream } from '../../src/config/shards.ts';
import { parseHostPort } from '../../src/contracts/settings.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { consumeAll, createTopic, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { startMovingUpstreams } from '../support/moving/upstreams.ts';
import { storedHomes } from '../support/stored-homes.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const tickets = 20;

/** What of the config a test changes. */
interface Choice {
  readonly succeeds?: boolean;
  /** The upstream of the successor; default: `new`, the upstream of the tickets. */
  readonly of?: string;
  readonly without?: readonly string[];
  readonly upstreams?: Readonly<Record<string, object>>;
  readonly prefix?: string;
}

/** An audit list of an API that ends, and tickets of the other API, each in a shard of its own. */
async function aDeployment() {
  const brokers = await kafkaBrokers();
  const topic = await newTopic('homes');
  const dir = tempDir();
  const prefix = `p-${crypto.randomUUID()}`;
  const pair = await startMovingUpstreams({});
  const file = join(dir, 'sluice.yaml');
  let shards = 2;
  const write = (choice: Choice = {}) => {
    const { succeeds = false, of = 'new', without = [], upstreams = {} } = choice;
    const audit = { type: 'logs', every: '200ms', rewind_every: '1s', reconcile_every: '1s' };
    const late = { source: 'old_audit', patience: '2s', overlap: '2h' };
    const page = { style: 'page', page_param: 'page', size_param: 'page_size' };
    const sources = {
      old_audit: {
        ...{ ...audit, upstream: 'old', path: '/audit', time: ['eventTime'], pagination: page },
      },
      tickets: {
        ...{ type: 'collection', upstream: 'new', path: '/api/ticketing/v1/tickets' },
        ...{ id: 'ticket_id', kind: 'ticket', baseline: 'full', pagination: { style: 'offset' } },
        ...{ every: '200ms', confirm_after: '0s', settle: '0s' },
      },
      ...((succeeds || without.includes('old_audit')) && {
        new_audit: {
          ...{ ...audit, upstream: of, path: '/api/logs/v1/audit', time: ['event_time'] },
          ...{ pagination: { style: 'cursor' }, ...(succeeds && { succeeds: late }) },
        },
      }),
    };
    const kept = Object.entries(sources).filter(([name]) => !without.includes(name));
    const config = {
      state: {
        dir: join(dir, 'state'),
        kafka: { brokers, prefix: choice.prefix ?? prefix, shards, session_timeout: '6s' },
      },
      upstreams: { ...pair.upstreams, ...upstreams },
      sources: Object.fromEntries(kept),
      sinks: { lake: { type: 'kafka', brokers, topic, format: 'json', exactly_once: true } },
    };
    writeFileSync(file, JSON.stringify(config));
  };
  const shardOf = (source: string) => shardOfStream(readConfig(file), source) ?? -1;
  for (write(); shardOf('old_audit') === shardOf('tickets'); write()) shards += 1;
  const homes = { old_audit: shardOf('old_audit'), tickets: shardOf('tickets') };
  for (let id = 1; id <= tickets; id += 1) pair.setTicket(id);
  /** How often the topic has what it has of tickets, and which records it lacks or repeats. */
  const delivered = async (of: readonly { readonly mark: string }[] = pair.entries) => {
    const values = (await consumeAll(topic)).map(({ value }) => value);
    const { lost, repeated } = pair.count(
      values.join('\n'),
      pair.entries.filter((entry) => of.includes(entry)),
    );
    const baselines = values.filter((value) => JSON.parse(value).metadata.log_name === 'tickets');
    return { lost, repeated, tickets: baselines.length };
  };
  const once = () => runSluice(['run', '--once', '-c', file]);
  const complete = async () =>
    await waitUntil(async () => (await delivered()).lost.length === 0, { what: 'all records' });
  return { pair, file, write, homes, delivered, once, complete, shardOf, brokers, prefix, dir };
}

const whole = { lost: [], repeated: [], tickets };

test('a successor on an upstream that has its state in another shard is refused, and with an upstream of its own it is read', async () => {
  const { pair, file, write, homes, delivered, once, complete, shardOf } = await aDeployment();
  pair.addMany(30);
  const first = await once();
  expect([first.exitCode, await delivered()], first.stderr).toEqual([0, whole]);

  write({ succeeds: true });
  const refused = await once();
  const checked = await runHere(['check', '--connect', '-c', file]);
  const why = `sources.tickets (upstream new) has its state in shard ${homes.tickets}, and this config reads it in shard ${homes.old_audit}`;
  const next =
    'new_audit succeeds old_audit, and both sources of a pair are read in one shard. Give new_audit an upstream of its own';
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining(why)]);
  expect(refused.stderr).toContain(next);
  expect([checked.exitCode, checked.stdout + checked.stderr]).toEqual([
    3,
    expect.stringContaining(why),
  ]);

  // The same while it runs: sources are read on, also where the shard may drop one, and none from its start.
  write();
  const sluice = startSluice(['run', '-c', file, '--allow-removal']);
  pair.addMany(5);
  pair.setTicket(tickets + 1);
  await complete();
  await waitUntil(async () => (await delivered()).tickets > tickets, { what: 'another ticket' });
  write({ succeeds: true });
  for (const shard of Object.values(homes)) {
    await sluice.waitForLine(
      (line) =>
        line.includes('"config_not_reloaded"') &&
        line.includes(`"shard":${shard},`) &&
        line.includes('tickets'),
    );
  }
  pair.addMany(5);
  pair.setTicket(tickets + 2);
  await complete();
  await waitUntil(async () => (await delivered()).tickets > tickets + 1, {
    what: 'a ticket of the source that stays in its shard',
  });
  expect(await delivered()).toEqual({ ...whole, tickets: tickets + 2 });

  // The test has one API client: under another address it counts as another one.
  const { base_url: url = '', ...of } = pair.upstreams.new as { readonly base_url?: string };
  const moved = { ...of, base_url: url.replace('127.0.0.1', 'localhost') };
  write({ succeeds: true, of: 'moved', upstreams: { moved } });
  expect([shardOf('new_audit'), shardOf('tickets')]).toEqual([homes.old_audit, homes.tickets]);
  pair.addMany(5);
  await complete();
  const alone = pair.only('new').add();
  await waitUntil(async () => !(await delivered()).lost.includes(alone.mark), {
    what: 'a record of the successor alone',
  });
  await sluice.kill();
  expect(await delivered()).toEqual({ ...whole, tickets: tickets + 2 });
}, 600_000);

test('a kill leaves the homes of all sources or of none', async () => {
  const brokers = await kafkaBrokers();
  const prefix = `p-${crypto.randomUUID()}`;
  await createTopic(brokers, `${prefix}.control`, { settings: { 'cleanup.policy': 'compact' } });
  const settings = { brokers: brokers.map(parseHostPort).filter((one) => one !== null), prefix };
  await using control = new Control(settings, systemClock());
  const consumer = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).consumer({
    groupId: prefix,
  });
  await consumer.connect();
  await consumer.subscribe({ topic: `${prefix}.control`, fromBeginning: true });
  /** By key, the offset of the batch of the record: Kafka stores all of a batch, or nothing. */
  const batches = new Map<string, string>();
  await consumer.run({
    eachMessage: async ({ message }) => {
      const { batchContext } = message as { batchContext?: { firstOffset: string } };
      batches.set(String(message.key), String(batchContext?.firstOffset));
    },
  });

  await control.settle(new Map(['a', 'b', 'c'].map((source, shard) => [source, shard])));

  await waitUntil(() => batches.size === 3, { what: 'three records' });
  await consumer.disconnect();
  expect(batches).toEqual(new Map(['a', 'b', 'c'].map((name) => [`["home","${name}"]`, '0'])));
  expect(await storedHomes(brokers, prefix)).toEqual({ a: 0, b: 1, c: 2 });
});

test('a state that is exported and imported has each source where the new config reads it', {
  tags: ['long'],
}, async () => {
  const { pair, write, file, delivered, once, prefix, shardOf, homes } = await aDeployment();
  pair.addMany(30);
  expect((await once()).exitCode).toBe(0);
  write({ succeeds: true });

  const exported = await runHere(['cluster', 'export', '-c', file]);
  write({ succeeds: true, prefix: `${prefix}-moved` });
  const imported = await runHere(['cluster', 'import', '-c', file]);
  expect([exported.exitCode, imported.exitCode], exported.stderr + imported.stderr).toEqual([0, 0]);
  pair.addMany(10);
  const after = await once();

  expect([after.exitCode, await delivered()], after.stderr).toEqual([0, whole]);
  expect([shardOf('tickets'), shardOf('new_audit')]).toEqual([homes.old_audit, homes.old_audit]);
});

test('after the move the old source may go once the shard is pinned', {
  tags: ['long'],
}, async () => {
  const { pair, file, write, homes, delivered, once, shardOf } = await aDeployment();
  write({ succeeds: true, without: ['tickets'] });
  pair.addMany(30);
  const first = await once();
  expect(first.exitCode, first.stderr).toBe(0);
  const cut = await runHere(['succession', 'cutover', '--force', '-c', file, 'new_audit']);
  expect(cut.exitCode, cut.stderr).toBe(0);
  pair.only('new').addMany(5);
  expect((await once()).exitCode).toBe(0);

  write({ without: ['old_audit', 'tickets'] });
  expect(shardOf('new_audit')).not.toBe(homes.old_audit);
  const refused = await once();
  expect(refused.stderr).toContain(`Set upstreams.new.shard to ${homes.old_audit}.`);
  const pinned = { new: { ...pair.upstreams.new, shard: homes.old_audit } };
  write({ without: ['old_audit', 'tickets'], upstreams: pinned });
  pair.only('new').addMany(5);
  const after = await once();

  expect(after.exitCode, after.stderr).toBe(0);
  expect(await delivered()).toMatchObject({ lost: [], repeated: [] });
});

test('a state of an older version says nothing of its sources, and is looked through', {
  tags: ['long'],
}, async () => {
  const { pair, write, delivered, once, brokers, prefix, homes } = await aDeployment();
  pair.addMany(30);
  expect((await once()).exitCode).toBe(0);
  expect(await storedHomes(brokers, prefix)).toEqual(homes);
  const producer = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  const messages = Object.keys(homes).map((source) => ({
    ...{ key: JSON.stringify(['home', source]), value: null },
  }));
  await producer.send({ topic: `${prefix}.control`, messages });
  await producer.disconnect();
  expect(await storedHomes(brokers, prefix)).toEqual({});

  write({ succeeds: true });
  const refused = await once();
  expect(refused.stderr).toContain('has its state in shard');
  write();
  const after = await once();
  expect([after.exitCode, await delivered()], after.stderr).toEqual([0, whole]);
});
