// Operator commands for a state in Kafka from a machine without a process, on a real Apache Kafka: status, check, and the
// refusal of commands that would harm running processes.

import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { consumeAll, createTopic, kafkaBrokers } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const events = 150;

interface ClusterReport {
  readonly processes: readonly {
    readonly instance: string | null;
    readonly host: string;
    readonly pid: number;
    readonly state: string;
    readonly works_since: string | null;
  }[];
  readonly takeovers: number;
  readonly fenced: readonly object[];
  readonly unowned: { readonly shards: readonly number[] } | null;
  readonly streams: readonly { readonly name: string; readonly caught_up_at: string | null }[];
  readonly sinks: readonly {
    readonly name: string;
    readonly position: number;
    readonly backlog: number;
  }[];
}

test('from another machine: every process is shown, a check disturbs no process, and harmful commands are refused', async () => {
  const brokers = await kafkaBrokers();
  const prefix = `p-${crypto.randomUUID()}`;
  const { sandbox, upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const config = (name: string, { blocks = upstreams, instance = name } = {}) => {
    const file = join(dir, `${name}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${name}
  kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, session_timeout: 6s, instance: ${instance} }
${blocks}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 50 }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
`,
    );
    return file;
  };
  const elsewhere = config('elsewhere');
  const look = async () => {
    const { stdout, stderr, exitCode } = await runHere(['cluster', '-c', elsewhere, '--json'], env);
    expect(exitCode, stderr).toBe(0);
    return JSON.parse(stdout) as ClusterReport;
  };
  expect((await look()).processes).toEqual([]);

  const first = startSluice(['run', '-c', config('sluice-0')], { env });
  await first.waitForLine('running');
  const second = startSluice(['run', '-c', config('sluice-1')], { env });
  await second.waitForLine('standing by');
  const delivered = (count: number) =>
    waitUntil(
      async () => {
        const reported = await look();
        return reported.sinks[0]?.position === count && reported.sinks[0].backlog === 0 && reported;
      },
      { what: `${count} events to be at the sink`, everyMs: 300 },
    );
  const reported = await delivered(events);
  const here = { host: hostname(), started_at: expect.any(String), address: expect.any(String) };
  expect(reported.processes).toEqual([
    {
      ...here,
      instance: 'sluice-0',
      pid: first.pid,
      state: 'working',
      works_since: expect.any(String),
      sinks: reported.sinks,
    },
    {
      ...{ ...here, instance: 'sluice-1', pid: second.pid, state: 'standing by' },
      ...{ works_since: null, sinks: [] },
    },
  ]);
  expect([reported.fenced, reported.unowned]).toEqual([[], null]);
  expect(reported.takeovers).toBe(0);
  expect(reported.streams[0]?.caught_up_at).not.toBeNull();
  const shown = await runHere(['cluster', '-c', elsewhere], env);
  expect(shown.stdout).toContain('1 working, 1 standing by');

  const checked = await runHere(['check', '-c', elsewhere, '--connect'], env);
  expect(checked.exitCode, checked.stdout).toBe(0);
  expect(checked.stdout).toContain(`group ${prefix}.owners: 2 processes`);
  expect(checked.stdout).toContain(`transactions as ${prefix}.shard.0`);
  sandbox.control.grow(audit, 10);
  await delivered(events + 10);

  const other = upstreams.replace(/client_id: \S+?,/, 'client_id: somebody-else,');
  const file = config('foreign', { blocks: other, instance: 'foreign' });
  expect((await runHere(['check', '-c', file, '--connect'], env)).stdout).toContain(
    'reads other upstreams than this config',
  );
  const foreign = await runHere(['run', '-c', file, '--once'], env);
  expect(foreign.exitCode).toBe(1);
  expect((await look()).processes.map(({ instance }) => instance)).toEqual([
    'sluice-0',
    'sluice-1',
  ]);
  expect([first.running, second.running]).toEqual([true, true]);

  await first.kill('SIGKILL');
  await second.waitForLine('running');
  sandbox.control.grow(audit, 10);
  const after = await delivered(events + 20);
  expect(after.processes.find(({ state }) => state === 'working')?.instance).toBe('sluice-1');
  expect(after.takeovers).toBe(1);
  const gone = { instance: 'sluice-0', host: hostname(), pid: first.pid };
  expect(after.fenced).toEqual([{ ...gone, at: expect.any(String) }]);
  const printed = await runHere(['cluster', '-c', elsewhere], env);
  expect(printed.stdout).toContain(`sluice-0, process ${first.pid} on ${hostname()}, which had`);

  // One that has ended in order needs no fence.
  expect((await second.kill('SIGTERM')).exitCode).toBe(0);
  const nobody = await look();
  expect([nobody.processes, nobody.unowned?.shards]).toEqual([[], [0]]);
  const third = startSluice(['run', '-c', config('sluice-2')], { env });
  await third.waitForLine('running');
  sandbox.control.grow(audit, 10);
  const last = await delivered(events + 30);
  expect([last.takeovers, last.fenced]).toEqual([2, []]);
  expect((await third.kill('SIGTERM')).exitCode).toBe(0);
}, 600_000);

test('topics of another program are refused before anything is written', async () => {
  const brokers = [...(await kafkaBrokers())];
  const prefix = `p-${crypto.randomUUID()}`;
  await createTopic(brokers, `${prefix}.state`, { settings: { 'cleanup.policy': 'compact' } });
  const producer = new Kafka({ brokers, logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  const topic = `${prefix}.state`;
  await producer.send({ topic, messages: [{ key: 'order-17', value: '{"total":9}' }] });
  await producer.disconnect();
  const { upstreams, env } = await anEdge(3);
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  writeFileSync(
    file,
    `state: { dir: ${dir}/state, kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix} } }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge } }
sinks: { disk: { type: file, path: ${dir}/out.ndjson, format: json } }
`,
  );

  const checked = await runHere(['check', '-c', file, '--connect'], env);
  const run = await startSluice(['run', '-c', file, '--once'], { env }).exited;

  const says = `${prefix}.state holds a record that sluice did not write`;
  expect([checked.exitCode, checked.stdout]).toEqual([3, expect.stringContaining(says)]);
  expect([run.exitCode, run.stderr]).toEqual([1, expect.stringContaining(says)]);
  expect(await consumeAll(topic)).toHaveLength(1);
}, 120_000);
