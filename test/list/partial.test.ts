// A 200 that reports errors beside its data (a shard that timed out): the records in it are delivered once, the cursor stays,
// and the page is requested again until it is whole. In every style of paging, and in both orders.

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Answer } from '../../src/contracts/answer.ts';
import type { ListStream } from '../../src/contracts/source.ts';
import type { Body, Upstream } from '../../src/contracts/upstream.ts';

import { Backfill } from '../../src/list/backfill.ts';
import { fetchPage } from '../../src/list/fetch-page.ts';
import { parseExact } from '../../src/poll/canonical.ts';
import { AUDIT, LOGS } from '../sandbox/client.ts';
import { madeUpList, okOf, pagination } from '../support/made-up-list.ts';
import { noLog } from '../support/plain-upstream.ts';
import {
  aList,
  differences,
  heldIn,
  hourMs,
  type ListUnderTest,
  ledgerIds,
  ledgerTexts,
  minuteMs,
  none,
  standingSandbox,
} from './reading.ts';

const web = '/api/logs/v1/companies/c-1/web';
const at = (style: string) => `/api/lists/v1/companies/{company_id}/web/${style}`;
const window = { style: 'window', step: '24h', lag: '0s' };
const styles = {
  cursor: { path: at('more'), pagination: { next: 'cursor', more: 'has_more' } },
  offset: { path: at('more'), pagination: { style: 'offset', more: 'has_more' } },
  page: { path: at('page'), pagination: { style: 'page' } },
  link: { path: at('link'), pagination: { style: 'link' } },
  next_url: { path: at('next-url'), pagination: { style: 'next_url', next: 'paging.next' } },
  'window of cursors': { path: at('window'), pagination: window },
  'window of offsets': {
    path: at('window'),
    pagination: { ...window, within: 'offset', time_format: 'epoch_s' },
  },
  'window of pages': {
    path: at('window'),
    pagination: { ...window, within: 'page', time_format: 'epoch_ms' },
  },
  POST: { path: at('search'), method: 'POST', body: { query: 'all' } },
  lines: { path: at('ndjson'), response: 'ndjson', pagination: { style: 'link' } },
  'lines by offset': { path: at('ndjson'), response: 'ndjson', pagination: { style: 'offset' } },
} as const;

const report = {
  title: 'Partial content',
  trace_id: 't-4711',
  errors: [{ message: 'shard 3 timed out' }],
};

/** Leaves each second record of a page out and says so. */
function torn(answer: Answer<Body>, isLines: boolean, said: object = report): Answer<Body> {
  if (answer.outcome !== 'ok') return answer;
  const text = Buffer.from(answer.body).toString();
  const half = <T>(records: readonly T[]) => records.filter((_, index) => index % 2 === 1);
  if (isLines) {
    const lines = half(text.split('\n').filter((line) => line !== ''));
    return { ...answer, body: Buffer.from([...lines, JSON.stringify(said), ''].join('\n')) };
  }
  // Numbers keep their digits: a record that is read again must be the same.
  const read = parseExact(text) as { readonly data: readonly unknown[] } | readonly unknown[];
  const parsed = 'data' in read ? read : { data: read };
  return {
    ...answer,
    body: Buffer.from(JSON.stringify({ ...parsed, data: half(parsed.data), ...said })),
  };
}

/** A list whose answers are torn while `isTorn` says so, by the number of the request. */
function tearing(isTorn: (request: number) => boolean, said?: object) {
  let requests = 0;
  return (stream: ListStream): ListStream => {
    const get: Upstream['get'] = async (request, signal) => {
      const answer = await stream.upstream.get(request, signal);
      const isLines = request.response === 'ndjson';
      return isTorn(requests++) ? torn(answer, isLines, said) : answer;
    };
    return { ...stream, upstream: { get } };
  };
}

/** True for half of the requests, in no order that polls could fall in with. */
function isByChance(request: number): boolean {
  return createHash('md5').update(`${request}`).digest().readUInt8() % 2 === 0;
}

async function idsOf(list: ListUnderTest) {
  return (await list.records()).map(({ id }) => id).toSorted();
}

describe.each(Object.keys(styles) as (keyof typeof styles)[])('%s', (name) => {
  test('each record is delivered once, however often its page comes in parts', async () => {
    const { sandbox, clock } = await standingSandbox();
    let requests = 0;
    const start = new Date(clock.now() - 30 * 24 * hourMs).toISOString();
    const settings = { ...styles[name], ...(name.startsWith('window') && { start }) };
    const isTorn = (request: number) => {
      requests = request;
      return isByChance(request);
    };
    const list = await aList({ sandbox, clock }, { type: 'logs', settings, wrap: tearing(isTorn) });
    let parts = 0;
    const readAll = async () => {
      for (let polls = 0; polls < 200; polls += 1) {
        const result = await list.poll();
        if (result.outcome === 'done' && !result.more) return;
        if (result.outcome === 'done') continue;
        expect(result).toMatchObject({ outcome: 'retry', cause: { code: 'upstream_nonsense' } });
        expect(result.cause.message).toContain('shard 3 timed out; trace_id t-4711');
        expect(result.cause.details).toMatchObject({ trace_id: 't-4711' });
        parts += 1;
        if (parts % 7 === 3) list.restart();
      }
      throw new Error(`not read after ${requests} requests`);
    };

    await readAll();
    const first = await idsOf(list);
    for (let polls = 0; polls < 3; polls += 1) {
      sandbox.control.grow(web, 7);
      await clock.advance(minuteMs);
      await readAll();
    }

    expect(parts).toBeGreaterThan(5);
    expect(first.length).toBeGreaterThan(10);
    expect(await idsOf(list)).toEqual([...ledgerIds(sandbox, web)].toSorted());
    expect(await list.conditions()).toEqual([]);
  });
});

describe('in every order, with and without ids', () => {
  const orders = ['oldest_first', 'newest_first', 'mixed'] as const;
  const kinds = orders.flatMap((order) =>
    ([{}, { twins_every: 5, ids: 'none' }] as const).map((ids) => ({ order, ...ids })),
  );

  test.for(kinds)('each record is delivered once: %o', async (kind) => {
    const { sandbox, clock } = await standingSandbox();
    sandbox.control.setFaults({ lists: [{ path: LOGS, ...kind }] });
    const settings = {
      path: '/api/logs/v1/companies/{company_id}/events',
      ...('ids' in kind && { id: null }),
    };
    const list = await aList(
      { sandbox, clock },
      { type: 'logs', settings, wrap: tearing(isByChance) },
    );
    let parts = 0;
    const readAll = async () => {
      for (let polls = 0; polls < 500; polls += 1) {
        const result = await list.poll();
        if (result.outcome === 'done' && !result.more) return;
        if (result.outcome !== 'done') parts += 1;
        if (parts % 7 === 3) list.restart();
      }
      throw new Error('not read after 500 polls');
    };

    await readAll();
    for (let polls = 0; polls < 3; polls += 1) {
      sandbox.control.grow(LOGS, 7);
      await clock.advance(hourMs);
      await readAll();
      await readAll();
    }
    await clock.advance(25 * hourMs);
    await readAll();

    const texts = (await list.records()).map(({ text }) => text);
    expect(parts).toBeGreaterThan(5);
    expect(differences(texts, ledgerTexts(sandbox, LOGS))).toEqual(none);
  });
});

test('an upstream that always answers so stays where it is, and its waits grow', async () => {
  const { sandbox, clock } = await standingSandbox();
  const list = await aList({ sandbox, clock }, { wrap: tearing(() => true) });

  const results = [];
  for (let polls = 0; polls < 5; polls += 1) {
    sandbox.control.grow(AUDIT, 1);
    results.push(await list.poll());
  }

  // What is new in a part is no progress of the list.
  expect(results.slice(1).map((result) => 'advanced' in result && result.advanced)).toEqual(
    Array(4).fill(false),
  );
  const held = await idsOf(list);
  expect(held.length).toBeGreaterThan(3);
  expect(new Set(held).size).toBe(held.length);
});

test('with partial: accept the response counts as complete', async () => {
  const { sandbox, clock } = await standingSandbox();
  const list = await aList(
    { sandbox, clock },
    { settings: { partial: 'accept' }, wrap: tearing(() => true) },
  );

  await list.readToTail();

  expect((await idsOf(list)).length).toBe(ledgerIds(sandbox).length / 2);
});

test('a backfill does not pass a part', async () => {
  const { sandbox, clock } = await standingSandbox();
  const { stream, spool } = await aList({ sandbox, clock }, { wrap: tearing(isByChance) });
  const backfill = new Backfill({
    ...{ stream, spool, clock, log: noLog, key: 'src#backfill-1' },
    span: { fromMs: 0, toMs: clock.now() + hourMs },
    list: { order: 'auto', lookbackMs: 1_000 },
    pace: async () => undefined,
  });

  let parts = 0;
  for (let polls = 0; polls < 100; polls += 1) {
    const result = await backfill.poll(new AbortController().signal);
    if (result.outcome === 'done' && !result.more) break;
    parts += 1;
  }

  const held = (await heldIn(spool)).map(({ id }) => id);
  expect(parts).toBeGreaterThan(1);
  expect(held.toSorted()).toEqual([...ledgerIds(sandbox)].toSorted());
});

describe('the signs of missing records', () => {
  const ask = async (body: unknown, items = 'data') => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const list = madeUpList(async () => okOf(text), {
      pagination: { ...pagination, items },
    });
    const query = { position: { by: 'cursor', cursor: null }, limit: null } as const;
    return await fetchPage(list, query, new AbortController().signal);
  };
  const data = [{ id: 1 }];

  test.for<readonly [object, string?]>([
    [{ data, errors: [{ message: 'm' }] }],
    [{ data, errors: ['m'] }],
    [{ data, errors: { shard: 'timed out' } }],
    [{ data, errors: 'shard 3 timed out' }],
    [{ data, errors: true }],
    [{ data, partial: true }],
    [{ data, timed_out: true }],
    [{ data, success: false }],
    [{ result: { data }, errors: [{}] }, 'result.data'],
    [{ result: { data, timed_out: true } }, 'result.data'],
    [{ hits: { hits: data }, timed_out: true }, 'hits.hits'],
  ])('%o does', async ([body, items]) => {
    const answer = await ask(body, items);

    expect(answer).toMatchObject({ outcome: 'ok', page: { partial: expect.any(Error) } });
  });

  test.for<readonly [object, string?]>([
    [{ data, errors: [] }],
    [{ data, errors: null }],
    [{ data, errors: {} }],
    [{ data, errors: '' }],
    [{ data, errors: 0, partial: false, timed_out: false, success: true }],
    [{ data: [{ id: 1, errors: [{ message: 'of the record' }], success: false }] }],
    [{ errors: data }, 'errors'],
    [{ result: { errors: data } }, 'result.errors'],
    [data],
  ])('%o does not', async ([body, items]) => {
    const answer = await ask(body, items);

    expect(answer).toMatchObject({ outcome: 'ok', page: { partial: null } });
  });

  test('without any data it repeats upstream’s message', async () => {
    const answer = await ask({ data: null, errors: [{ message: 'index gone' }], trace_id: 't-1' });

    expect(answer).toMatchObject({
      outcome: 'retry',
      cause: { message: expect.stringContaining('(index gone; trace_id t-1)') },
    });
  });
});
