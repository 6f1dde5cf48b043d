// A part that is never taken for the whole, on the real program: what an endpoint shows beyond its paging as configured is
// an error of `run --once` and of `check --connect`, and the advice that is given works.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/cli.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const all = Array.from({ length: 250 }, (_, n) => ({ id: `r${n}` }));

/** The response of each path to the requested rows. */
const endpoints: Readonly<Record<string, (rows: readonly object[], from: number) => object>> = {
  pages: (data) => ({ data, page: 1, total_pages: 3 }),
  flag: (data, from) => ({ data, has_more: from + data.length < 250 }),
  length: (data) => ({ data, total: 250 }),
  cursor: (data, from) => ({ data, meta: { next: from < 150 ? String(from + 100) : null } }),
  whole: (data, from) => ({
    data,
    next_cursor: from < 150 ? String(from + 100) : null,
    total: 250,
  }),
};

async function upstream(): Promise<number> {
  const server = createServer((request: IncomingMessage, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    if (request.method === 'POST') {
      const token = { access_token: 't', token_type: 'Bearer', expires_in: 3_600 };
      response.end(JSON.stringify(token));
      return;
    }
    const url = new URL(request.url ?? '', 'http://here');
    const from = Number(url.searchParams.get('cursor') ?? url.searchParams.get('offset') ?? 0);
    const limit = Number(url.searchParams.get('limit') ?? 100);
    const path = url.pathname.split('/').at(-1) ?? '';
    const rows = all.slice(from, from + limit);
    if (path === 'linked' && from + limit < 250) {
      response.setHeader('link', `<${url.pathname}?start=${from + limit}>; rel="next"`);
    }
    response.end(JSON.stringify(endpoints[path]?.(rows, from) ?? { data: rows }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => server.close());
  return (server.address() as AddressInfo).port;
}

function world(port: number, path: string) {
  const dir = tempDir('paging-');
  const write = (pagination: object) => {
    const auth = { client_id: 'a', client_secret: 'b', scope: 'events:read' };
    const base = `http://127.0.0.1:${port}/v1`;
    const config = {
      state: { dir: join(dir, 'state'), sync: 'normal' },
      upstreams: { up: { api: 'unified', base_url: base, allow_http: true, ends: 'never', auth } },
      sources: { list: { type: 'logs', upstream: 'up', path: `/${path}`, pagination } },
      sinks: { disk: { type: 'file', path: join(dir, 'out', 'e.ndjson') } },
    };
    writeFileSync(join(dir, 'c.yaml'), JSON.stringify(config));
  };
  const events = () =>
    readdirSync(join(dir, 'out'))
      .filter((file) => /^e.*ndjson$/.test(file))
      .flatMap((file) =>
        readFileSync(join(dir, 'out', file), 'utf8')
          .trimEnd()
          .split('\n'),
      )
      .map((line) => JSON.parse(line).metadata as Record<string, string>);
  const run = (...args: string[]) =>
    runHere([...args, '-c', join(dir, 'c.yaml'), '--log-level', 'error']);
  return { write, events, run };
}

test.for([
  { path: 'pages', sign: 'total_pages', repaired: null },
  { path: 'linked', sign: 'rel="next"', repaired: null },
  { path: 'flag', sign: 'has_more', repaired: { style: 'offset' } },
  { path: 'length', sign: "list's length", repaired: { style: 'offset' } },
  { path: 'cursor', sign: 'meta.next', repaired: { style: 'cursor', next: 'meta.next' } },
])('a part is reported, and read whole once its paging is corrected: $path', async (given) => {
  const { path, sign, repaired } = given;
  const { write, events, run } = world(await upstream(), path);
  write({});

  const once = await run('run', '--once');
  const again = await run('run', '--once');
  const checked = await run('check', '--connect');

  expect([once.exitCode, again.exitCode, checked.exitCode]).toEqual([1, 1, 3]);
  for (const { stdout } of [once, again, checked]) expect(stdout).toContain(sign);
  const reported = events().filter(({ log_name: name }) => name === 'sluice');
  expect(reported.map(({ event_code: code }) => code)).toEqual(['source.paging_suspected']);
  if (repaired === null) return;

  write(repaired);
  const whole = await run('run', '--once');

  expect([whole.exitCode, whole.stdout]).toEqual([0, expect.stringContaining('150 new records')]);
  const ids = events().flatMap(({ original_event_uid: id }) => id ?? []);
  expect([ids.length, new Set(ids).size]).toEqual([250, 250]);
});

test('a list that is read whole gives no alarm', async () => {
  const { write, events, run } = world(await upstream(), 'whole');
  write({});

  const once = await run('run', '--once');
  const checked = await run('check', '--connect');

  expect([once.exitCode, checked.exitCode], checked.stdout + checked.stderr).toEqual([0, 0]);
  expect(events().length).toBe(250);
});
