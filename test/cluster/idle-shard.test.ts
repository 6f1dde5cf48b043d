// Shards whose upstreams have nothing new, on a real Apache Kafka: they write nothing, and a ceiling of the config holds although
// the requests of their polls are not noted.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { someEdges } from '../support/edges.ts';
import { consumeAll, kafkaBrokers } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const names = ['east', 'south'];
const events = 5;
const polls = 10;
const path = '/v1/audit/events';

test('an idle shard writes no record over several polls', async () => {
  const brokers = await kafkaBrokers();
  const dir = tempDir();
  const { upstreams, env, apart, grow, requests } = await someEdges(names, events);
  const prefix = `p-${crypto.randomUUID()}`;
  const file = join(dir, 'c.yaml');
  const limited = upstreams.replaceAll(
    /^( +)auth: .*$/gm,
    '$&\n$1throttle: [{ requests: 1000, per: 1m }]',
  );
  const write = (shards: number) => {
    writeFileSync(
      file,
      `state: { dir: ${dir}/state, kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s } }
${limited}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms }`).join('\n')}
sinks: { disk: { type: file, path: "${dir}/{partition}.ndjson", format: json } }
`,
    );
    return file;
  };
  apart(write);
  expect(limited.match(/throttle/g)).toHaveLength(names.length);
  const sluice = startSluice(['run', '-c', file], { env });
  const polled = async (count: number) => {
    const from = requests(path);
    await waitUntil(() => requests(path).every((sum, one) => sum >= (from[one] ?? 0) + count), {
      what: () => `${count} polls of each: ${requests(path)}\n${sluice.stderr.join('\n')}`,
      timeoutMs: 120_000,
    });
  };
  const written = async () => (await consumeAll(`${prefix}.state`)).length;
  await polled(polls);

  const before = await written();
  await polled(polls);
  const after = await written();
  grow(1);
  await polled(polls);
  const grown = await written();
  await polled(polls);

  expect(after).toBe(before);
  expect(grown).toBeGreaterThan(before);
  expect(await written()).toBe(grown);
  expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
}, 300_000);

test('after a takeover no more is requested than the rest of the ceiling', {
  tags: ['long'],
}, async () => {
  const brokers = await kafkaBrokers();
  const dir = tempDir();
  const { sandbox, upstreams, env } = await anEdge(events);
  const prefix = `p-${crypto.randomUUID()}`;
  const requestsMax = 30;
  const machine = (name: string) => {
    const file = join(dir, `${name}.yaml`);
    writeFileSync(
      file,
      `state: { dir: ${dir}/${name}, kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, instance: ${name}, session_timeout: 6s } }
${upstreams}
    throttle: [{ path: /audit/events, requests: ${requestsMax}, per: 1h }]
sources: { audit: { type: audit_events, upstream: edge, every: 300ms } }
sinks: { disk: { type: file, path: ${dir}/out.ndjson, format: json } }
status: { listen: "127.0.0.1:0" }
`,
    );
    return startSluice(['run', '-c', file], { env });
  };
  const requested = () => sandbox.control.requests()[path]?.requests ?? 0;
  const waits = async (sluice: ReturnType<typeof machine>) => {
    const { url } = JSON.parse(await sluice.waitForLine('"status page"')) as {
      readonly url: string;
    };
    const text = async () => await (await fetch(`${url}/metrics`)).text();
    await waitUntil(async () => /^sluice_upstream_wait_seconds\{.*\} [1-9]/m.test(await text()), {
      what: () => `a stream that waits for its turn: ${sluice.stderr.join('\n')}`,
      timeoutMs: 120_000,
    });
  };
  const first = machine('first');
  await waits(first);
  // A request that failed on its way to upstream counts too.
  const before = requested();
  expect(before).toBeLessThanOrEqual(requestsMax);
  // Requests of the last second before a kill are not counted: all but a tenth are in Kafka first.
  const inKafka = async () => {
    const records = await consumeAll(`${prefix}.state`);
    const note = records.findLast(({ key }) => String(key) === '["note","throttle","used"]');
    const counts = String(note?.value ?? '').matchAll(/\[\d+,(\d+)\]/g);
    return Array.from(counts, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0);
  };
  await waitUntil(async () => (await inKafka()) >= requestsMax * 0.9, { what: 'the used part' });
  await first.kill('SIGKILL');

  const second = machine('second');
  await second.waitForLine('"event":"running"');
  await waits(second);

  expect(requested() - before).toBeLessThanOrEqual(requestsMax * 0.1);
  expect(requested()).toBeLessThanOrEqual(requestsMax);
  expect((await second.kill('SIGTERM')).exitCode).toBe(0);
});
