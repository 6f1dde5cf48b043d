// The log of a shard on a real Apache Kafka: the next owner has the whole state, the earlier owner writes nothing any more, and
// faults between (a dead broker, an open transaction of a dead writer, an end that is not reached) lose nothing and never
// hide a record.

import { hash, randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Admin, ProduceAcks } from '@platformatic/kafka';
import { Kafka, logLevel } from 'kafkajs';
import { expect, test, vi } from 'vitest';
import { committedRecords, LogClient } from '../../../src/cluster/log/client.ts';
import { ShardLog } from '../../../src/cluster/log/shard-log.ts';
import { ensureTopics } from '../../../src/cluster/log/topics.ts';
import { TransactionalWriter } from '../../../src/cluster/log/writer.ts';
import { parseHostPort } from '../../../src/contracts/settings.ts';
import type { Clock } from '../../../src/contracts/tools.ts';
import { openSpool } from '../../../src/hold/spool.ts';
import { changeState } from '../../../src/hold/store.ts';
import { KafkaFailure } from '../../../src/kafka/failure.ts';
import { Client } from '../../../src/kafka/platformatic-client.ts';
import { systemClock } from '../../../src/tools/clock.ts';
import { anAppend, aPage } from '../../support/a-page.ts';
import { runOnceHere, startSluice } from '../../support/cli.ts';
import { anEdge } from '../../support/edge.ts';
import { consumeAll, createTopic, kafkaBrokers, startKafka } from '../../support/kafka.ts';
import { silent } from '../../support/silent-log.ts';
import { afterThisTest, tempDir, waitUntil } from '../../support/temp.ts';

const clock = systemClock();

async function aCluster(brokers?: readonly string[]) {
  const addresses = (brokers ?? (await kafkaBrokers())).map(parseHostPort);
  return { brokers: addresses.filter((one) => one !== null), prefix: `p-${randomUUID()}` };
}

type Cluster = Awaited<ReturnType<typeof aCluster>>;

async function take(cluster: Cluster & { readonly replicationFactor?: number }): Promise<ShardLog> {
  const log = await ShardLog.take(cluster, { clock, log: silent });
  afterThisTest(() => log.cut());
  return log;
}

/** Takes the shard and opens a spool on what it holds. */
async function aSpool(cluster: Cluster) {
  const [log, dir] = [await take(cluster), tempDir()];
  const rebuilt = await log.rebuild(dir);
  const sinks = ['a', 'b'];
  const settings = { dir, sync: 'none', keepMs: 0, bytesMax: 1e9, sinks, eager: true } as const;
  const spool = await openSpool({ ...settings, log });
  afterThisTest(() => spool.close().catch(() => undefined));
  return { log, dir, spool, rebuilt };
}

/** All that a state database holds, but for what it notes for the log. */
function contents(dir: string): Readonly<Record<string, unknown>> {
  const database = new DatabaseSync(join(dir, 'sluice.db'), { readOnly: true });
  try {
    const named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'outbox'";
    const tables = database.prepare(named).all();
    return Object.fromEntries(
      tables.map(({ name }) => {
        const rows = database.prepare(`SELECT * FROM "${name}"`).all();
        // A large page's parts have numbers that nothing hangs on.
        if (name === 'page_part') return [name, rows.map(({ bytes }) => shortened(bytes))];
        const columns = (row: object) => Object.entries(row).map((one) => one.map(shortened));
        return [name, rows.map(columns)];
      }),
    );
  } finally {
    database.close();
  }
}

/** Bytes as text. */
function shortened(value: unknown): unknown {
  return value instanceof Uint8Array ? hash('sha256', value) : value;
}

test('the next owner has the whole state, and the earlier owner is refused', async () => {
  const cluster = await aCluster();
  const first = await aSpool(cluster);
  const { spool } = first;
  const large = { ...aPage({ ids: ['large'] }), body: randomBytes(3 * 1024 * 1024) };
  for (let page = 0; page < 40; page += 1) {
    await spool.append({
      ...anAppend({ ids: [`r${page}`] }),
      identities: randomBytes(20),
      trail: [{ cursor: `c${page}`, at: page * 20_000 }],
      entities: {
        put: [
          [`e${page}`, '{}'],
          ['same', `${page}`],
        ],
        drop: [`e${page - 3}`],
      },
      parents: [
        { stream: 'of', id: 'p1', as: 'found' },
        { stream: 'of', id: 'p1', as: 'asked', was: 0, rank: 1, due: page, state: { page } },
      ],
    });
  }
  await spool.append({ stream: 'audit', pages: [large] });
  const [refused] = await spool.read(3, 1);
  const deadLetter = { uid: 'u', offset: 3, reason: 'no', record: Buffer.from('{}') };
  await spool.acknowledge('a', {
    position: 30,
    mark: { m: 1 },
    deadLetters: [{ ...deadLetter, context: refused?.context ?? large.context }],
  });
  await spool.acknowledge('b', { position: 20 });

  const second = await take(cluster);
  const dir = tempDir();
  const rebuilt = await second.rebuild(dir);

  expect(contents(dir)).toEqual(contents(first.dir));
  expect(rebuilt).toMatchObject({ streams: 1, missing: null });
  expect(rebuilt.pages).toBeGreaterThanOrEqual(21);
  const late = spool.append(anAppend({ ids: ['late'] }));
  await expect(late).rejects.toMatchObject({ code: 'state_locked' });
  await expect(spool.recall('audit')).rejects.toMatchObject({ code: 'state_locked' });
  const third = await take(cluster);
  const after = tempDir();
  await third.rebuild(after);
  expect(contents(after)).toEqual(contents(dir));
});

test('dead letters have a topic of their own, and those that an older version had in the state go as well', async () => {
  const cluster = await aCluster();
  const { dir, spool } = await aSpool(cluster);
  await spool.append(anAppend({ ids: ['r'] }));
  const { context } = (await spool.read(0, 1))[0] ?? aPage({ ids: ['r'] });
  const deadLetter = { uid: 'u', offset: 0, reason: 'no', record: Buffer.from('{}'), context };
  await spool.acknowledge('a', { position: 1, deadLetters: [deadLetter] });
  const { brokers, prefix } = cluster;
  const [held] = await consumeAll(`${prefix}.dead`);
  expect(held?.key).toBe('["dead_letter",1]');
  const states = await consumeAll(`${prefix}.state`);
  expect(states.filter(({ key }) => key?.startsWith('["dead_letter"'))).toEqual([]);
  const producer = new Kafka({
    brokers: brokers.map(({ host, port }) => `${host}:${port}`),
    logLevel: logLevel.NOTHING,
  }).producer();
  await producer.connect();
  const value = held?.value.replace('"id":1', '"id":7') ?? '';
  await producer.send({
    topic: `${prefix}.state`,
    messages: [{ key: '["dead_letter",7]', value, partition: 0 }],
  });
  await producer.disconnect();
  const lettersIn = (of: string) => {
    const database = new DatabaseSync(join(of, 'sluice.db'), { readOnly: true });
    const rows = database.prepare('SELECT id, uid, offset, reason FROM dead_letter').all();
    database.close();
    return rows.map((row) => ({ ...row }));
  };
  expect(lettersIn(dir)).toHaveLength(1);

  const later = await aSpool(cluster);
  const { id: _, ...facts } = lettersIn(later.dir)[1] ?? {};
  const both = lettersIn(later.dir);
  changeState({ dir: later.dir, sync: 'none', keepMs: 0 }, (store) =>
    store.dropDeadLetters(store.deadLetters.list(null), clock.now()),
  );
  await later.spool.append(anAppend({ ids: ['late'] }));
  const last = await aSpool(cluster);

  expect(facts).toEqual({ uid: 'u', offset: 0, reason: 'no' });
  expect(both.map((one) => one.id)).toEqual([1, 7]);
  expect(lettersIn(last.dir)).toEqual([]);
  const tombstones = (await consumeAll(`${prefix}.state`)).filter(({ value }) => value === '');
  expect(tombstones.map(({ key }) => key)).toEqual(['["dead_letter",1]', '["dead_letter",7]']);
});

test('a broker that dies meanwhile holds an append up, and it is there once', async () => {
  const broker = await startKafka();
  const cluster = await aCluster([broker.addresses.plain]);
  const { spool, dir } = await aSpool(cluster);
  await spool.append(anAppend({ ids: ['before'] }));

  await broker.kill();
  const held = spool.append(anAppend({ ids: ['meanwhile'] }));
  await broker.start();
  await held;
  await spool.append(anAppend({ ids: ['after'] }));

  const other = tempDir();
  expect(await (await take(cluster)).rebuild(other)).toMatchObject({ pages: 3 });
  expect(contents(other)).toEqual(contents(dir));
});

test('a transaction that a dead writer left open below newer state does not hide that', async () => {
  const cluster = await aCluster();
  const { spool, dir } = await aSpool(cluster);
  await spool.append(anAppend({ ids: ['older'] }));
  const dead = new Client({
    brokers: cluster.brokers,
    connections: { clientId: 'dead', tls: undefined, connection: {} },
    producer: {
      ...{ clientId: 'dead', transactionalId: randomUUID(), idempotent: true, timeout: 2_000 },
      ...{ producerId: -1n, producerEpoch: -1, retries: 5, retryDelay: 5 },
    },
  });
  const transaction = await dead.beginTransaction();
  const to = { topic: `${cluster.prefix}.state`, partition: 0 };
  const messages = [{ ...to, key: Buffer.from('["checkpoint","audit"]'), value: Buffer.from('x') }];
  await transaction.send({ messages, acks: ProduceAcks.ALL });
  dead.cut();
  await spool.append(anAppend({ ids: ['newer'] }));

  const other = tempDir();
  await (await take(cluster)).rebuild(other);

  expect(contents(other)).toEqual(contents(dir));
});

test('a log that ends before where it should ends the reading in time', async () => {
  const cluster = await aCluster();
  const { spool } = await aSpool(cluster);
  await spool.append(anAppend({ ids: ['r'] }));
  const client = new LogClient(cluster, clock);
  afterThisTest(() => client.close());
  const state = { topic: `${cluster.prefix}.state`, partition: 0 };
  const end = (await client.end(state)) + 5n;

  const reading = Array.fromAsync(committedRecords(client, state, { clock, end, stalledMs: 200 }));

  await expect(reading).rejects.toMatchObject({ code: 'sink_unreachable' });
});

test('processes that start a state together create its topics, and none waits for the topics of another one', async () => {
  const cluster = await aCluster();
  let askedAgainMs = 0;
  const counting: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep(ms, signal) {
      askedAgainMs += ms;
      return clock.sleep(ms, signal);
    },
  };
  const clients = Array.from({ length: 4 }, () => new LogClient(cluster, counting));
  afterThisTest(() => {
    for (const client of clients) client.close();
  });

  await Promise.all(clients.map((client) => ensureTopics(client, cluster)));

  // A repeated request for an existing topic would take 30 s.
  expect(askedAgainMs).toBeLessThan(20_000);
});

test('pages that would go by their age are refused before anything is written', async () => {
  const cluster = await aCluster();
  const addresses = await kafkaBrokers();
  await createTopic(addresses, `${cluster.prefix}.pages`, { settings: { 'retention.ms': '1000' } });

  await expect(take(cluster)).rejects.toMatchObject({
    code: 'sink_refused',
    message: expect.stringContaining('retention.ms is 1000 and has to be -1'),
  });
});

test('all topics are looked at by one request, and a wrong one is named before a missing one is created', async () => {
  const cluster = await aCluster();
  const addresses = await kafkaBrokers();
  const { prefix } = cluster;
  await createTopic(addresses, `${prefix}.shards`, { settings: { 'cleanup.policy': 'delete' } });
  await createTopic(addresses, `${prefix}.dead`, { settings: { 'cleanup.policy': 'delete' } });
  const client = new LogClient(cluster, clock);
  afterThisTest(() => client.close());

  await expect(ensureTopics(client, cluster)).rejects.toMatchObject({
    code: 'sink_refused',
    message: expect.stringContaining(`${prefix}.dead: cleanup.policy is delete and has to be`),
  });
  expect(await client.has(`${prefix}.pages`)).toBe(false);

  const other = await aCluster();
  await ensureTopics(client, other);
  const requests = vi.spyOn(client, 'anywhere');
  await ensureTopics(client, other);
  expect(requests).toHaveBeenCalledTimes(1);
});

test('a clock that is two hours ahead has no effect, or is reported if the topics use it', async () => {
  const [cluster, other] = [await aCluster(), await aCluster()];
  const settings = { 'message.timestamp.type': 'CreateTime', 'cleanup.policy': 'compact' };
  await createTopic(await kafkaBrokers(), `${other.prefix}.state`, { settings });
  const logs = [await take(cluster), await take(other)] as const;
  for (const log of logs) await log.rebuild(tempDir());
  const right = Date.now;
  vi.spyOn(Date, 'now').mockImplementation(() => right() + 2 * 3_600_000);
  afterThisTest(() => vi.restoreAllMocks());

  await logs[0].commit([]);
  await expect(logs[1].commit([])).rejects.toMatchObject({
    code: 'sink_refused',
    message: expect.stringContaining('INVALID_TIMESTAMP'),
    next: expect.stringContaining('Set this machine’s clock right'),
  });
});

test('topics have the requested number of replicas, or none is created', async () => {
  const cluster = await aCluster();

  await expect(take({ ...cluster, replicationFactor: 2 })).rejects.toMatchObject({
    // Brokers may be on their way.
    code: 'sink_unreachable',
    message: expect.stringMatching(/REPLICATION_FACTOR/),
  });
  await take({ ...cluster, replicationFactor: 1 });
});

test('a sink gets the numbers of pages that were deleted before it had them', async () => {
  const cluster = await aCluster();
  const { spool } = await aSpool(cluster);
  for (let page = 0; page < 10; page += 1) {
    await spool.append({ stream: 'audit', pages: [aPage({ ids: [`r${page}`] })] });
  }
  await spool.acknowledge('disk', { position: 2, mark: null });
  const client = new LogClient(cluster, clock);
  afterThisTest(() => client.close());
  const pages = { topic: `${cluster.prefix}.pages`, partition: 0 };
  const places = await Array.fromAsync(
    committedRecords(client, pages, { clock, stalledMs: 9_000 }),
  );
  await client.deleteBefore(pages, places.flat()[6]?.offset ?? 0n);
  const { upstreams, env } = await anEdge(3);
  const dir = tempDir();
  const brokers = JSON.stringify(cluster.brokers.map(({ host, port }) => `${host}:${port}`));
  writeFileSync(
    join(dir, 'c.yaml'),
    `state: { dir: ${dir}/state, kafka: { brokers: ${brokers}, prefix: ${cluster.prefix} } }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge } }
sinks: { disk: { type: file, path: ${dir}/out, format: json } }
`,
  );

  const { exitCode } = await runOnceHere(join(dir, 'c.yaml'), env);

  const lines = readFileSync(join(dir, 'out'), 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  expect(lines.filter((line) => line.includes('events 2 to 5 are gone from Kafka'))).toHaveLength(
    1,
  );
  expect(exitCode).toBe(0);
});

test('a deleted topic of the state is named to the operator, and held events are delivered', async () => {
  const cluster = await aCluster();
  const { spool, log } = await aSpool(cluster);
  for (let page = 0; page < 10; page += 1) await spool.append(anAppend({ ids: [`r${page}`] }));
  log.cut();
  const bootstrapBrokers = cluster.brokers.map(({ host, port }) => `${host}:${port}`);
  const admin = new Admin({ clientId: 'operator', bootstrapBrokers });
  afterThisTest(() => admin.close());
  const topic = `${cluster.prefix}.state`;
  await admin.deleteTopics({ topics: [topic] });
  await waitUntil(async () => !(await admin.listTopics()).includes(topic), { what: 'its end' });
  const { upstreams, env } = await anEdge(3);
  const dir = tempDir();
  writeFileSync(
    join(dir, 'c.yaml'),
    `state: { dir: ${dir}/state, kafka: { brokers: ${JSON.stringify(bootstrapBrokers)}, prefix: ${cluster.prefix} } }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge } }
sinks: { disk: { type: file, path: ${dir}/out, format: json } }
`,
  );

  const { exitCode, stderr } = await startSluice(['run', '-c', join(dir, 'c.yaml'), '--once'], {
    env,
  }).exited;

  expect(stderr).toContain('the state in Kafka is not whole');
  expect(stderr).toContain(`the cause of a deleted or recreated topic ${topic}`);
  expect(stderr).not.toContain('Check the disk');
  expect(stderr).toMatch(/events_lost\W+unknown/);
  const lines = readFileSync(join(dir, 'out'), 'utf8').trim().split('\n');
  expect(lines.filter((line) => line.includes('source.checkpoint_reset'))).toHaveLength(1);
  expect(lines).toHaveLength(10 + 1 + 3);
  expect(exitCode, stderr).toBe(0);
});

test('a commit whose answer is lost is not written again', async () => {
  const cluster = await aCluster();
  const { spool, dir } = await aSpool(cluster);
  await spool.append(anAppend({ ids: ['before'] }));
  const { write } = TransactionalWriter.prototype;
  const lost = vi.spyOn(TransactionalWriter.prototype, 'write');
  const late = vi.spyOn(TransactionalWriter.prototype, 'begin');
  afterThisTest(() => vi.restoreAllMocks());
  lost.mockImplementationOnce(async function (this: TransactionalWriter, records) {
    await write.call(this, records);
    const failure = new KafkaFailure('passing', 'the answer is lost', { answered: false });
    late.mockRejectedValueOnce(failure); // nor can the log be queried at once
    throw failure;
  });

  await spool.append(anAppend({ ids: ['once'] }));
  await spool.append(anAppend({ ids: ['after'] }));

  const client = new LogClient(cluster, clock);
  afterThisTest(() => client.close());
  const pages = { topic: `${cluster.prefix}.pages`, partition: 0 };
  const reading = { clock, stalledMs: 9_000 };
  const records = await Array.fromAsync(committedRecords(client, pages, reading));
  expect(records.flat().map(({ key }) => String(key))).toEqual(
    [0, 1, 2].map((n) => `["page",${n}]`),
  );
  const other = tempDir();
  await (await take(cluster)).rebuild(other);
  expect(contents(other)).toEqual(contents(dir));
});

test('a client that does not answer is given up, and what it was to write is there once', async () => {
  const cluster = await aCluster();
  const impatient: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep: (ms, signal) => clock.sleep(ms > 30_000 ? 1_000 : ms, signal),
  };
  const log = await ShardLog.take(cluster, { clock: impatient, log: silent });
  afterThisTest(() => log.cut());
  await log.rebuild(tempDir());
  const mute = vi.spyOn(TransactionalWriter.prototype, 'write');
  afterThisTest(() => vi.restoreAllMocks());
  mute.mockImplementationOnce(() => new Promise(() => undefined));

  await log.commit([{ table: 'later', key: ['once'], value: Buffer.from('{}') }]);

  const client = new LogClient(cluster, clock);
  afterThisTest(() => client.close());
  const state = { topic: `${cluster.prefix}.state`, partition: 0 };
  const records = await Array.fromAsync(
    committedRecords(client, state, { clock, stalledMs: 9_000 }),
  );
  const keys = records.flat().map(({ key }) => String(key));
  expect(keys).toEqual(['["later","once"]', '["transaction"]']);
});

test('a stray record of somebody else in a state of ours is left alone', async () => {
  const cluster = await aCluster();
  const { spool, dir } = await aSpool(cluster);
  await spool.append(anAppend({ ids: ['ours'] }));
  const brokers = cluster.brokers.map(({ host, port }) => `${host}:${port}`);
  const producer = new Kafka({ brokers, logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  const messages = [{ key: null, value: 'hello' }];
  await producer.send({ topic: `${cluster.prefix}.pages`, messages });
  await producer.disconnect();

  const other = tempDir();
  await (await take(cluster)).rebuild(other);

  expect(contents(other)).toEqual(contents(dir));
});

test('pages go from the log once every sink has them, and no other', async () => {
  const cluster = await aCluster();
  const { spool, dir } = await aSpool(cluster);
  for (let page = 0; page < 10; page += 1) await spool.append(anAppend({ ids: [`r${page}`] }));
  await spool.acknowledge('a', { position: 9 });
  await spool.acknowledge('b', { position: 6 });
  const client = new LogClient(cluster, clock);
  afterThisTest(() => client.close());
  const pages = { topic: `${cluster.prefix}.pages`, partition: 0 };

  await waitUntil(async () => (await client.start(pages)) > 0n, { what: 'pages to be deleted' });

  const other = tempDir();
  const rebuilt = await (await take(cluster)).rebuild(other);
  expect(rebuilt).toMatchObject({ pages: 4, missing: null });
  expect(contents(other)).toEqual(contents(dir));
});

test('changes that a killed process has not sent are dropped with its cache', async () => {
  const [cluster, dir] = [await aCluster(), tempDir()];
  await (await take(cluster)).rebuild(dir);
  changeState({ dir, sync: 'full', keepMs: 0 }, (store) =>
    store.streams.saveCheckpoint('s', {}, 1),
  );

  const rebuilt = await (await take(cluster)).rebuild(dir);

  expect(rebuilt).toEqual({ streams: 0, pages: 0, missing: null });
});
