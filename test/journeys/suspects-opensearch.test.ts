// A real OpenSearch that refuses events for a while: its shards are at their limit, its ingest pipeline is deleted, an index
// is closed, and indices are not created automatically. No event becomes a dead letter, the events of other indices are not
// delayed, and delivery resumes by itself, also after a kill.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { testSome } from '../support/long.ts';
import { type OpenSearch, startOpenSearch } from '../support/opensearch.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const dayMs = 86_400_000;

// A start of the server costs more than a test: all share one, whose indices and limits are as new before each.
let cluster: OpenSearch;
beforeAll(async () => {
  cluster = await startOpenSearch({});
});
afterAll(async () => await cluster.kill());
beforeEach(async () => {
  await cluster.ask('PUT', '/_cluster/settings', {
    persistent: { 'cluster.max_shards_per_node': null },
  });
  await cluster.ask('DELETE', '/t-*');
});

/** An upstream that serves the audit events that the test has added so far, and a config that sends them to the cluster. */
async function journey(cluster: Pick<OpenSearch, 'url'>, more = '') {
  const dir = tempDir();
  const records: { id: string; timestamp: string }[] = [];
  const upstream = await startHttpReceiver({
    answer: ({ path }) => ({
      answer: 'reply',
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: path.includes('token')
        ? JSON.stringify({ access_token: 't', token_type: 'bearer', expires_in: 3600 })
        : JSON.stringify({ data: records, next_cursor: null }),
    }),
  });
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge: { api: unified, ends: never, base_url: "${upstream.url}/v1", allow_http: true, auth: { api_key: x } }
sources:
  audit: { type: audit_events, upstream: edge, every: 500ms, pagination: { style: none } }
sinks:
  es: { type: elasticsearch, url: "${cluster.url}", index: "t-{date}", format: json, batch: { wait: 50ms }, retry: { min: 100ms, max: 500ms }${more} }
`,
  );
  const add = (prefix: string, count: number, time: number) => {
    for (let n = 0; n < count; n += 1)
      records.push({ id: `${prefix}-${n}`, timestamp: new Date(time + n).toISOString() });
  };
  const sink = async () => {
    const { stdout } = await runHere(['status', '-c', config, '--json']);
    return JSON.parse(stdout).sinks[0];
  };
  return { config, add, sink };
}

async function countOf(cluster: OpenSearch, indices: string): Promise<number> {
  await cluster.ask('POST', `/${indices}/_refresh`);
  const { count } = await cluster
    .ask('GET', `/${indices}/_count?ignore_unavailable=true`)
    .catch((error: Error) => {
      // The shards of a new index have not started.
      if (error.message.includes('all shards failed')) return { count: 0 };
      throw error;
    });
  return count ?? 0;
}

test('a cluster at its shard limit keeps only events of today waiting, and gets them once the limit is lifted', {
  tags: ['long'],
}, async () => {
  const now = Date.now();
  const { config, add, sink } = await journey(cluster);
  add('yesterday', 20, now - dayMs);
  const first = startSluice(['run', '-c', config]);
  await waitUntil(async () => (await countOf(cluster, 't-*')) === 20, {
    what: 'yesterday’s',
    everyMs: 300,
  });
  await cluster.ask('PUT', '/_cluster/settings', {
    persistent: { 'cluster.max_shards_per_node': 1 },
  });

  add('today', 40, now);
  await waitUntil(
    async () => {
      const { suspects, set_aside: aside } = await sink();
      return suspects !== null || aside.length > 0;
    },
    { what: 'today’s to be refused', everyMs: 300 },
  );
  add('yesterday-later', 10, now - dayMs + 100);
  await waitUntil(async () => (await countOf(cluster, 't-*')) === 30, {
    what: 'yesterday’s to go on',
    everyMs: 300,
  });
  const during = await sink();
  await first.kill('SIGKILL');
  const second = startSluice(['run', '-c', config]);
  await cluster.ask('PUT', '/_cluster/settings', {
    persistent: { 'cluster.max_shards_per_node': null },
  });
  await waitUntil(async () => (await countOf(cluster, 't-*')) === 70, {
    what: 'today’s',
    everyMs: 300,
  });
  await waitUntil(async () => (await sink()).set_aside.length === 0, {
    what: 'nothing to wait',
    everyMs: 300,
  });
  await second.kill('SIGTERM');

  expect(during.dead_letters).toBe(0);
  expect(during.set_aside).toMatchObject([
    {
      events: 40,
      destination: expect.stringMatching(/^t-\d/),
      reason: expect.stringContaining('shards'),
    },
  ]);
  expect(await sink()).toMatchObject({ dead_letters: 0, suspects: null });
});

testSome(1, [
  [
    'whose ingest pipeline is deleted',
    ', pipeline: tidy',
    (cluster: OpenSearch) => cluster.ask('PUT', '/_ingest/pipeline/tidy', { processors: [] }),
    (cluster: OpenSearch) => cluster.ask('DELETE', '/_ingest/pipeline/tidy'),
  ],
  [
    'whose only index is closed',
    '',
    (cluster: OpenSearch) => cluster.ask('POST', '/t-*/_open'),
    (cluster: OpenSearch) => cluster.ask('POST', '/t-*/_close'),
  ],
])(
  'a cluster %s keeps every event waiting, and gets them once that is repaired',
  async (_what, more, repair, spoil) => {
    const now = Date.now();
    const { config, add, sink } = await journey(cluster, more);
    await repair(cluster);
    add('before', 20, now);
    const sluice = startSluice(['run', '-c', config]);
    await waitUntil(async () => (await countOf(cluster, 't-*')) === 20, {
      what: 'the first',
      everyMs: 300,
    });
    await spoil(cluster);

    add('after', 30, now + 1_000);
    await waitUntil(async () => (await sink()).suspects?.stuck === true, {
      what: 'suspects',
      everyMs: 300,
    });
    const during = await sink();
    await repair(cluster);
    await waitUntil(async () => (await countOf(cluster, 't-*')) === 50, {
      what: 'all',
      everyMs: 300,
    });
    await sluice.kill('SIGTERM');

    expect(during).toMatchObject({ dead_letters: 0, suspects: { events: 30 } });
    expect(during.error.message).toMatch(/index t-\d.*|pipeline/);
    expect(await sink()).toMatchObject({ dead_letters: 0, suspects: null });
  },
);
