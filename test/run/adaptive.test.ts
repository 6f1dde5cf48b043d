// `every: { min, max }` on the real program: a stream with records is polled at the shortest interval, one without at the
// longest; `status` shows the present interval; and there are no more requests than the ceiling allows.

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lookInto } from '../../src/hold/store.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const perSecond = 10;

/** An upstream with a list that has a new record at each request, and one that is empty. */
async function anUpstream() {
  const times: number[] = [];
  const asked = new Map<string, number>();
  const server = createServer(({ url = '' }, response) => {
    times.push(performance.now());
    const { pathname, searchParams } = new URL(url, 'http://upstream');
    const count = (asked.get(pathname) ?? 0) + 1;
    asked.set(pathname, count);
    const from = Number(searchParams.get('cursor') ?? 0);
    const isBusy = pathname === '/busy' && count % 2 === 0;
    const data = isBusy ? [{ id: `r-${from}`, timestamp: new Date().toISOString() }] : [];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data, next_cursor: String(from + data.length) }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => void server.close());
  return { times, asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('intervals follow the records, within the ceilings', async () => {
  const { times, asked, url } = await anUpstream();
  const dir = tempDir('adaptive-');
  const config = join(dir, 'sluice.yaml');
  const source = (name: string) =>
    `  ${name}: { type: logs, upstream: ops, path: /${name}, order: oldest_first, every: { min: 20ms, max: 2s } }`;
  writeFileSync(
    config,
    [
      `state: { dir: ${join(dir, 'state')} }`,
      'upstreams:',
      `  ops: { api: services, base_url: "${url}", allow_http: true, auth: { api_key: k }, throttle: [ { requests: ${perSecond}, per: 1s } ] }`,
      'sources:',
      source('busy'),
      source('idle'),
      'sinks:',
      `  disk: { type: file, path: ${join(dir, 'events.ndjson')}, format: json }`,
    ].join('\n'),
  );
  const sluice = startSluice(['run', '-c', config]);
  const intervals = async () => {
    const { stdout } = await runSluice(['status', '-c', config, '--json']);
    const { streams } = JSON.parse(stdout) as {
      streams: readonly { name: string; interval_ms?: number }[];
    };
    return Object.fromEntries(streams.map(({ name, interval_ms: ms }) => [name, ms ?? 0]));
  };

  await waitUntil(() => (asked.get('/busy') ?? 0) > 60, { what: 'polls of the busy list' });
  const shown = await waitUntil(
    async () => {
      const now = await intervals();
      return now.idle === 2_000 && (now.busy ?? 0) > 0 ? now : undefined;
    },
    { what: 'the intervals of both' },
  );
  const { stdout } = await runSluice(['explain', '-c', config, 'idle']);
  await sluice.kill();

  expect(stdout).toMatch(/every 20ms to 2 ?s, now 2 ?s/);
  expect(shown.busy).toBeLessThan(100);
  expect(asked.get('/busy')).toBeGreaterThan((asked.get('/idle') ?? 0) * 2);
  // Arrivals may crowd together on a busy machine; their number over the whole time cannot be above the ceiling.
  const spanS = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1_000;
  expect(times.length).toBeLessThanOrEqual((Math.ceil(spanS) + 1) * perSecond);
});

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'several streams of one credential stay within the ceiling, also after %s, when all of them begin at min',
  async (signal) => {
    const { times, asked, url } = await anUpstream();
    const dir = tempDir('adaptive-');
    const config = join(dir, 'sluice.yaml');
    const ceiling = 12;
    const names = ['busy', 'idle', 'quiet'];
    writeFileSync(
      config,
      [
        `state: { dir: ${join(dir, 'state')} }`,
        'upstreams:',
        `  ops: { api: services, base_url: "${url}", allow_http: true, auth: { api_key: k }, throttle: [ { requests: ${ceiling}, per: 1h } ] }`,
        'sources:',
        ...names.map(
          (name) =>
            `  ${name}: { type: logs, upstream: ops, path: /${name}, order: oldest_first, every: { min: 20ms, max: 2s } }`,
        ),
        'sinks:',
        `  disk: { type: file, path: ${join(dir, 'events.ndjson')}, format: json }`,
        'status: { listen: "127.0.0.1:0" }',
      ].join('\n'),
    );
    const used = () =>
      JSON.stringify(
        lookInto(join(dir, 'state'), null, (store) => store.noted('throttle').get('used') ?? null),
      );

    const first = startSluice(['run', '-c', config]);
    await waitUntil(() => times.length >= ceiling, { what: 'all requests of the hour' });
    // The usage is stored once a second: a group of requests each, which add up to the ceiling.
    const stored = () =>
      Math.max(
        0,
        ...Array.from(used().matchAll(/"[^"]*":(\[\[.*?\]\])/g), ([, groups = '[]']) =>
          (JSON.parse(groups) as [number, number][]).reduce((sum, [, count]) => sum + count, 0),
        ),
      );
    await waitUntil(() => stored() >= ceiling, { what: () => `the usage, now ${used()}` });
    await first.kill(signal);
    const second = startSluice(['run', '-c', config]);
    const { url: page } = JSON.parse(await second.waitForLine('"status page"')) as {
      readonly url: string;
    };
    await waitUntil(
      async () =>
        /^sluice_upstream_wait_seconds\{.*\} [1-9]/m.test(
          await (await fetch(`${page}/metrics`)).text(),
        ),
      { what: 'streams that wait for their turn' },
    );
    const { exitCode } = await second.kill('SIGTERM');

    expect(exitCode).toBe(0);
    expect(names.map((name) => (asked.get(`/${name}`) ?? 0) > 0)).toEqual([true, true, true]);
    expect(times.length).toBe(ceiling);
  },
);
