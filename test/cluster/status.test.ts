// `sluice status` and its siblings on each machine of a state in Kafka with several shards: each machine shows the shards
// that run there, and counts nothing twice.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { someEdges } from '../support/edges.ts';
import { kafkaBrokers, newTopic } from '../support/kafka.ts';
import { freePorts, tempDir, waitUntil } from '../support/temp.ts';

const names = ['east', 'west'];
const events = 100;

interface Printed {
  readonly running: string | null;
  readonly standing_by: string | null;
  readonly shards?: { readonly owned: readonly number[]; readonly elsewhere: readonly number[] };
  readonly streams: readonly {
    readonly name: string;
    readonly state: string;
    readonly checkpoint_at: string | null;
  }[];
  readonly sinks: readonly {
    readonly name: string;
    readonly state: string;
    readonly position: number;
    readonly backlog: number;
    readonly dead_letters: number;
  }[];
  readonly orphans: { readonly streams: readonly string[]; readonly sinks: readonly string[] };
}

test('each machine shows its own shards once, names the others, and says who stands by', async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('status');
  const prefix = `p-${crypto.randomUUID()}`;
  const [nobody] = await freePorts(1);
  const dir = tempDir();
  const { upstreams, env, apart } = await someEdges(names, events);
  const config = (instance: string, shards: number) => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms, page_limit: 50 }`).join('\n')}
sinks:
  lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true }
  siem: { type: syslog, address: "tcp://127.0.0.1:${nobody}", format: syslog }
`,
    );
    return file;
  };
  const shards = apart((count) => config('any', count));
  const file = (instance: string) => config(instance, shards);
  const here = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runHere(args, env);
    return { exitCode, stdout, all: stdout + stderr };
  };
  const status = async (instance: string) =>
    JSON.parse((await here('status', '--json', '-c', file(instance))).stdout) as Printed;
  /** Streams of a machine that run there, with the position and backlog of each sink. */
  const facts = ({ streams, sinks, orphans }: Printed) => [
    streams.filter(({ state }) => state !== 'elsewhere').length,
    sinks.map(({ position, backlog }) => [position, backlog]),
    [...orphans.streams, ...orphans.sinks],
  ];
  let last: unknown = null;
  const shows = async (instance: string, want: readonly unknown[]) =>
    await waitUntil(
      async () => {
        last = await status(instance);
        return JSON.stringify(facts(last as Printed)) === JSON.stringify(want);
      },
      {
        what: () => `${instance} to show ${JSON.stringify(want)}, not ${JSON.stringify(last)}`,
        everyMs: 500,
        timeoutMs: 90_000,
      },
    );
  const start = (instance: string) => startSluice(['run', '-c', file(instance)], { env });
  const first = start('one');
  await shows('one', [
    2,
    [
      [2 * events, 0],
      [0, 2 * events],
    ],
    [],
  ]);
  // A shard moves: its copy that stays on the disk does not count.
  const second = start('two');
  await shows('two', [
    1,
    [
      [events, 0],
      [0, events],
    ],
    [],
  ]);
  await shows('one', [
    1,
    [
      [events, 0],
      [0, events],
    ],
    [],
  ]);
  const third = start('three');
  await third.waitForLine('standing by');
  await shows('three', [
    0,
    [
      [0, 0],
      [0, 0],
    ],
    [],
  ]);

  const [one, two, three] = [await status('one'), await status('two'), await status('three')];
  expect([one.running, two.running, three.running]).toEqual([
    expect.stringContaining(`process ${first.pid} `),
    expect.stringContaining(`process ${second.pid} `),
    expect.stringContaining(`process ${third.pid} `),
  ]);
  expect([one.standing_by, two.standing_by]).toEqual([null, null]);
  expect(three.standing_by).toContain('other processes have the shards');
  expect([...(one.shards?.owned ?? []), ...(two.shards?.owned ?? [])].sort()).toEqual(
    [...(three.shards?.elsewhere ?? [])].sort(),
  );
  expect(three.shards?.owned).toEqual([]);
  // Each stream is listed on each machine, and has facts only where it runs.
  for (const { streams } of [one, two, three]) expect(streams).toHaveLength(names.length);
  const [mine] = one.streams.filter(({ state }) => state !== 'elsewhere');
  const [other] = one.streams.filter(({ state }) => state === 'elsewhere');
  expect(other).toMatchObject({ checkpoint_at: null });
  const text = await here('status', '-c', file('one'));
  expect(text.all).toContain(`shard ${one.shards?.elsewhere} runs in another process`);
  expect(text.all).not.toContain('not in the config');
  const idle = await here('status', '-c', file('three'));
  expect(idle.all).not.toContain('not running');
  expect(idle.all).toContain('stands by');

  const explained = await here('explain', other?.name ?? '', '-c', file('one'));
  expect(explained.all).toContain('runs in another process');
  expect((await here('explain', mine?.name ?? '', '-c', file('one'))).all).not.toContain(
    'another process',
  );
  // The numbers of a sink are the sum of all shards, so each machine shows the same.
  for (const instance of ['one', 'three']) {
    const receipt = await here('receipt', '--sink', 'lake', '-c', file(instance));
    expect(receipt.all.match(/^position: \d+$/gm), receipt.all).toEqual(
      names.map(() => `position: ${events}`),
    );
    expect(receipt.all.match(/^stream .*: 20.*$/gm)).toHaveLength(names.length);
    const waits = await here('receipt', '--sink', 'siem', '-c', file(instance));
    expect(waits.all.match(/^waiting: \d+$/gm)).toEqual(names.map(() => `waiting: ${events}`));
  }
  for (const sluice of [third, second, first]) {
    expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
  }
  // The group lists a process that has ended until its session is over.
  await waitUntil(
    async () => (await here('status', '-c', file('three'))).all.startsWith('not running'),
    { what: 'no process to be listed', everyMs: 500, timeoutMs: 90_000 },
  );
}, 400_000);
