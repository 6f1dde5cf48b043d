// The state in Kafka with tokens (OAUTHBEARER), on a real broker that ends each session after 5 s, beside sinks of both
// clients with tokens: sessions end within transactions, the token endpoint fails for longer than a token lasts, and
// tokens are rejected. Each event is sent once, and the process stays the owner as long as it has tokens.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { type HttpReceiver, startHttpReceiver } from '../support/http-receiver.ts';
import { consumeAll, createTopic, type KafkaAddresses, startKafka } from '../support/kafka.ts';
import { grant, saslFor } from '../support/kafka-tokens.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const sessionMs = 5_000;
const tokenS = 8;
let addresses: KafkaAddresses;

beforeAll(async () => {
  const settings = { 'connections.max.reauth.ms': String(sessionMs) };
  ({ addresses } = await startKafka({ settings }));
});

/** A config whose state and sinks authenticate with tokens of the endpoint. */
async function aConfig(endpoint: HttpReceiver, prefix: string, events: number) {
  const { sandbox, upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const brokers = JSON.stringify([addresses.protected?.sasl]);
  const sasl = JSON.stringify(saslFor(endpoint));
  const topics = { kafkajs: `${prefix}-kafkajs`, platformatic: `${prefix}-platformatic` };
  for (const topic of Object.values(topics)) await createTopic([addresses.plain], topic);
  const sinks = Object.entries(topics).map(([driver, topic]) =>
    JSON.stringify({
      [driver]: {
        ...{ type: 'kafka', format: 'json', exactly_once: true, retry: { max: '1s' } },
        ...{ driver, topic, brokers: [addresses.protected?.sasl], sasl: saslFor(endpoint) },
      },
    }).slice(1, -1),
  );
  const file = join(dir, 'sluice.yaml');
  writeFileSync(
    file,
    `state:
  dir: ${dir}/state
  kafka: { brokers: ${brokers}, prefix: ${prefix}, session_timeout: 6s, sasl: ${sasl} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 200ms, page_limit: 5 }
sinks: { ${sinks.join(', ')} }
`,
  );
  const grow = (more: number) => sandbox.control.grow('/v1/audit/events', more);
  return { file, env, grow, topics: Object.values(topics) };
}

async function expectOnce(topics: readonly string[], events: number): Promise<void> {
  for (const topic of topics) {
    const brokers = [addresses.plain];
    const records = await consumeAll(topic, { brokers, until: events, timeoutMs: 90_000 });
    const uids = records.map(({ headers }) => headers.uid);
    expect([new Set(uids).size, uids.length]).toEqual([events, events]);
  }
}

test('sessions end many times while state and sinks write: each event is there once', {
  timeout: 300_000,
}, async () => {
  const endpoint = await startHttpReceiver({ answer: () => grant(tokenS) });
  const { file, env, grow, topics } = await aConfig(endpoint, `p-${crypto.randomUUID()}`, 20);
  const sluice = startSluice(['run', '-c', file], { env });
  let events = 20;
  await expectOnce(topics, events);
  const end = performance.now() + 6 * sessionMs;
  while (performance.now() < end) {
    grow(10);
    events += 10;
    await expectOnce(topics, events);
  }

  const checked = await runHere(['check', '-c', file, '--connect'], env);
  const stopped = await sluice.kill();

  expect([checked.exitCode, checked.stdout]).toEqual([
    0,
    expect.stringContaining('1 of 1 brokers'),
  ]);
  expect(stopped.exitCode).toBe(0);
  const warned = stopped.stderr.split('\n').filter((line) => /"level":"(warn|error)"/.test(line));
  expect(warned.filter((line) => !line.includes('sasl_password_in_clear'))).toEqual([]);
  expect(stopped.stderr).not.toContain('canary');
  expect(stopped.stderr.match(/state_owned/g)).toHaveLength(1);
});

test.each([
  ['fails', { answer: 'reply', status: 503, body: 'secret-canary is down' }, 'requesting a token'],
  ['gives tokens that the broker rejects', grant(-3_600, 3_600), 'rejected the token'],
] as const)(
  'the token endpoint %s for longer than a token lasts: the process continues after that, and each event is there once',
  { tags: ['long'] },
  async (_, fault, report) => {
    const endpoint = await startHttpReceiver({ answer: () => grant(tokenS) });
    const { file, env, grow, topics } = await aConfig(endpoint, `p-${crypto.randomUUID()}`, 20);
    const sluice = startSluice(['run', '-c', file], { env });
    await expectOnce(topics, 20);

    const before = endpoint.requests.length;
    const outageBegin = performance.now();
    endpoint.answer(fault);
    grow(20);
    const isReport = (line: string) => line.includes('group_unreachable') && line.includes(report);
    await sluice.waitForLine(isReport, 60_000);
    const outageEnd = performance.now() + 3 * sessionMs;
    await waitUntil(() => performance.now() > outageEnd, { what: 'the end', timeoutMs: 60_000 });
    const asked = endpoint.requests.length - before;
    const outageS = (performance.now() - outageBegin) / 1_000;
    endpoint.answer(() => grant(tokenS));
    await expectOnce(topics, 40);

    const { exitCode, stderr } = await sluice.kill();
    expect(exitCode).toBe(0);
    expect(stderr).not.toContain('canary');
    // State and sinks share no token. The pauses of the state grow from 1 s. Those of the two sinks grow to 1 s, of which
    // chance can take half; the first ones are short.
    expect(asked).toBeLessThan(20 + 5 * outageS);
  },
);

test('a start with a wrong client secret ends with the reason, and check reports it', async () => {
  const body = JSON.stringify({ error: 'invalid_client', error_description: 'no secret-canary' });
  const endpoint = await startHttpReceiver({
    answer: () => ({ answer: 'reply', status: 401, body }),
  });
  const { file, env } = await aConfig(endpoint, `p-${crypto.randomUUID()}`, 5);

  const run = await startSluice(['run', '-c', file, '--once', '--timeout', '60s'], { env }).exited;
  const checked = await runHere(['check', '-c', file, '--connect'], env);

  expect([run.exitCode, run.stderr]).toEqual([1, expect.stringContaining('answered 401')]);
  expect([checked.exitCode, checked.stdout]).toEqual([3, expect.stringContaining('answered 401')]);
  expect(run.stderr + checked.stdout + checked.stderr).not.toContain('canary');
  expect(endpoint.requests.length).toBeLessThan(20);
});
