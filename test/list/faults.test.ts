// Faults while a list is read: cursors that expire, cursor loops, limits, invalid pages, records that come late or
// change, a reader that is stopped anywhere. In every case nothing is lost, nothing comes twice, and an error is never
// mistaken for the end of the list. Tests are named after the rows of the ambiguity register if they are one.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Spool } from '../../src/contracts/spool.ts';
import { AUDIT, LOGS, WEB } from '../sandbox/client.ts';
import { answeredBy, answerWith, cursorIn, okOf, queryIn } from '../support/made-up-list.ts';
import { waitUntil } from '../support/temp.ts';
import {
  aList,
  aSpool,
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

const logs = {
  type: 'logs',
  settings: { path: '/api/logs/v1/companies/{company_id}/events', id: null },
};
const offsetLogs = {
  type: 'logs',
  settings: {
    path: '/api/logs/v1/companies/{company_id}/web',
    pagination: { style: 'offset' },
  },
};

const idsOf = async (list: ListUnderTest) => (await list.records()).map(({ id }) => id);
const textsOf = async (list: ListUnderTest) => (await list.records()).map(({ text }) => text);

describe('a reader that is stopped', () => {
  test('at any page resumes at its position', async () => {
    const orders = ['oldest_first', 'newest_first'] as const;
    const cuts = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 });
    const kinds = fc.record({ order: fc.constantFrom(...orders), named: fc.boolean(), cuts });

    await fc.assert(
      fc.asyncProperty(kinds, async ({ order, named, cuts: pagesUntilCut }) => {
        const world = await standingSandbox();
        const { sandbox, clock } = world;
        const ids = named ? 'text' : 'none';
        sandbox.control.setFaults({ lists: [{ path: LOGS, order, ids }] });
        let left = Number.POSITIVE_INFINITY;
        let stop = new AbortController();
        const list = await aList(world, {
          ...logs,
          settings: { ...logs.settings, page_limit: 7, id: named ? 'id' : null },
          wrap: (stream) =>
            answeredBy(stream, (request, signal) => {
              left -= 1;
              if (left < 0) stop.abort(new Error('stopped'));
              signal.throwIfAborted();
              return stream.upstream.get(request, signal);
            }),
        });

        for (const pages of pagesUntilCut) {
          stop = new AbortController();
          left = pages;
          await list
            .poll(stop.signal)
            .catch((error: Error) => expect(error.message).toBe('stopped'));
          list.restart();
          sandbox.control.grow(LOGS, 9);
        }
        left = Number.POSITIVE_INFINITY;
        await list.readToTail();
        await clock.advance(hourMs);
        await list.readToTail();
        const held = await textsOf(list);
        const served = ledgerTexts(sandbox, LOGS);
        await Promise.all([list.spool.close(), sandbox.close()]);

        expect(differences(held, served)).toEqual(none);
      }),
      { numRuns: 8 },
    );
  });

  test('rejects with the signal’s reason and commits nothing more', async () => {
    const world = await standingSandbox();
    world.sandbox.control.setFaults({ rules: [{ path: AUDIT, after: 2, fault: 'hang' }] });
    const list = await aList(world);
    const stop = new AbortController();

    const polled = list.poll(stop.signal);
    const isHanging = () => (world.sandbox.control.requests()[AUDIT]?.faults.hang ?? 0) > 0;
    await waitUntil(isHanging, { what: 'the third page to hang' });
    stop.abort(new Error('stopping'));

    await expect(polled).rejects.toThrow('stopping');
    expect(await idsOf(list)).toEqual(ledgerIds(world.sandbox).slice(0, 20));
  });
});

const full = new ExportError('disk_full', 'testing: no space', { next: 'nothing' });

/** A spool that takes nothing while it is full. `groupBytes`: as the spool's. */
function fullWhile(spool: Spool, isFull: () => boolean, groupBytes?: number): Spool {
  return new Proxy(spool, {
    get(target, name) {
      if (name === 'groupBytes') return groupBytes;
      if (name === 'append' && isFull()) return () => Promise.reject(full);
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

test('a finding is reported once it is stored, and not if that fails', async () => {
  const world = await standingSandbox();
  const { sandbox, clock } = world;
  let fails = false;
  const list = await aList(world, { spool: fullWhile(await aSpool(), () => fails) });
  sandbox.control.setFaults({ lists: [{ path: AUDIT, cursor_lifetime_s: 60, bad_cursor: 410 }] });
  await list.readToTail();
  await clock.advance(5 * minuteMs);

  fails = true;
  const polled = await list.poll();
  const whileFull = [...list.found];
  fails = false;
  await list.readToTail();

  expect(polled).toEqual({ outcome: 'retry', cause: full, advanced: false });
  expect(whileFull).toEqual([]);
  expect(list.found).toMatchObject([{ condition: 'source.checkpoint_reset' }]);
  expect(list.found).toEqual(await list.reported());
});

test('a poll has advanced if it stored a page before the disk was full', async () => {
  const world = await standingSandbox();
  let left = 1;
  const isFull = () => left-- <= 0;
  const list = await aList(world, { spool: fullWhile(await aSpool(), isFull, 1) });

  const first = await list.poll();
  const second = await list.poll();
  left = Number.POSITIVE_INFINITY;
  await list.readToTail();

  expect(first).toEqual({ outcome: 'retry', cause: full, advanced: true });
  expect(second).toEqual({ outcome: 'retry', cause: full, advanced: false });
  expect(differences(await idsOf(list), ledgerIds(world.sandbox))).toEqual(none);
});

describe('a page that is requested ahead', () => {
  test('is given up when the page before it cannot be committed, and both are read again', async () => {
    const world = await standingSandbox();
    let fails = true;
    const spool = fullWhile(await aSpool(), () => fails);
    const ahead: AbortSignal[] = [];
    const list = await aList(world, {
      spool,
      wrap: (stream) =>
        answeredBy(stream, async (request, signal) => {
          if (cursorIn(request) === null || !fails)
            return await stream.upstream.get(request, signal);
          ahead.push(signal);
          return await new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
          });
        }),
    });

    const polling = list.poll();
    await expect.poll(() => world.clock.sleepers, { interval: 1 }).toBe(1);
    await world.clock.advanceToNext();
    const polled = await polling;
    fails = false;
    await list.readToTail();

    expect(polled).toEqual({ outcome: 'retry', cause: full, advanced: false });
    expect(ahead.map(({ aborted }) => aborted)).toEqual([true]);
    expect(differences(await idsOf(list), ledgerIds(world.sandbox))).toEqual(none);
  });
});

describe('cursors', () => {
  test.for([400, 404, 409, 410, 422] as const)(
    'A06 A07: one rejected with %i costs a walk without repeats, and is reported',
    async (status) => {
      const world = await standingSandbox();
      const { sandbox, clock } = world;
      const lists = [{ path: AUDIT, cursor_lifetime_s: 60, bad_cursor: status }];
      sandbox.control.setFaults({ lists });
      const list = await aList(world);
      await list.readToTail();

      await clock.advance(5 * minuteMs);
      sandbox.control.grow(AUDIT, 15);
      await list.readToTail();

      expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
      expect(await list.conditions()).toEqual(['source.checkpoint_reset']);
    },
  );

  test('A06: one rejected once is requested again, and nothing is reported', async () => {
    const world = await standingSandbox();
    const { sandbox } = world;
    const list = await aList(world);
    await list.readToTail();
    sandbox.control.setFaults({
      rules: [{ path: AUDIT, only: 'following', times: 1, fault: 'expired_cursor' }],
    });
    sandbox.control.grow(AUDIT, 15);

    await list.readToTail();
    await list.readToTail();

    expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
    expect(await list.conditions()).toEqual([]);
  });

  test('A06: an endpoint that refuses everything leaves the checkpoint where it is', async () => {
    const world = await standingSandbox();
    const { sandbox } = world;
    const list = await aList(world);
    await list.readToTail();
    const before = await list.spool.recall('src');
    sandbox.control.setFaults({ rules: [{ path: AUDIT, fault: 404 }] });

    const polled = await list.poll();
    const after = await list.spool.recall('src');

    expect(polled.outcome).toBe('refused');
    expect(after.checkpoint).toEqual(before.checkpoint);
    expect(await list.conditions()).toEqual([]);
  });

  test('on_cursor_invalid halt: the stream waits for its operator', async () => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ lists: [{ path: AUDIT, cursor_lifetime_s: 60 }] });
    const list = await aList(world, { settings: { on_cursor_invalid: 'halt' } });
    await list.readToTail();
    await clock.advance(5 * minuteMs);

    const polled = await list.poll();

    const cause = {
      code: 'cursor_refused',
      message: expect.stringContaining('upstream no longer accepts the cursor'),
      next: expect.stringContaining('npx sluice checkpoint reset -c FILE --stream src'),
    };
    expect(polled).toMatchObject({ outcome: 'refused', cause });
  });

  test('one that dies in the middle of a walk from the top is walked around', async () => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    const lists = [{ path: AUDIT, order: 'newest_first' as const }];
    sandbox.control.setFaults({ lists });
    const list = await aList(world, { settings: { order: 'newest_first' } });
    await list.readToTail();
    sandbox.control.grow(AUDIT, 35);
    const rules = [
      { path: AUDIT, only: 'following' as const, after: 1, fault: 'expired_cursor' as const },
    ];
    sandbox.control.setFaults({ lists, rules });

    const polled = await list.poll();
    sandbox.control.setFaults({ lists });
    await clock.advance(minuteMs);
    await list.readToTail();

    expect(polled.outcome).toBe('retry');
    expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
  });

  test.for([{ ids: 'text' as const }, { ids: 'none' as const }])(
    'A08: one that is silently ignored repeats nothing, and is reported: ids $ids',
    async ({ ids }) => {
      const world = await standingSandbox();
      const { sandbox, clock } = world;
      const bad = { cursor_lifetime_s: 60, bad_cursor: 'ignored' as const };
      sandbox.control.setFaults({ lists: [{ path: LOGS, ids, ...bad }] });
      const settings = { ...logs.settings, id: ids === 'none' ? null : 'id' };
      const list = await aList(world, { ...logs, settings });
      await list.readToTail();

      await clock.advance(5 * minuteMs);
      sandbox.control.grow(LOGS, 15);
      await list.readToTail();

      expect(differences(await textsOf(list), ledgerTexts(sandbox, LOGS))).toEqual(none);
      expect(await list.conditions()).toEqual(['source.checkpoint_reset']);
    },
  );

  test('A03: equal records without ids at the end of the list are no rejected cursor', async () => {
    const size = 7;
    const rows = Array.from({ length: size + 1 }, (_, n) => ({ n }));
    const list = await aList(await standingSandbox(), {
      settings: { order: 'oldest_first', on_cursor_invalid: 'from_now', page_limit: size },
      wrap: (stream) =>
        answeredBy(stream, async (request) => {
          const at = Number(cursorIn(request) ?? 0);
          const next = at + size < rows.length ? String(at + size) : null;
          return answerWith(rows.slice(at, at + size), { next_cursor: next });
        }),
    });
    await list.readToTail();

    for (let arrived = 0; arrived < 4; arrived += 1) {
      rows.push({ n: size });
      await list.readToTail();
    }

    const texts = rows.map((row) => JSON.stringify(row));
    expect(differences(await textsOf(list), texts)).toEqual(none);
    expect(await list.conditions()).toEqual([]);
  });

  test('A03: a tail that is bound to the old list is found out within reconcile_every', async () => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ lists: [{ path: AUDIT, frozen_tail: true }] });
    const list = await aList(world, { settings: { order: 'oldest_first' } });
    await list.readToTail();
    sandbox.control.grow(AUDIT, 15);

    const quiet = await list.readToTail();
    await clock.advance(hourMs);
    await list.readToTail();

    expect(quiet).toBe(0);
    expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
  });

  test.for([{ ids: 'text' as const }, { ids: 'none' as const }])(
    'A04: a cursor loop is noticed, and the checkpoint stays before it: ids $ids',
    async ({ ids }) => {
      const world = await standingSandbox();
      const { sandbox } = world;
      const lists = [{ path: LOGS, ids }];
      sandbox.control.setFaults({ lists, rules: [{ path: LOGS, after: 2, fault: 'loop' }] });
      const settings = { ...logs.settings, id: ids === 'none' ? null : 'id' };
      const list = await aList(world, { ...logs, settings });

      const polled = await list.poll();
      sandbox.control.setFaults({ lists });
      await list.readToTail();
      await list.readToTail();

      expect(polled).toMatchObject({ outcome: 'retry', cause: { code: 'pagination_loop' } });
      const held = await textsOf(list);
      expect(differences(held, ledgerTexts(sandbox, LOGS))).toEqual(none);
    },
  );

  test('A04: records seen again within a cursor loop do not count as stored', async () => {
    const world = await standingSandbox();
    let repaired = false;
    const list = await aList(world, {
      wrap: (stream) =>
        answeredBy(stream, async (request) => {
          const at = Number(cursorIn(request) ?? 0);
          const round = [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }];
          const half = 2 * (at % 2);
          const records = repaired ? [...round, { n: 1 }] : round.slice(half, half + 2);
          const next = repaired ? null : String(at + 1);
          return answerWith(records, { next_cursor: next });
        }),
    });

    const polled = await list.poll();
    repaired = true;
    await world.clock.advance(hourMs);
    await list.readToTail();

    expect(polled).toMatchObject({ outcome: 'retry', cause: { code: 'pagination_loop' } });
    const texts = ['{"n":1}', '{"n":1}', '{"n":2}', '{"n":3}', '{"n":4}'];
    expect((await textsOf(list)).toSorted()).toEqual(texts);
  });

  test('A04 A05: a last page that comes again after empty ones is the end, and no cursor loop', async () => {
    const world = await standingSandbox();
    const pages = new Map<string | null, { ids: readonly string[]; next: string | null }>([
      [null, { ids: ['a', 'b'], next: 'c1' }],
      ['c1', { ids: [], next: 'c2' }],
      ['c2', { ids: ['a', 'b'], next: null }],
    ]);
    const list = await aList(world, {
      wrap: (stream) =>
        answeredBy(stream, async (request) => {
          const page = pages.get(cursorIn(request));
          if (page === undefined) throw new Error('no page was given this cursor');
          return answerWith(
            page.ids.map((id) => ({ id })),
            { next_cursor: page.next },
          );
        }),
    });

    const polled = [await list.poll(), await list.poll()];

    expect(polled).toEqual([
      { outcome: 'done', fresh: 2, more: false },
      { outcome: 'done', fresh: 0, more: false },
    ]);
    expect(await idsOf(list)).toEqual(['a', 'b']);
  });

  test('A05: many empty pages in a row give others their turn, and are not read again', async () => {
    const world = await standingSandbox();
    const { sandbox } = world;
    sandbox.control.setFaults({ lists: [{ path: AUDIT, empty_every: 2 }] });
    let asked = 0;
    const list = await aList(world, {
      wrap: (stream) =>
        answeredBy(stream, async (request) => {
          asked += 1;
          const n = Number(cursorIn(request) ?? 0);
          const records = n < 250 ? [] : [{ id: 'last' }];
          const next = n < 250 ? String(n + 1) : null;
          return answerWith(records, { next_cursor: next });
        }),
    });

    const first = await list.poll();
    await list.readToTail();

    expect(first).toEqual({ outcome: 'done', fresh: 0, more: true });
    expect(await idsOf(list)).toEqual(['last']);
    // At each hundredth of them, one position is requested twice.
    expect(asked).toBe(253);
  });
});

describe('pages that are none', () => {
  const faults = [
    'html',
    'empty_body',
    'empty_object',
    'error_in_200',
    'cut_json',
    'truncated',
    'reset',
    500,
    503,
    429,
    { kind: 'wrong_shape', shape: 'data_object' },
    { kind: 'wrong_shape', shape: 'data_null' },
    { kind: 'wrong_shape', shape: 'data_missing' },
  ] as const;

  test.for(faults.map((fault) => ({ fault, name: JSON.stringify(fault) })))(
    'are requested again and never end the list: $name',
    async ({ fault }) => {
      const world = await standingSandbox();
      const { sandbox } = world;
      const list = await aList(world);
      sandbox.control.setFaults({ rules: [{ path: AUDIT, after: 2, times: 1, fault }] });

      const polled = await list.poll();
      const heldThen = await idsOf(list);
      sandbox.control.setFaults({});
      await list.readToTail();

      expect(polled.outcome).toBe('retry');
      expect(heldThen).toEqual(ledgerIds(sandbox).slice(0, 20));
      expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
    },
  );

  test.for(['oldest_first', 'newest_first'] as const)(
    'a next cursor that is missing once does not end the list: %s',
    async (order) => {
      const world = await standingSandbox();
      const { sandbox } = world;
      const lists = [{ path: AUDIT, order }];
      const missing = { kind: 'wrong_shape', shape: 'next_missing' } as const;
      sandbox.control.setFaults({
        lists,
        rules: [{ path: AUDIT, after: 2, times: 1, fault: missing }],
      });
      const list = await aList(world);

      await list.readToTail();

      expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
    },
  );

  test('a next cursor that is missing where null ends the list is a fault, however often', async () => {
    const world = await standingSandbox();
    const { sandbox } = world;
    const list = await aList(world);
    await list.readToTail();
    sandbox.control.grow(AUDIT, 30);
    const missing = { kind: 'wrong_shape', shape: 'next_missing' } as const;
    sandbox.control.setFaults({ rules: [{ path: AUDIT, fault: missing }] });

    const polled = await list.poll();
    sandbox.control.setFaults({});
    await list.readToTail();

    expect(polled).toMatchObject({ outcome: 'retry', cause: { code: 'upstream_nonsense' } });
    expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
  });

  test('A01: a list that is a bare array is read', async () => {
    const world = await standingSandbox({ events: 12 });
    const { sandbox, clock } = world;
    const rules = [{ path: AUDIT, fault: { kind: 'wrong_shape', shape: 'array' } as const }];
    sandbox.control.setFaults({ rules });
    const list = await aList(world, { settings: { page_limit: 100 } });

    await list.readToTail();
    sandbox.control.grow(AUDIT, 3);
    await clock.advance(minuteMs);
    await list.readToTail();

    expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
  });
});

describe('limits', () => {
  test.for([
    { max: 60, asked: [100, 50] },
    { max: 30, asked: [100, 50, 25] },
    { max: 20, asked: [100, 50, 25, null] },
  ])('A09: one above $max is stepped down once and remembered', async ({ max, asked }) => {
    const world = await standingSandbox({ events: 90 });
    const { sandbox } = world;
    sandbox.control.setFaults({ lists: [{ path: AUDIT, limit_max: max, limit_over: 'refuse' }] });
    const limits: (number | null)[] = [];
    const list = await aList(world, {
      settings: { page_limit: 100 },
      wrap: (stream) =>
        answeredBy(stream, (request, signal) => {
          const { limit } = queryIn(request);
          if (limits.at(-1) !== limit) limits.push(limit);
          return stream.upstream.get(request, signal);
        }),
    });

    await list.readToTail();
    list.restart();
    await list.readToTail();

    expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
    expect(limits).toEqual(asked);
  });

  test('one that was refused for seconds, with everything else, is forgotten when it works again', async () => {
    const world = await standingSandbox({ events: 90 });
    const { sandbox, clock } = world;
    const limits: (number | null)[] = [];
    let refusals = 2;
    const list = await aList(world, {
      settings: { page_limit: 100 },
      wrap: (stream) =>
        answeredBy(stream, async (request, signal) => {
          limits.push(queryIn(request).limit);
          if (refusals === 0) return await stream.upstream.get(request, signal);
          refusals -= 1;
          const cause = new ExportError('upstream_refused', 'answered 400', { next: 'Wait.' });
          return { outcome: 'refused', status: 400, cause };
        }),
    });
    await list.readToTail();
    const learned = limits.at(-1);

    await clock.advance(hourMs);
    limits.length = 0;
    await list.readToTail();
    list.restart();
    await list.readToTail();

    expect(learned).toBe(25);
    expect(new Set(limits.slice(limits.indexOf(100)))).toEqual(new Set([100]));
    expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
  });

  test('A09: a limit that is silently clamped is no short page', async () => {
    const world = await standingSandbox();
    world.sandbox.control.setFaults({ lists: [{ path: AUDIT, limit_max: 7 }] });
    const list = await aList(world, { settings: { page_limit: 100 } });

    await list.readToTail();

    expect(differences(await idsOf(list), ledgerIds(world.sandbox))).toEqual(none);
  });

  test('A36: records before a blocked record are read, then the stream waits', async () => {
    const world = await standingSandbox();
    world.sandbox.control.setFaults({ lists: [{ path: AUDIT, blocked_index: 17 }] });
    const list = await aList(world);

    const polled = await list.poll();

    expect(polled).toMatchObject({ outcome: 'blocked' });
    expect(await idsOf(list)).toEqual(ledgerIds(world.sandbox).slice(0, 17));
  });
});

describe('records', () => {
  test.for(['oldest_first', 'newest_first'] as const)(
    'A13: those that come late, within lookback, are found: %s',
    async (order) => {
      const world = await standingSandbox({ rate: 0.2 });
      const { sandbox, clock } = world;
      const late = { every: 20, seconds: 300 };
      sandbox.control.setFaults({ lists: [{ path: AUDIT, order, late }] });
      const list = await aList(world, { settings: { order } });
      for (let minutes = 0; minutes < 40; minutes += 1) {
        await list.readToTail();
        await clock.advance(minuteMs);
      }

      sandbox.control.setRate(0);
      await clock.advance(6 * minuteMs);
      await list.readToTail();
      await clock.advance(15 * minuteMs);
      await list.readToTail();

      expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
    },
  );

  test('A29: those that come late into an offset list move its rows, and are found', async () => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ lists: [{ path: WEB, late: { every: 20, positions: 8 } }] });
    const list = await aList(world, offsetLogs);
    for (const count of [5, 7, 9, 11]) {
      await list.readToTail();
      sandbox.control.grow(WEB, count);
      await clock.advance(minuteMs);
    }

    await list.readToTail();

    expect(differences(await idsOf(list), ledgerIds(sandbox, WEB))).toEqual(none);
  });

  test('A29: those that come late into a list of pages do not count as a rejected position', async () => {
    const size = 5;
    const rows = Array.from({ length: 12 }, (_, n) => ({ id: `${n}` }));
    const list = await aList(await standingSandbox(), {
      settings: {
        order: 'oldest_first',
        on_cursor_invalid: 'from_now',
        page_limit: size,
        pagination: { style: 'page' },
      },
      wrap: (stream) =>
        answeredBy(stream, async ({ query }) => {
          const at = (Number(new Map(query).get('page')) - 1) * size;
          return answerWith(rows.slice(at, at + size));
        }),
    });
    await list.readToTail();

    for (const id of ['late 1', 'late 2', 'late 3']) {
      rows.splice(rows.length - 3, 0, { id });
      await list.readToTail();
    }

    const ids = rows.map(({ id }) => id);
    expect(differences(await idsOf(list), ids)).toEqual(none);
    expect(await list.conditions()).toEqual([]);
  });

  test.for([3, 12, 35])(
    'A29: %i rows that retention takes away do not hide others',
    async (gone) => {
      const world = await standingSandbox();
      const { sandbox, clock } = world;
      const list = await aList(world, offsetLogs);
      await list.readToTail();

      sandbox.control.trim(WEB, 40 - gone);
      sandbox.control.grow(WEB, 15);
      await clock.advance(minuteMs);
      await list.readToTail();
      await list.readToTail();

      expect(differences(await idsOf(list), ledgerIds(sandbox, WEB))).toEqual(none);
    },
  );

  test('A29: rows that move in the middle of a scan are read once each', async () => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ lists: [{ path: WEB, order: 'newest_first' }] });
    let pages = 0;
    const list = await aList(world, {
      ...offsetLogs,
      wrap: (stream) =>
        answeredBy(stream, (request, signal) => {
          pages += 1;
          if (pages === 3) sandbox.control.grow(WEB, 4);
          return stream.upstream.get(request, signal);
        }),
    });

    await list.readToTail();
    await clock.advance(minuteMs);
    await list.readToTail();

    expect(differences(await idsOf(list), ledgerIds(sandbox, WEB))).toEqual(none);
  });

  test('A14: one that is declared immutable and changes is reported in both versions, and as a violation', async () => {
    const world = await standingSandbox({ events: 5 });
    const list = await aList(world, {
      wrap: (stream) =>
        answeredBy(stream, async (request, signal) => {
          const fetched = await stream.upstream.get(request, signal);
          if (fetched.outcome !== 'ok' || !changed) return fetched;
          const text = Buffer.from(fetched.body).toString();
          return okOf(text.replace('"id":"evt_000000002"', '"id":"evt_000000002","forged":true'));
        }),
    });
    let changed = false;
    await list.readToTail();

    changed = true;
    await list.readToTail();
    await list.readToTail();

    const versions = (await list.records()).filter(({ id }) => id === 'evt_000000002');
    expect(versions.map(({ text }) => text.includes('forged'))).toEqual([false, true]);
    expect(new Set(versions.map(({ uid }) => uid)).size).toBe(2);
    expect(await list.conditions()).toEqual(['integrity_violation']);
    expect(list.found).toEqual(await list.reported());
  });

  test.for(['oldest_first', 'newest_first'] as const)(
    'A11: an outage longer than retention is reported as a suspected gap: %s',
    async (order) => {
      const world = await standingSandbox();
      const { sandbox, clock } = world;
      const lists = [{ path: AUDIT, order, cursor_lifetime_s: 3_600 }];
      sandbox.control.setFaults({ lists });
      const list = await aList(world, { settings: { order } });
      await list.readToTail();

      await clock.advance(30 * hourMs);
      sandbox.control.grow(AUDIT, 50);
      sandbox.control.trim(AUDIT, 20);
      await list.readToTail();

      const seen = new Set(await idsOf(list));
      expect(
        ledgerIds(sandbox)
          .slice(-20)
          .filter((id) => !seen.has(id)),
      ).toEqual([]);
      expect(await list.conditions()).toContain('source.gap_suspected');
    },
  );

  test('A10: with start now, earlier records are not reported', async () => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    const list = await aList(world, { settings: { start: 'now' } });
    await list.readToTail();

    await clock.advance(minuteMs);
    sandbox.control.grow(AUDIT, 3);
    await list.readToTail();

    expect(await idsOf(list)).toEqual(ledgerIds(sandbox).slice(-3));
  });

  test('repeats carry the uid they had', async () => {
    const world = await standingSandbox();
    const [one, other] = [await aList(world), await aList(world)];

    await one.readToTail();
    await other.readToTail();

    const uids = async (list: ListUnderTest) => (await list.records()).map(({ uid }) => uid);
    expect(await uids(one)).toEqual(await uids(other));
  });

  test('2.9: a checkpoint of another endpoint halts the stream and is left alone', async () => {
    const world = await standingSandbox();
    const list = await aList(world);
    await list.readToTail();
    const held = await heldIn(list.spool);

    const moved = await aList(world, {
      spool: list.spool,
      settings: { params: { region: 'eu' } },
    });
    const polled = await moved.poll();

    const next = expect.stringContaining('npx sluice checkpoint reset -c FILE --stream src');
    expect(polled).toMatchObject({
      outcome: 'refused',
      cause: { code: 'checkpoint_mismatch', next },
    });
    expect(await heldIn(list.spool)).toEqual(held);
  });
});
