// Two processes of one state in Kafka, of which the second lacks a sink: what the second reads is kept for that sink, and
// both name the difference. On a real Apache Kafka.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

test('a sink that the second process lacks loses nothing to it', async () => {
  const brokers = await kafkaBrokers();
  const prefix = `p-${crypto.randomUUID()}`;
  const { sandbox, upstreams, env } = await anEdge(300);
  const receiver = await startHttpReceiver();
  afterThisTest(() => receiver.close());
  await receiver.close();
  const dir = tempDir();
  const config = (name: string, sinks: string) => {
    const file = join(dir, `${name}.yaml`);
    const kafka = `{ brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, session_timeout: 6s, instance: ${name} }`;
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${name}
  kafka: ${kafka}
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 50 }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
${sinks}`,
    );
    return file;
  };
  const es = `  es: { type: http, url: "${receiver.url}/in", format: json, retry: { min: 100ms, max: 500ms } }\n`;
  const [withEs, withoutEs] = [config('one', es), config('two', '')];
  const lines = () => {
    try {
      return readFileSync(join(dir, 'out.ndjson'), 'utf8').split('\n').length - 1;
    } catch {
      return 0;
    }
  };
  const one = startSluice(['run', '-c', withEs], { env });
  await waitUntil(() => lines() === 300, { what: 'the events of the first' });
  const two = startSluice(['run', '-c', withoutEs], { env });
  await two.waitForLine('standing by');
  const seen = await runHere(['cluster', '-c', withEs, '--json'], env);
  await one.kill('SIGKILL');
  sandbox.control.grow('/v1/audit/events', 300);
  await waitUntil(() => lines() === 600, { what: 'the events of the second' });
  await two.kill();
  await receiver.reopen();

  const again = startSluice(['run', '-c', withEs], { env });
  const received = () =>
    receiver.requests.flatMap(({ body }) =>
      body
        .toString('utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line): string => JSON.parse(line).metadata.uid),
    );
  await waitUntil(() => new Set(received()).size >= 600, {
    what: () => `all events at es; ${new Set(received()).size} came`,
  });
  await again.kill();

  expect(new Set(received()).size).toBe(600);
  expect(JSON.parse(seen.stdout).config_differences).toEqual([
    expect.stringMatching(/^two, process \d+ on .*: lacks sink es$/),
  ]);
});
