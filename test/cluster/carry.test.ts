// Import of a state from a SQLite database into a real Apache Kafka, and export back: nothing is read again, no delivered
// event is sent again, and undelivered events move too.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ShardLog } from '../../src/cluster/log/shard-log.ts';
import { parseHostPort } from '../../src/contracts/settings.ts';
import { rowsIn } from '../../src/hold/carry.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { runHere } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir } from '../support/temp.ts';

const audit = '/v1/audit/events';
const events = 300;

const uidsOf = (lines: string) =>
  lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { metadata: { uid: string } }).metadata.uid);

test('into Kafka and back: each sink has each event once, and no page is read again', async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const { sandbox, upstreams, env } = await anEdge(events);
  let takes = false;
  const received: string[] = [];
  const receiver = await startHttpReceiver({
    answer: ({ body }) => {
      if (takes) received.push(...uidsOf(String(body)));
      return { answer: 'reply', status: takes ? 200 : 503 };
    },
  });
  const dir = tempDir();
  const prefix = `p-${crypto.randomUUID()}`;
  const config = (name: string, state: string) => {
    const file = join(dir, `${name}.yaml`);
    writeFileSync(
      file,
      `state: { dir: ${dir}/state${state} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 50 }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
  post: { type: http, url: "${receiver.url}", format: json, retry: { min: 100ms, max: 300ms } }
`,
    );
    return file;
  };
  const sqlite = config('sqlite', '');
  const kafka = config('kafka', `, kafka: { brokers: ${brokers}, prefix: ${prefix} }`);
  const reported = async (...args: string[]) => {
    const result = await runHere([...args], env);
    return { ...result, all: result.stdout + result.stderr };
  };
  const once = ['--once', '--log-level', 'error'];
  const written = () => uidsOf(readFileSync(join(dir, 'out.ndjson'), 'utf8'));

  // One sink has everything, the other nothing.
  expect((await reported('run', '-c', sqlite, ...once, '--timeout', '4s')).exitCode).toBe(1);
  expect(written().length).toBe(events);

  // Of an import that was killed.
  const left = join(dir, 'state/unfinished-import');
  mkdirSync(join(left, '0'), { recursive: true });
  writeFileSync(join(left, '0/sluice.db'), 'half of a state');
  const imported = await reported('cluster', 'import', '-c', kafka);
  expect(imported.exitCode, imported.all).toBe(0);
  expect(readdirSync(join(dir, 'state'))).not.toContain('unfinished-import');
  expect(imported.stdout).toMatch(/1 stream and \d+ pages moved/);
  const again = await reported('cluster', 'import', '-c', kafka);
  expect(again.exitCode).toBe(2);
  expect(again.all).toContain(`there is a state ${prefix} in Kafka already`);

  takes = true;
  sandbox.control.grow(audit, 20);
  const ran = await reported('run', '-c', kafka, ...once);
  expect(ran.exitCode, ran.all).toBe(0);
  expect([written().length, new Set(written()).size]).toEqual([events + 20, events + 20]);
  expect(new Set(received)).toEqual(new Set(written()));
  expect(received.length).toBe(events + 20);

  takes = false;
  sandbox.control.grow(audit, 20);
  expect((await reported('run', '-c', kafka, ...once, '--timeout', '4s')).exitCode).toBe(1);
  // Of an export that was killed.
  mkdirSync(join(dir, 'state/unfinished-export/shard-0'), { recursive: true });
  writeFileSync(join(dir, 'state/unfinished-export/shard-0/sluice.db'), 'half of a state');
  const exported = await reported('cluster', 'export', '-c', kafka);
  expect(exported.exitCode, exported.all).toBe(0);
  expect(readdirSync(join(dir, 'state'))).not.toContain('unfinished-export');
  expect(readdirSync(join(dir, 'state')).filter((name) => /before-.*Z$/.test(name)).length).toBe(1);

  takes = true;
  sandbox.control.grow(audit, 20);
  const back = await reported('run', '-c', sqlite, ...once);
  expect(back.exitCode, back.all).toBe(0);
  expect([written().length, new Set(written()).size]).toEqual([events + 60, events + 60]);
  expect(new Set(received)).toEqual(new Set(written()));
  expect(received.length).toBe(events + 60);
  // Nothing that the database holds was left behind.
  expect([...rowsIn(join(dir, 'state'))].flat().map(({ table }) => table)).toContain('identities');
}, 600_000);

test('no process resumes from an interrupted import, and the import can be repeated', async () => {
  const brokers = await kafkaBrokers();
  const prefix = `p-${crypto.randomUUID()}`;
  const { upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const rest = `${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
`;
  const kafka = `kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix} }`;
  const [before, after] = [join(dir, 'before.yaml'), join(dir, 'after.yaml')];
  writeFileSync(before, `state: { dir: ${dir}/state }\n${rest}`);
  writeFileSync(after, `state: { dir: ${dir}/state, ${kafka} }\n${rest}`);
  const reported = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runHere(args, env);
    return { exitCode, all: stdout + stderr };
  };
  const once = ['--once', '--log-level', 'error'];
  expect((await reported('run', '-c', before, ...once)).exitCode).toBe(0);

  // Killed before its first write to Kafka.
  const left = join(dir, 'state', 'unfinished-import');
  mkdirSync(left);
  expect((await reported('run', '-c', after, ...once)).exitCode).toBe(1);
  rmSync(left, { recursive: true });

  // As far as it gets in its first transaction.
  const log = await ShardLog.take(
    { brokers: brokers.map(parseHostPort).filter((one) => one !== null), prefix },
    { clock: systemClock(), log: silent },
  );
  await log.rebuild(tempDir());
  const row = { kind: 'cluster', name: 'import', facts: '{"state":"begun"}', at: 0 };
  const value = Buffer.from(`${JSON.stringify(row)}\n`);
  await log.commit([{ table: 'note', key: ['cluster', 'import'], value }]);
  await log.close();

  expect((await reported('run', '-c', after, ...once)).exitCode).toBe(1);
  const exported = await reported('cluster', 'export', '-c', after);
  expect([exported.exitCode, exported.all]).toEqual([1, expect.stringContaining('broken off')]);
  const imported = await reported('cluster', 'import', '-c', after);
  expect(imported.exitCode, imported.all).toBe(0);
  expect((await reported('run', '-c', after, ...once)).exitCode).toBe(0);
  expect(uidsOf(readFileSync(join(dir, 'out.ndjson'), 'utf8')).length).toBe(events);
}, 600_000);
