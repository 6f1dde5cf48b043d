// An import into a real Apache Kafka that ends before its first write to a shard: a process of another machine, which does not see
// the directory of the database, does not start without that database.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { ShardLog } from '../../src/cluster/log/shard-log.ts';
import { runHere, runOnceHere } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir } from '../support/temp.ts';

test('a run on another machine waits for the repetition of an import', async () => {
  const { upstreams, env } = await anEdge(3);
  const dir = tempDir();
  const kafka = { brokers: await kafkaBrokers(), prefix: `p-${crypto.randomUUID()}` };
  const config = (name: string, more: object) => {
    const file = join(dir, `${name}.yaml`);
    writeFileSync(
      file,
      `state: ${JSON.stringify({ dir: join(dir, name), ...more })}
${upstreams}
sources: { audit: { type: audit_events, upstream: edge } }
sinks: { disk: { type: file, path: ${dir}/out.ndjson, format: json } }
`,
    );
    return file;
  };
  const before = await runOnceHere(config('sqlite', {}), env);
  const from = ['--from', join(dir, 'sqlite'), '-c', config('here', { kafka })];
  const taken = vi.spyOn(ShardLog, 'take').mockRejectedValueOnce(new Error('it was killed'));
  const killed = await runHere(['cluster', 'import', ...from], env);
  taken.mockRestore();

  const early = await runOnceHere(config('elsewhere', { kafka }), env);
  const repeated = await runHere(['cluster', 'import', ...from], env);
  const late = await runOnceHere(config('elsewhere', { kafka }), env);

  expect([before.exitCode, killed.exitCode]).toEqual([0, 1]);
  expect(early.exitCode).toBe(1);
  expect([repeated.exitCode, repeated.stdout]).toEqual([0, expect.stringMatching(/^1 stream and/)]);
  expect(late.exitCode).toBe(0);
  expect(readFileSync(join(dir, 'out.ndjson'), 'utf8').trim().split('\n')).toHaveLength(3);
});
