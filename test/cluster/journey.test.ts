// The whole path with the state in Kafka, on a real Apache Kafka: upstream, log, sink. The program is killed again and again
// while it commits pages, and each time another machine with an empty state directory resumes.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const events = 6_000;
const kills = 3;

function uidsIn(file: string): readonly string[] {
  try {
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => (JSON.parse(line) as { metadata: { uid: string } }).metadata.uid);
  } catch {
    return [];
  }
}

test('killed while it commits, with an empty state directory each time: every event once', async () => {
  const brokers = await kafkaBrokers();
  const prefix = `p-${crypto.randomUUID()}`;
  const { upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const out = join(dir, 'out.ndjson');
  const machine = (run: number) => {
    const config = join(dir, `machine-${run}.yaml`);
    const kafka = `{ brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, instance: sluice-0 }`;
    writeFileSync(
      config,
      `state: { dir: ${dir}/state-${run}, kafka: ${kafka} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 100 }
sinks:
  disk: { type: file, path: ${out}, format: json }
`,
    );
    return config;
  };

  for (let run = 0; run < kills; run += 1) {
    const until = ((run + 1) * events) / (kills + 2);
    const sluice = startSluice(['run', '-c', machine(run)], { env });
    await waitUntil(() => !sluice.running || uidsIn(out).length >= until, {
      what: () => `${until} events of ${uidsIn(out).length}: ${sluice.stderr.slice(-5).join('\n')}`,
    });
    expect(sluice.running, sluice.stderr.join('\n')).toBe(true);
    await sluice.kill('SIGKILL');
  }
  const last = machine(kills);
  const ended = await runSluice(['run', '-c', last, '--once'], { env });

  expect(ended.exitCode, ended.stderr).toBe(0);
  const uids = uidsIn(out);
  expect(new Set(uids).size).toBe(events);
  expect(uids.length).toBe(events);
  const status = await runSluice(['status', '-c', last, '--json'], { env });
  expect(status.exitCode).toBe(0);
});
