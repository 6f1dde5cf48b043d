// A refused event, while another event of its batch is throttled: the position waits before both. Another machine that takes
// the state in Kafka over does not send the refused event again.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { type ReceivedRequest, startHttpReceiver } from '../support/http-receiver.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const events = 10;

/** The uids of a bulk request, in its order. */
const uidsOf = ({ body }: ReceivedRequest): readonly string[] =>
  body
    .toString('utf8')
    .split('\n')
    .filter((line) => line.includes('"metadata"'))
    .map((line) => JSON.parse(line).metadata.uid);

test('a dead letter is not sent again by the process that takes over', async () => {
  const { upstreams, env } = await anEdge(events);
  let isThrottled = true;
  const seen: string[] = [];
  let marked: readonly string[] = [];
  const receiver = await startHttpReceiver({
    answer: (request) => {
      if (!request.path.includes('_bulk')) return { answer: 'reply', status: 200, body: '{}' };
      const uids = uidsOf(request);
      seen.push(...uids);
      if (marked.length === 0) marked = uids.slice(2, 4);
      const items = uids.map((uid) => {
        if (uid === marked[0]) {
          const error = { type: 'document_parsing_exception', reason: 'no number' };
          return { create: { status: 400, error } };
        }
        if (uid === marked[1] && isThrottled) {
          const error = { type: 'es_rejected_execution_exception', reason: 'queue' };
          return { create: { status: 429, error } };
        }
        return { create: { status: 201 } };
      });
      const errors = items.some(({ create }) => create.status > 299);
      const body = JSON.stringify({ errors, items });
      const headers = { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' };
      return { answer: 'reply', status: 200, headers, body };
    },
  });
  const dir = tempDir();
  const brokers = JSON.stringify(await kafkaBrokers());
  const prefix = `p-${crypto.randomUUID()}`;
  const configFor = (name: string) => {
    const file = join(dir, `${name}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${name}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, session_timeout: 6s, instance: ${name} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 200ms }
sinks:
  es: { type: elasticsearch, url: "${receiver.url}", index: events, format: json, retry: { min: 50ms, max: 500ms } }
`,
    );
    return file;
  };
  const first = startSluice(['run', '-c', configFor('first')], { env });
  const letters = async (name: string) =>
    (await runHere(['dead-letters', 'list', '-c', configFor(name), '--json'], env)).stdout
      .split('\n')
      .filter((line) => line !== '').length;
  await waitUntil(async () => (await letters('first')) === 1, {
    what: 'the dead letter',
    everyMs: 300,
  });
  await first.kill('SIGKILL');
  const before = seen.filter((uid) => uid === marked[0]).length;
  isThrottled = false;

  const second = await startSluice(['run', '--once', '-c', configFor('second')], { env }).exited;

  expect(second.stderr).not.toContain('sluice_failed');
  expect(seen.filter((uid) => uid === marked[0])).toHaveLength(before);
  expect(new Set(seen).size).toBe(events);
  expect(await letters('second')).toBe(1);
});
