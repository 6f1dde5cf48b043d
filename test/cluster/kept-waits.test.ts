// A wait that upstream requests holds after a takeover by a process on another machine, on a real Apache Kafka.

import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { lookInto } from '../../src/hold/store.ts';
import { startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { freePort, tempDir, waitUntil } from '../support/temp.ts';

const path = '/v1/audit/events';

test.for([1, 2])('with a state of %i shards', { tags: ['long'] }, async (shards) => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const prefix = `p-${crypto.randomUUID()}`;
  const { sandbox, upstreams, env } = await anEdge(20);
  const fault = { kind: 'status', status: 429, retry_after: 3_600 } as const;
  sandbox.control.setFaults({ rules: [{ path, fault }] });
  const asked = () => sandbox.control.requests()[path]?.requests ?? 0;
  const start = async () => {
    const dir = tempDir();
    const port = await freePort();
    const file = join(dir, 'sluice.yaml');
    writeFileSync(
      file,
      `state: { dir: ${dir}/state, kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s } }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms }
sinks:
  disk: { type: file, path: "${dir}/out-{partition}.ndjson", format: json }
status: { listen: "127.0.0.1:${port}" }
`,
    );
    const sluice = startSluice(['run', '-c', file], { env });
    const waits = async () => {
      const metrics = await fetch(`http://127.0.0.1:${port}/metrics`).then(
        async (response) => await response.text(),
        () => '',
      );
      return /^sluice_upstream_wait_seconds\{.*\} 3[56]\d\d/m.test(metrics);
    };
    await waitUntil(waits, { what: () => `the wait; ${sluice.stderr.slice(-10).join('\n')}` });
    return { sluice, dir };
  };
  // The cache has what the broker has.
  const isNoted = (dir: string) =>
    readdirSync(dir, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('sluice.db'))
      .some((name) => {
        const used = lookInto(dirname(join(dir, name)), null, (store) =>
          store.noted('throttle').get('used'),
        );
        return /"waits":\{"\w+":\{"/.test(JSON.stringify(used ?? null));
      });

  const first = await start();
  await waitUntil(() => isNoted(first.dir), { what: 'the stored wait' });
  await first.sluice.kill('SIGKILL');
  const second = await start();
  await second.sluice.kill('SIGTERM');

  expect(asked()).toBe(1);
});
