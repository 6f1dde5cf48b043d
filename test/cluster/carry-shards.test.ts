// Import of a state from one SQLite database into several shards in a real Apache Kafka, and export back: nothing is read
// again, each sink gets each event once, also after kills, and an archive continues in one log per shard.

import { hash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseSigningKey, signingKeyText } from '../../src/archive/note.ts';
import { Control } from '../../src/cluster/control.ts';
import { ShardLog } from '../../src/cluster/log/shard-log.ts';
import { readConfig } from '../../src/config/config.ts';
import { shardsOf } from '../../src/config/shards.ts';
import { parseHostPort } from '../../src/contracts/settings.ts';
import { importNote } from '../../src/run/cluster.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { someEdges } from '../support/edges.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const events = 60;
const names = ['east', 'south', 'west'];
const keyText = signingKeyText('carried', Buffer.alloc(32, 1));
const once = ['--once', '--log-level', 'error'];

/** What `archive verify` says. */
interface Report {
  readonly records: number;
  readonly remarks: readonly string[];
}

const uidsOf = (lines: string) =>
  lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { metadata: { uid: string; log_name?: string } })
    .filter(({ metadata }) => metadata.log_name !== 'sluice')
    .map(({ metadata }) => metadata.uid);

/** Three upstreams of three shards, and configs of one deployment with its state in SQLite and in Kafka. */
async function aDeployment() {
  const brokers = await kafkaBrokers();
  const topic = await newTopic('carried');
  const dir = tempDir();
  const prefix = `p-${crypto.randomUUID()}`;
  const { upstreams, env, apart, grow } = await someEdges(names, events, { KEY: keyText });
  let takes = true;
  const received: string[] = [];
  const receiver = await startHttpReceiver({
    answer: ({ body }) => {
      if (takes) received.push(...uidsOf(String(body)));
      return { answer: 'reply', status: takes ? 200 : 503 };
    },
  });
  const config = (name: string, state: string, own: string) => {
    const file = join(dir, `${name}.yaml`);
    writeFileSync(
      file,
      `state: { dir: ${dir}/state${state} }
${upstreams}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms, page_limit: 7 }`).join('\n')}
sinks:
  lake: { type: kafka, brokers: ${JSON.stringify(brokers)}, topic: ${topic}, format: json, exactly_once: true }
  disk: { type: file, path: "${dir}/out${own}.ndjson", format: json }
  post: { type: http, url: "${receiver.url}", format: json, batch: { events: 5 }, retry: { min: 100ms, max: 300ms } }
  proof: { type: archive, shared: true, location: ${dir}/archive${own && '-shards'}, signing_key: "\${env:KEY}", checkpoint_every: 1s }
`,
    );
    return file;
  };
  const inKafka = (shards: number) =>
    config(
      'kafka',
      `, kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s }`,
      '-{partition}',
    );
  const shards = apart(inKafka);
  const reported = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runHere(args, env);
    return { exitCode, all: stdout + stderr };
  };
  /** A process, since each shard's is one. */
  const ran = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runSluice(['run', ...args, ...once], { env });
    return { exitCode, all: stdout + stderr };
  };
  return {
    ...{ dir, grow, received, told: reported, ran, shards, prefix, env },
    sqlite: config('sqlite', '', ''),
    kafka: inKafka(shards),
    place: { brokers: brokers.map(parseHostPort).filter((one) => one !== null), prefix, shards },
    take: (isTaken: boolean) => {
      takes = isTaken;
    },
    /** What all files of the sink hold. */
    written: () =>
      readdirSync(dir)
        .filter((name) => name.startsWith('out'))
        .filter((name) => name.endsWith('.ndjson'))
        .flatMap((name) => uidsOf(readFileSync(join(dir, name), 'utf8'))),
    inTopic: async () => (await consumeAll(topic)).flatMap(({ value }) => uidsOf(value)),
  };
}

test('into three shards and back, killed on the way: each sink has each event once', {
  tags: ['long'],
  timeout: 600_000,
}, async () => {
  const {
    dir,
    grow,
    received,
    told: reported,
    ran,
    sqlite,
    kafka,
    take,
    written,
    inTopic,
    env,
    prefix,
  } = await aDeployment();
  const total = (rounds: number) => names.length * (events + 20 * rounds);
  const all = async () =>
    [written(), await inTopic(), received].map((uids) => [uids.length, new Set(uids).size]);
  const each = (count: number) => [count, count];

  take(false);
  const first = startSluice(['run', '-c', sqlite], { env });
  const read = async () =>
    (await all())
      .slice(0, 2)
      .flat()
      .every((count) => count >= total(0));
  await waitUntil(read, { what: 'all records in two sinks', everyMs: 500 });
  await first.kill();
  expect(await all()).toEqual([each(total(0)), each(total(0)), each(0)]);

  const killed = startSluice(['cluster', 'import', '-c', kafka], { env });
  const state = `${prefix}.state`;
  await waitUntil(async () => await consumeAll(state, { until: 1 }).catch(() => null), {
    what: 'an import that has begun',
  });
  await killed.kill('SIGKILL');
  const imported = await reported('cluster', 'import', '-c', kafka);
  // It may have been through by then.
  expect(imported.all).toMatch(/moved from|in Kafka already/);
  expect(await reported('cluster', 'import', '-c', kafka)).toEqual({
    exitCode: 2,
    all: expect.stringContaining(`there is a state ${prefix} in Kafka already`),
  });

  take(true);
  grow(20);
  const there = await ran('-c', kafka, '--timeout', '60s');
  expect(there.exitCode, there.all).toBe(0);
  expect(await all()).toEqual([each(total(1)), each(total(1)), each(total(1))]);

  // What some sinks have and one lacks, of each shard.
  take(false);
  grow(20);
  expect((await ran('-c', kafka, '--timeout', '12s')).exitCode).toBe(1);
  const exported = await reported('cluster', 'export', '-c', kafka);
  expect(exported.exitCode, exported.all).toBe(0);
  expect(exported.all).toMatch(/3 streams and \d+ pages moved/);

  take(true);
  grow(20);
  const back = await reported('run', '-c', sqlite, ...once);
  expect(back.exitCode, back.all).toBe(0);
  expect(await all()).toEqual([each(total(3)), each(total(3)), each(total(3))]);

  // The earlier archive, which continues, and one of each shard: each is complete, except for gaps that another one
  // explains.
  const { vkey } = parseSigningKey(keyText).verifier;
  const reports: Report[] = [];
  for (const name of ['archive', 'archive-shards']) {
    const verify = ['archive', 'verify', join(dir, name), '--key', vkey, '--json'];
    const whole = await runHere(verify, env);
    expect([0, 3], whole.stdout + whole.stderr).toContain(whole.exitCode);
    reports.push(...[JSON.parse(whole.stdout) as Report | Report[]].flat());
  }
  expect(reports.reduce((sum, { records }) => sum + records, 0)).toBe(total(3));
  // Each shard's log says that its stream continues from there.
  const before = hash('sha256', readFileSync(join(dir, 'archive', 'archive.json')), 'hex');
  const continued = reports.flatMap(({ remarks }) => remarks.filter((one) => one.includes(before)));
  expect(continued).toHaveLength(names.length);
});

test('no process works on an interrupted import, and a repeated import resumes it', {
  tags: ['long'],
}, async () => {
  const { told: reported, ran, sqlite, kafka, written, place, env, shards } = await aDeployment();
  expect((await reported('run', '-c', sqlite, ...once)).exitCode).toBe(0);
  const whole = await reported('cluster', 'import', '-c', kafka);
  expect(whole.exitCode, whole.all).toBe(0);
  expect(whole.all).toMatch(/3 streams and \d+ pages moved/);
  // As it was before the last of its shards was through.
  const last = shardsOf(readConfig(kafka, { env })).at(-1) ?? 0;
  const log = await ShardLog.take({ ...place, shard: last }, { clock: systemClock(), log: silent });
  const scratch = tempDir();
  await log.rebuild(scratch);
  const facts = JSON.stringify({ ...importNote(scratch), state: 'begun' });
  const row = { kind: 'cluster', name: 'import', facts, at: 0 };
  const value = Buffer.from(`${JSON.stringify(row)}\n`);
  await log.commit([{ table: 'note', key: ['cluster', 'import'], value }]);
  await log.close();
  const control = new Control(place, systemClock());
  await control.readAll();
  await control.importing(true);
  await control.close();

  for (const refused of [
    await ran('-c', kafka),
    await reported('cluster', 'export', '-c', kafka),
  ]) {
    expect(refused).toEqual({ exitCode: 1, all: expect.stringContaining('broken off') });
  }
  const imported = await reported('cluster', 'import', '-c', kafka);
  expect(imported.exitCode, imported.all).toBe(0);
  expect(imported.all).toContain('1 stream and');
  expect((await ran('-c', kafka)).exitCode).toBe(0);
  expect([written().length, new Set(written()).size]).toEqual(Array(2).fill(3 * events));

  // Nothing of another database goes there, and the number of shards stays.
  expect((await reported('run', '-c', sqlite, ...once)).exitCode).toBe(0);
  expect(await reported('cluster', 'import', '-c', kafka)).toEqual({
    exitCode: 2,
    all: expect.stringContaining('in Kafka already'),
  });
  writeFileSync(kafka, readFileSync(kafka, 'utf8').replace(`shards: ${shards}`, 'shards: 1'));
  expect(await reported('cluster', 'export', '-c', kafka)).toEqual({
    exitCode: 2,
    all: expect.stringContaining(`has ${shards}`),
  });
});
