// Faults of the owners of a state in Kafka, on a real Apache Kafka: a process that is frozen in a transaction for longer than
// its session, and brokers that stop one after the other.

import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Admin, Connection, describeTransactionsV0 } from '@platformatic/kafka';
import { expect, test } from 'vitest';
import { parseHostPort } from '../../src/contracts/settings.ts';
import { runHere, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import {
  consumeAll,
  createTopic,
  kafkaBrokers,
  newTopic,
  startKafka,
  startKafkaCluster,
} from '../support/kafka.ts';
import { testSome } from '../support/long.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const sessionS = 6;

test('frozen within a transaction for twice the session: its successor has all, and each event is sent once', async () => {
  let events = 1_000;
  const brokers = await kafkaBrokers();
  const topic = await newTopic('frozen');
  const prefix = `p-${crypto.randomUUID()}`;
  const { sandbox, upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const start = (name: string) => {
    const file = join(dir, `${name}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${name}
  kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, session_timeout: ${sessionS}s, instance: ${name} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms, page_limit: 20 }
sinks:
  lake: { type: kafka, brokers: ${JSON.stringify(brokers)}, topic: ${topic}, format: json, exactly_once: true }
`,
    );
    return startSluice(['run', '-c', file], { env });
  };
  const broker = parseHostPort(brokers[0] ?? '');
  if (broker === null) throw new Error('there is a broker');
  const connection = new Connection('sluice-test');
  await connection.connect(broker.host, broker.port);
  afterThisTest(() => connection.close());
  const isOpen = async () => {
    const asked = describeTransactionsV0.api.async(connection, [`${prefix}.shard.0`]);
    return (await asked).transactionStates[0]?.transactionState === 'Ongoing';
  };

  const first = start('first');
  await first.waitForLine('running');
  const second = start('second');
  await second.waitForLine('standing by');
  await waitUntil(
    async () => {
      // There is something to write for as long as this takes.
      sandbox.control.grow('/v1/audit/events', 5);
      events += 5;
      process.kill(first.pid, 'SIGSTOP');
      if (await isOpen()) return true;
      process.kill(first.pid, 'SIGCONT');
      return false;
    },
    { what: 'it to be stopped within a transaction', everyMs: 7 },
  );
  await delay(2_000 * sessionS);
  expect(second.stderr.some((line) => line.includes('running'))).toBe(true);
  process.kill(first.pid, 'SIGCONT');
  const ended = await first.exited;
  expect([ended.exitCode, ended.stderr]).toEqual([1, expect.stringContaining('state_locked')]);

  const records = await consumeAll(topic, { until: events });
  const uids = records.map(({ headers }) => headers.uid);
  expect([new Set(uids).size, uids.length]).toEqual([events, events]);
  expect((await second.kill('SIGTERM')).exitCode).toBe(0);
});

test('three brokers stopped and killed in turn: the state and the sink continue with the next leader, and each event is sent once', {
  tags: ['long'],
}, async () => {
  const growth = 100;
  const cluster = await startKafkaCluster(3);
  const brokers = cluster.map(({ addresses }) => addresses.plain);
  await createTopic(brokers, 'lake', { settings: { 'min.insync.replicas': '2' } });
  const { sandbox, upstreams, env } = await anEdge(growth);
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  writeFileSync(
    file,
    `state:
  dir: ${dir}/state
  kafka: { brokers: ${JSON.stringify(brokers)}, prefix: led, session_timeout: 10s, instance: one }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 500ms, page_limit: 20 }
sinks:
  lake: { type: kafka, brokers: ${JSON.stringify(brokers)}, topic: lake, format: json, exactly_once: true }
`,
  );
  const sluice = startSluice(['run', '-c', file], { env });
  let events = growth;
  const delivered = async () => await consumeAll('lake', { brokers, until: events });
  await delivered();
  const checked = await runHere(['check', '-c', file, '--connect'], env);
  expect(checked.stdout).toContain('3 of 3 brokers answer');
  expect(checked.stdout).toContain('topic led.pages: 1 partition, each on 3 brokers');

  for (const [index, broker] of cluster.entries()) {
    if (index === 1) await broker.kill();
    else await broker.stop();
    sandbox.control.grow('/v1/audit/events', growth);
    events += growth;
    await delivered();
    await broker.start();
    const whole = async () => {
      const { stdout } = await runHere(['check', '-c', file, '--connect'], env);
      return stdout.includes('3 of 3 brokers answer') && !stdout.includes('FAIL');
    };
    await waitUntil(whole, { what: `broker ${index + 1} to be back`, everyMs: 1_500 });
  }

  const uids = (await delivered()).map(({ headers }) => headers.uid);
  expect([new Set(uids).size, uids.length]).toEqual([events, events]);
  expect((await sluice.kill('SIGTERM')).exitCode, sluice.stderr.join('\n')).toBe(0);
});

test('stopped while Kafka is away the process ends, and uncommitted records are read again', {
  tags: ['long'],
}, async () => {
  const kafka = await startKafka();
  const { sandbox, upstreams, env } = await anEdge(50);
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  const out = join(dir, 'out.ndjson');
  writeFileSync(
    file,
    `state: { dir: ${dir}/state, kafka: { brokers: ["${kafka.addresses.plain}"], prefix: away } }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms, page_limit: 20 }
sinks:
  disk: { type: file, path: ${out}, format: json }
shutdown: { timeout: 1s }
`,
  );
  const lines = () => {
    try {
      return readFileSync(out, 'utf8').split('\n').length - 1;
    } catch {
      return 0;
    }
  };
  const sluice = startSluice(['run', '-c', file], { env });
  await waitUntil(() => lines() === 50, { what: () => `50 events of ${lines()}` });

  await kafka.kill();
  sandbox.control.grow('/v1/audit/events', 50);
  await sluice.waitForLine('kafka_commit_failed');
  process.kill(sluice.pid, 'SIGTERM');
  const ended = await sluice.exited;
  expect([ended.exitCode, ended.stderr]).toEqual([1, expect.stringContaining('accept the rest')]);

  await kafka.start();
  const again = await runHere(['run', '-c', file, '--once', '--log-level', 'error'], env);
  expect(again.exitCode, again.stderr).toBe(0);
  expect(lines()).toBe(100);
});

test('a config that changes while Kafka is away is applied once Kafka is back', {
  tags: ['long'],
}, async () => {
  const kafka = await startKafka();
  const { sandbox, upstreams, env } = await anEdge(20);
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  const brokers = JSON.stringify([kafka.addresses.plain]);
  const write = (sinks: readonly string[]) =>
    writeFileSync(
      file,
      `state: { dir: ${dir}/state, kafka: { brokers: ${brokers}, prefix: changed, shards: 2, session_timeout: 6s } }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 500ms }
sinks:
${sinks.map((name) => `  ${name}: { type: file, path: "${dir}/${name}-{partition}.ndjson", format: json }`).join('\n')}
`,
    );
  const lines = (name: string) =>
    readdirSync(dir)
      .filter((file) => new RegExp(`^${name}-\\d+\\.ndjson$`).test(file))
      .reduce((sum, file) => sum + readFileSync(join(dir, file), 'utf8').split('\n').length - 1, 0);
  write(['one']);
  const sluice = startSluice(['run', '-c', file], { env });
  await waitUntil(() => lines('one') === 20, { what: () => `20 events of ${lines('one')}` });

  await kafka.kill();
  write(['one', 'two']);
  await sluice.waitForLine('"config_not_reloaded"');
  await kafka.start();
  await waitUntil(
    () => {
      sandbox.control.grow('/v1/audit/events', 1);
      return lines('two') > 0;
    },
    {
      what: () => `events in the added sink; ${sluice.stderr.slice(-30).join('\n')}`,
      everyMs: 500,
    },
  );
  expect((await sluice.kill('SIGTERM')).exitCode, sluice.stderr.join('\n')).toBe(0);
});

testSome(1, [
  { gone: 'pages', again: false, says: 'there is no topic' },
  { gone: 'state', again: false, says: 'there is no topic' },
  { gone: 'state', again: true, says: 'was recreated while it was in use' },
])(
  'the topic of $gone is deleted while it is in use (recreated: $again): the process ends and reports it, and nothing is lost',
  async ({ gone, again, says }) => {
    const brokers = [...(await kafkaBrokers())];
    const { sandbox, upstreams, env } = await anEdge(50);
    const dir = tempDir();
    const file = join(dir, 'sluice.yaml');
    const out = join(dir, 'out.ndjson');
    const prefix = `p-${crypto.randomUUID()}`;
    const topic = `${prefix}.${gone}`;
    writeFileSync(
      file,
      `state: { dir: ${dir}/state, kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, session_timeout: ${sessionS}s } }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms, page_limit: 20 }
sinks:
  disk: { type: file, path: ${out}, format: json }
`,
    );
    const uids = () => {
      const lines = existsSync(out) ? readFileSync(out, 'utf8').split('\n').slice(0, -1) : [];
      const records = lines.filter((line) => !/source\.(checkpoint_reset|gap)/.test(line));
      return records.map(
        (line) => (JSON.parse(line) as { metadata: { uid: string } }).metadata.uid,
      );
    };
    const sluice = startSluice(['run', '-c', file], { env });
    await waitUntil(() => uids().length === 50, { what: '50 events' });
    const admin = new Admin({ clientId: 'operator', bootstrapBrokers: brokers });
    afterThisTest(() => admin.close());

    await admin.deleteTopics({ topics: [topic] });
    const settings = { 'cleanup.policy': 'compact' };
    if (again) await createTopic(brokers, topic, { settings });
    let records = 50;
    const growing = setInterval(() => {
      sandbox.control.grow('/v1/audit/events', 1);
      records += 1;
    }, 500);
    const { exitCode, stderr } = await sluice.exited.finally(() => clearInterval(growing));

    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(topic)]);
    expect(stderr).toMatch(new RegExp(`"state_damaged".*${says}`));
    const next = await startSluice(['run', '-c', file, '--once'], { env }).exited;
    expect(next.exitCode, next.stderr).toBe(0);
    if (gone === 'state') expect(next.stderr).toContain('the state in Kafka is not whole');
    const delivered = uids();
    expect(delivered).toHaveLength(new Set(delivered).size);
    expect(delivered).toHaveLength(records);
    // What was repaired is in Kafka: another machine continues from there.
    rmSync(join(dir, 'state'), { recursive: true });
    const other = await startSluice(['run', '-c', file, '--once'], { env }).exited;
    expect(other.exitCode, other.stderr).toBe(0);
    expect(other.stderr).not.toContain('the state in Kafka is not whole');
    expect(uids()).toHaveLength(records);
  },
);
