// Processes restarted in turn, as a rolling update does it, on a real Apache Kafka: each is waited for until it is ready, and
// the sink that delivers once has every event once.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type RunningSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { testSome } from '../support/long.ts';
import { freePorts, tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const restarts = 6;
const growth = 30;

/** Generations of the group that a process has seen, in order. */
const generationsOf = ({ stderr }: RunningSluice): readonly number[] =>
  [...stderr.join('\n').matchAll(/"generation":(\d+)/g)].map(([, generation]) =>
    Number(generation),
  );

testSome(1, [
  ['every event once, and each is ready also while it stands by', true],
  ['every event once, and where places wait for who has them the group has no rebalance', false],
])('three processes restarted in turn, each twice: %s', async (_, leaves) => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('rolling');
  const prefix = `p-${crypto.randomUUID()}`;
  const { sandbox, upstreams, env } = await anEdge(growth);
  const dir = tempDir();
  const ports = await freePorts(3);
  const start = (index: number) => {
    const file = join(dir, `${index}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${index}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, session_timeout: ${leaves ? '6s' : '30s'}, instance: sluice-${index}, leave_at_end: ${leaves} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 500ms, page_limit: 10 }
sinks:
  lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true }
status: { listen: "127.0.0.1:${ports[index]}" }
`,
    );
    return startSluice(['run', '-c', file], { env });
  };
  const ask = async (index: number, path: string) => {
    try {
      const answer = await fetch(`http://127.0.0.1:${ports[index]}${path}`);
      return { ok: answer.ok, text: await answer.text() };
    } catch {
      return { ok: false, text: '' };
    }
  };
  const ready = (index: number, sluice: RunningSluice) =>
    waitUntil(async () => (await ask(index, '/readyz')).ok, {
      what: () => `sluice-${index} to be ready: ${sluice.stderr.slice(-3).join('\n')}`,
      everyMs: 100,
    });
  const processes = [0, 1, 2].map(start);
  for (const [index, sluice] of processes.entries()) await ready(index, sluice);

  const settled = Math.max(...processes.flatMap(generationsOf));
  const seen: number[] = [];
  for (let restart = 0; restart < restarts; restart += 1) {
    const index = restart % processes.length;
    sandbox.control.grow(audit, growth);
    const before = processes[index];
    if (before === undefined) throw new Error('there are three');
    const ended = await before.kill('SIGTERM');
    expect(ended.exitCode, ended.stderr).toBe(0);
    const after = start(index);
    processes[index] = after;
    await ready(index, after);
    seen.push(...generationsOf(after));
  }
  if (!leaves) expect(new Set(seen)).toEqual(new Set([settled]));

  // A process is ready before it takes over: until then all three stand by.
  const standings = await waitUntil(
    async () => {
      const all = await Promise.all(
        ports.map(async (_, index) => JSON.parse((await ask(index, '/status.json')).text)),
      );
      return all.some(({ standing_by: what }) => what === null) ? all : null;
    },
    { what: 'a process that has taken over' },
  );
  const waiting = standings.filter(({ standing_by: what }) => what !== null);
  expect(waiting.map(({ ready: is }) => is)).toEqual([true, true]);
  expect(waiting[0].attention[0].what).toBe('stands by');
  const spare = standings.findIndex(({ standing_by: what }) => what !== null);
  expect((await ask(spare, '/metrics')).text).toContain('sluice_standing_by 1');

  const events = growth * (restarts + 1);
  const records = await consumeAll(topic, { until: events, timeoutMs: 60_000 });
  for (const sluice of processes) expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
  const uids = (await consumeAll(topic)).map(({ headers }) => headers.uid);
  expect([new Set(uids).size, uids.length, records.length]).toEqual([events, events, events]);
});
