// What `check` promises of sinks where several processes share a state in Kafka: "once" only where a process that was paused
// and resumes cannot break it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

test('a file is once with a database, and at least once with a state in Kafka, and the effect of a local directory is reported', async () => {
  const dir = tempDir();
  const check = async (state: string) => {
    const file = join(dir, 'sluice.yaml');
    writeFileSync(
      file,
      `state: ${state}
upstreams: { edge: { api: unified, ends: never, base_url: "https://edge.example/v1", auth: { client_id: a, client_secret: b, scope: events:read } } }
sources: { audit: { type: audit_events, upstream: edge } }
sinks:
  disk: { type: file, path: "${dir}/{partition}.ndjson", format: json }
  lake: { type: kafka, brokers: ["127.0.0.1:1"], topic: t, format: json, exactly_once: true }
`,
    );
    const { exitCode, stdout, stderr } = await runHere(['check', '-c', file], {});
    expect(exitCode, stderr).toBe(0);
    return stdout;
  };
  const line = (text: string, of: string) =>
    text.split('\n').find((one) => one.includes(`sink ${of}:`)) ?? '';

  const single = await check(`{ dir: ${dir}/state }`);
  expect(line(single, 'disk')).toContain('each event once');
  expect(single).not.toContain('at each takeover');

  const shared = await check(
    `{ dir: ${dir}/state, kafka: { brokers: ["127.0.0.1:1"], prefix: p } }`,
  );
  expect(line(shared, 'disk')).toContain('at least once');
  expect(shared).toContain('sinks.disk: with state.kafka at least once: a process that is paused');
  expect(shared).toContain('a local directory of each machine gives repeats at each takeover');
  expect(line(shared, 'lake')).toContain('each event once');
});
