// Each style of paging against the sandbox that serves it: all is read, once, over growth, restarts and faults, and no
// request leaves the origin.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { SandboxFault } from '../../src/sandbox/faults.ts';
import { answeredBy, answerWith } from '../support/made-up-list.ts';
import { afterThisTest } from '../support/temp.ts';
import {
  aList,
  aSpool,
  hourMs,
  type ListUnderTest,
  ledgerIds,
  minuteMs,
  standingSandbox,
} from './reading.ts';

const web = '/api/logs/v1/companies/c-1/web';
const at = (style: string) => `/api/lists/v1/companies/{company_id}/web/${style}`;
const dayMs = 24 * hourMs;

const window = { style: 'window', step: '24h', lag: '0s' };
const styles = {
  page: { path: at('page'), pagination: { style: 'page' } },
  link: { path: at('link'), pagination: { style: 'link' } },
  next_url: { path: at('next-url'), pagination: { style: 'next_url', next: 'paging.next' } },
  more: { path: at('more'), pagination: { next: 'cursor', more: 'has_more' } },
  'offset with a flag': { path: at('more'), pagination: { style: 'offset', more: 'has_more' } },
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
  'POST by offset': { path: at('search'), method: 'POST', pagination: { style: 'offset' } },
  lines: { path: at('ndjson'), response: 'ndjson', pagination: { style: 'link' } },
  'lines by offset': { path: at('ndjson'), response: 'ndjson', pagination: { style: 'offset' } },
} as const;

type Name = keyof typeof styles;
const all = Object.keys(styles) as Name[];
const isLong = process.env.SLUICE_TEST_LONG === '1';

async function read(name: Name, world?: Awaited<ReturnType<typeof standingSandbox>>) {
  const { sandbox, clock } = world ?? (await standingSandbox());
  const start = new Date(clock.now() - 30 * dayMs).toISOString();
  const settings = {
    ...styles[name],
    ...(name.startsWith('window') && { start }),
  };
  const list = await aList({ sandbox, clock }, { type: 'logs', settings });
  return { sandbox, clock, list };
}

async function idsOf(list: ListUnderTest) {
  return (await list.records()).map(({ id }) => id).toSorted();
}

describe.each(all)('%s', (name) => {
  test('reads all existing and new records, once, over a restart', async () => {
    const { sandbox, clock, list } = await read(name);

    await list.readToTail();
    const first = await idsOf(list);
    for (let polls = 0; polls < 4; polls += 1) {
      sandbox.control.grow(web, 7);
      await clock.advance(minuteMs);
      if (polls === 2) list.restart();
      await list.readToTail();
    }

    expect(first.length).toBeGreaterThan(10);
    expect(await idsOf(list)).toEqual([...ledgerIds(sandbox, web)].toSorted());
    expect(await list.conditions()).toEqual([]);
  });

  const faults: readonly (readonly [string, SandboxFault])[] = [
    ['errors', { kind: 'status', status: 500 }],
    ['answers that were cut', { kind: 'cut_json' }],
    ['addresses elsewhere', { kind: 'foreign_next' }],
    ['pages in a loop', { kind: 'loop' }],
    ['lists that end early', { kind: 'short', keep: 3 }],
    ['rows that have moved', { kind: 'shifted' }],
  ];
  // Every second one, the others with other styles of the same pager; all with SLUICE_TEST_LONG=1.
  const turn = all.indexOf(name) + Math.floor(all.indexOf(name) / 2);
  const tried = faults.filter((_, i) => isLong || (i + turn) % 2 === 0);

  test.each(tried)('has all, once, after %s', async (_, fault) => {
    const { sandbox, clock, list } = await read(name);
    sandbox.control.setFaults({ rules: [{ path: '/api/lists/**', every: 3, times: 12, fault }] });

    for (let polls = 0; polls < 12; polls += 1) {
      await list.poll();
      if (polls === 5) list.restart();
      await clock.advance(minuteMs);
    }
    sandbox.control.setFaults({});
    await clock.advance(25 * hourMs);
    for (let polls = 0; polls < 3; polls += 1) {
      await list.readToTail();
      await clock.advance(minuteMs);
    }

    expect(await idsOf(list)).toEqual([...ledgerIds(sandbox, web)].toSorted());
  });
});

test.each(['link', 'next_url', 'lines'] as const)(
  '%s sends nothing to another origin, reports it, and resumes once the address is corrected',
  async (name) => {
    const asked: string[] = [];
    const elsewhere = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.end('{}');
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    afterThisTest(() => void elsewhere.close());
    const { port } = elsewhere.address() as AddressInfo;
    const to = `http://127.0.0.1:${port}`;
    const { sandbox, list } = await read(name);
    sandbox.control.setFaults({
      rules: [{ path: '/api/lists/**', fault: { kind: 'foreign_next', to } }],
    });

    const result = await list.poll();
    sandbox.control.setFaults({});
    await list.readToTail();

    expect(result).toMatchObject({ outcome: 'retry', cause: { code: 'upstream_nonsense' } });
    expect(result.outcome === 'retry' && result.cause.message).toContain(`127.0.0.1:${port}`);
    expect(asked).toEqual([]);
    expect(await idsOf(list)).toEqual([...ledgerIds(sandbox, web)].toSorted());
  },
);

test('another style reads the list again from its start and reports nothing twice', async () => {
  const world = await standingSandbox();
  const spool = await aSpool();
  const path = '/api/lists/v1/companies/{company_id}/web/page';
  for (const pagination of [{ style: 'none' }, { style: 'page' }, { style: 'page', total: null }]) {
    const settings = { path, pagination };
    const list = await aList(world, { type: 'logs', settings, spool });
    await list.poll();
    await list.readToTail();
    await world.clock.advance(minuteMs);
  }

  const list = await aList(world, {
    type: 'logs',
    settings: { path, pagination: { style: 'page' } },
    spool,
  });

  expect(await idsOf(list)).toEqual([...ledgerIds(world.sandbox, web)].toSorted());
});

describe('a window', () => {
  const windowOf = (query: readonly (readonly [string, string])[]) => {
    const { from = '', to = '' } = Object.fromEntries(query);
    return [from, to].map((text) => Date.parse(text)) as [number, number];
  };

  async function windowed(
    rows: (from: number, to: number) => { rows: object[]; rest?: object } | 400,
  ) {
    const world = await standingSandbox();
    const start = new Date(world.clock.now() - 5 * hourMs).toISOString();
    const asked: [number, number][] = [];
    const list = await aList(world, {
      type: 'logs',
      settings: { path: '/list', start, pagination: { style: 'window', lag: '30s' } },
      wrap: (stream) =>
        answeredBy(stream, async ({ query }) => {
          const [from, to] = windowOf(query);
          asked.push([from, to]);
          const answer = rows(from, to);
          if (answer !== 400) return answerWith(answer.rows, { next_cursor: null, ...answer.rest });
          const cause = Object.assign(new Error('400'), { code: 'upstream_refused', details: {} });
          return { outcome: 'refused', status: 400, field: 'from', cause } as never; // as the client gives it
        }),
    });
    return { ...world, list, asked, start: Date.parse(start) };
  }

  test('starts at the end of the one before, up to a while ago, and is requested once', async () => {
    const { list, asked, clock, start } = await windowed(() => ({ rows: [] }));

    for (let polls = 0; polls < 5; polls += 1) {
      await list.readToTail();
      await clock.advance(10_000);
    }

    expect(asked[0]?.[0]).toBe(Math.floor(start / 1_000) * 1_000);
    asked.forEach(([from, to], i) => {
      expect(to - from).toBeGreaterThan(0);
      expect(to - from).toBeLessThanOrEqual(hourMs);
      if (i > 0) expect(from).toBe(asked[i - 1]?.[1]);
    });
    expect(clock.now() - (asked.at(-1)?.[1] ?? 0)).toBeGreaterThanOrEqual(30_000);
    expect(asked.length).toBe(9);
  });

  test('that is rejected is requested again and nothing after it is', async () => {
    let from400 = Number.POSITIVE_INFINITY;
    const { list, asked, clock, start } = await windowed((from) =>
      from >= from400 ? 400 : { rows: [{ id: `r${from}` }] },
    );
    from400 = start + 2 * hourMs - 1_000;

    const results = [];
    for (let polls = 0; polls < 3; polls += 1) {
      results.push(await list.poll());
      await clock.advance(minuteMs);
    }
    const [, refused] = asked.slice(-2).map(([from]) => new Date(from).toISOString());
    const furthest = Math.max(...asked.map(([from]) => from));
    from400 = Number.POSITIVE_INFINITY;
    await list.readToTail();

    const message = expect.stringContaining(`refuses the window from ${refused}`);
    const reported = {
      outcome: 'refused',
      cause: { message, next: expect.stringContaining('step') },
    };
    expect(results).toMatchObject([reported, reported, reported]);
    expect(furthest).toBeLessThan(start + 2 * hourMs + 1_000);
    expect((await idsOf(list)).length).toBeGreaterThanOrEqual(5);
  });

  test.each([{ total: 50 }, { has_more: true }])(
    'that has more than it returns (%j) is reported, and nothing after it is stored',
    async (rest) => {
      let isFull = true;
      const { list, clock, start } = await windowed((from) => ({
        rows: [{ id: `r${from}` }],
        ...(isFull && from >= start + 2 * hourMs - 1_000 && { rest }),
      }));

      const first = await list.poll();
      await clock.advance(minuteMs);
      const second = await list.poll();
      const held = (await idsOf(list)).length;
      isFull = false;
      await clock.advance(minuteMs);
      await list.readToTail();

      for (const result of [first, second]) {
        expect(result).toMatchObject({ outcome: 'retry', cause: { code: 'paging_suspected' } });
      }
      // What it gave is held.
      expect(held).toBe(3);
      expect(await list.conditions()).toEqual(['source.paging_suspected']);
      expect((await idsOf(list)).length).toBeGreaterThanOrEqual(5);
    },
  );

  test('whose cursor has expired is read again from its start', async () => {
    const world = await standingSandbox();
    const start = new Date(world.clock.now() - 3 * hourMs).toISOString();
    const refusal = (outcome: 'retry' | 'refused', status: number) => {
      const cause = Object.assign(new Error('no'), { code: 'upstream_refused', details: {} });
      return { outcome, status, cause } as never; // as the client gives it
    };
    let state: 'well' | 'failing' | 'dead' = 'well';
    const list = await aList(world, {
      type: 'logs',
      settings: { path: '/list', start, pagination: { style: 'window', lag: '30s' } },
      wrap: (stream) =>
        answeredBy(stream, async ({ query }) => {
          const [from] = windowOf(query);
          const { cursor } = Object.fromEntries(query);
          const [id, next_cursor] = [`${from} ${cursor ?? ''}`, `${state} ${from}`];
          if (cursor === undefined) return answerWith([{ id }], { next_cursor });
          if (state === 'failing') return refusal('retry', 500);
          if (cursor.startsWith('failing')) return refusal('refused', 410);
          return answerWith([{ id }], { next_cursor: null });
        }),
    });
    await list.readToTail();
    await world.clock.advance(30 * minuteMs);
    state = 'failing';
    const failed = await list.poll();
    state = 'dead';

    const results = [];
    for (let polls = 0; polls < 3; polls += 1) {
      await world.clock.advance(minuteMs);
      results.push((await list.poll()).outcome);
    }

    expect(failed.outcome).toBe('retry');
    expect(results).toEqual(['done', 'done', 'done']);
    expect((await idsOf(list)).filter((id) => String(id).includes(' dead'))).not.toEqual([]);
  });

  test('is checked again for late records', async () => {
    let late: number | null = null;
    const { list, clock } = await windowed((from, to) => ({
      rows: late !== null && late >= from && late < to ? [{ id: 'late' }] : [],
    }));
    await list.readToTail();
    await clock.advance(minuteMs);
    await list.readToTail();

    late = clock.now() - 5 * minuteMs;
    await clock.advance(16 * minuteMs);
    await list.readToTail();

    expect(await idsOf(list)).toEqual(['late']);
  });
});

test.each(['link', 'next_url'] as const)(
  '%s with rebase: an address of another scheme or host is requested at the configured origin',
  async (name) => {
    const to = 'https://internal.example:8080';
    const world = await standingSandbox();
    const { sandbox } = world;
    const { path, pagination } = styles[name];
    const settings = { path, pagination: { ...pagination, rebase: true } };
    const list = await aList(world, { type: 'logs', settings });
    sandbox.control.setFaults({
      rules: [{ path: '/api/lists/**', fault: { kind: 'foreign_next', to } }],
    });

    await list.poll();
    await list.readToTail();

    expect(await idsOf(list)).toEqual([...ledgerIds(sandbox, web)].toSorted());
    expect(await list.conditions()).toEqual([]);
  },
);
