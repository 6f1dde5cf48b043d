// Records that upstream shows beyond the configured paging: judged at the end of a walk, reported once until the result
// changes, and corrected by another paging, which reads the list again from its start without repeats.

import { describe, expect, test } from 'vitest';
import type { Answer } from '../../src/contracts/answer.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Body } from '../../src/contracts/upstream.ts';
import type { PageQuery } from '../../src/list/page.ts';
import { answeredBy, answerWith, queryIn } from '../support/made-up-list.ts';
import { aList, aSpool, hourMs, type ListChoices, minuteMs, standingSandbox } from './reading.ts';

const rowsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `r${n}` }));

function pageOf(rows: readonly object[], shown: object = {}): Answer<Body> {
  return answerWith(rows, { next_cursor: null, ...shown });
}

const readingOf = (
  answer: (query: PageQuery) => Answer<Body>,
  rest: ListChoices = {},
): ListChoices => ({
  ...rest,
  wrap: (stream) => answeredBy(stream, async (request) => answer(queryIn(request))),
});

const doubtful = { outcome: 'done', doubt: { code: 'paging_suspected' } };
const well = { outcome: 'done', fresh: 0, more: false };

describe('a doubt', () => {
  test('A28: is reported once until it changes, over restarts, and ends when no sign is left', async () => {
    const world = await standingSandbox();
    let shown: object = { has_more: true };
    const list = await aList(
      world,
      readingOf(() => pageOf(rowsOf(5), shown)),
    );
    const poll = async () => {
      await world.clock.advance(minuteMs);
      return await list.poll();
    };

    const first = [await poll(), await poll()];
    list.restart();
    first.push(await poll());
    shown = { total: 50 };
    const second = [await poll(), await poll()];
    shown = { total: 5 };
    const last = await poll();

    expect(first).toMatchObject([doubtful, doubtful, doubtful]);
    expect(second).toMatchObject([doubtful, doubtful]);
    expect(last).toEqual(well);
    expect(
      (await list.reported()).map(({ condition, details }) => [condition, details?.sign]),
    ).toEqual([
      ['source.paging_suspected', 'has_more'],
      ['source.paging_suspected', 'total'],
    ]);
  });

  test('A10 A30: is no length of a list that was begun in the middle', async () => {
    const world = await standingSandbox();
    const settings = { start: '2026-01-01T00:00:00Z' };
    const list = await aList(
      world,
      readingOf(() => pageOf(rowsOf(5), { total: 50 }), { settings }),
    );

    expect(await list.poll()).toEqual({ ...well, fresh: 5 });
  });

  test('A30: is the length of a list of several pages, once it was read twice', async () => {
    const world = await standingSandbox();
    let total = 30;
    const answer = ({ position }: PageQuery) => {
      const isFirst = position.by === 'cursor' && position.cursor === null;
      return pageOf(rowsOf(20).slice(isFirst ? 0 : 10, isFirst ? 10 : 20), {
        next_cursor: isFirst ? 'c1' : null,
        total,
      });
    };
    const list = await aList(world, readingOf(answer));

    const polled = [await list.poll(), await list.poll()];
    total = 20;
    await world.clock.advance(2 * hourMs);

    expect(polled).toMatchObject([{ outcome: 'done', more: true }, doubtful]);
    expect(polled[0]).not.toHaveProperty('doubt');
    expect(await list.poll()).toEqual(well);
    expect(await list.conditions()).toEqual(['source.paging_suspected']);
  });

  test('A14 A30: is no length after which repeated ids were not counted', async () => {
    const world = await standingSandbox();
    const rows = Array.from({ length: 20 }, (_, n) => ({ id: `r${n % 5}`, n }));
    const answer = ({ position }: PageQuery) => {
      const isFirst = position.by === 'cursor' && position.cursor === null;
      return pageOf(rows.slice(isFirst ? 0 : 10, isFirst ? 10 : 20), {
        next_cursor: isFirst ? 'c1' : null,
        total: 20,
      });
    };
    const list = await aList(world, readingOf(answer));

    await list.readToTail();

    expect((await list.records()).length).toBe(20);
    expect(await list.conditions()).not.toContain('source.paging_suspected');
  });

  test('A29 A31: is an offset that is ignored, and it is no cursor loop and no row that moves', async () => {
    const world = await standingSandbox();
    let asked = 0;
    const answer = () => {
      asked += 1;
      return pageOf(rowsOf(10));
    };
    const settings = { pagination: { style: 'offset' } };
    const list = await aList(world, readingOf(answer, { settings }));

    const polled = await list.poll();

    expect(polled).toMatchObject({ isDefinite: true, cause: { code: 'paging_suspected' } });
    expect(polled.outcome === 'retry' && polled.cause.message).toContain('offset');
    expect(asked).toBeLessThan(10);
    expect((await list.records()).length).toBe(10);
    expect(await list.conditions()).toEqual(['source.paging_suspected']);
  });

  test('A04: is a cursor that is not heeded', async () => {
    const world = await standingSandbox();
    let nonce = 0;
    const answer = () => {
      nonce += 1;
      return pageOf(rowsOf(10), { next_cursor: `c${nonce}` });
    };
    const list = await aList(world, readingOf(answer));

    expect(await list.poll()).toMatchObject({ ...doubtful, fresh: 10 });
    expect((await list.reported())[0]?.details).toMatchObject({ sign: 'cursor not heeded' });
  });
});

const refused = (status: number): Answer<Body> => {
  const cause = new ExportError('upstream_refused', `status ${status}`, { next: 'ask again' });
  return { outcome: 'refused', status, cause };
};

describe('a position that is refused', () => {
  const inPages = (count: number, { position }: PageQuery): Answer<Body> => {
    const from = position.by === 'cursor' ? Number(position.cursor ?? 0) : 0;
    const next = from + 10 < count ? String(from + 10) : null;
    return pageOf(rowsOf(count).slice(from, from + 10), { next_cursor: next });
  };
  test('2.8: for ever is checked ever more seldom, though the list is read again for it', async () => {
    const isSecond = ({ position }: PageQuery) =>
      position.by === 'cursor' && position.cursor !== null;
    const list = await aList(
      await standingSandbox(),
      readingOf((query) => (isSecond(query) ? refused(404) : inPages(30, query))),
    );

    const polled = [await list.poll(), await list.poll(), await list.poll(), await list.poll()];

    const advanced = polled.map((result) => 'advanced' in result && result.advanced);
    expect(advanced).toEqual([true, false, false, false]);
  });

  test('2.1.6: now and then does not have a long list read again from its start', async () => {
    let asked = 0;
    let begun = 0;
    const list = await aList(
      await standingSandbox(),
      readingOf((query) => {
        asked += 1;
        if (asked % 10 === 0) return refused(404);
        if (query.position.by === 'cursor' && query.position.cursor === null) begun += 1;
        return inPages(400, query);
      }),
    );

    const advanced: unknown[] = [];
    for (let polls = 0; polls < 20 && (await list.records()).length < 400; polls += 1) {
      const result = await list.poll();
      if (result.outcome !== 'done') advanced.push(result.advanced);
    }

    expect((await list.records()).length).toBe(400);
    expect(advanced).not.toContain(false);
    expect(begun).toBeLessThan(10);
  });
});

describe('the flag of numbered pages', () => {
  test.each([
    ['ids', (id: string) => ({ id })],
    ['no ids', (n: string) => ({ n })],
  ])('A29: has no page requested after the last one, with %s', async (_, rowOf) => {
    const world = await standingSandbox();
    const rows = Array.from({ length: 30 }, (_, n) => rowOf(`r${n}`));
    const refused: number[] = [];
    const list = await aList(world, {
      settings: { pagination: { style: 'page', more: 'has_more' } },
      wrap: (stream) =>
        answeredBy(stream, async ({ query }) => {
          const page = Number(Object.fromEntries(query).page);
          const from = (page - 1) * 10;
          if (from < rows.length) {
            return answerWith(rows.slice(from, from + 10), { has_more: from + 10 < rows.length });
          }
          refused.push(page);
          const cause = new ExportError('upstream_refused', 'no such page', { next: 'none' });
          return { outcome: 'refused', status: 404, cause };
        }),
    });

    for (const more of [0, 1, 8, 1, 25]) {
      rows.push(...Array.from({ length: more }, (_, n) => rowOf(`r${rows.length + n}`)));
      list.restart();
      await world.clock.advance(minuteMs);
      expect(await list.readToTail()).toBe(more === 0 ? 30 : more);
    }

    expect(refused).toEqual([]);
    expect(await list.conditions()).toEqual([]);
    expect((await list.records()).length).toBe(rows.length);
  });
});

test('A28: a changed paging reads the list again from its start, without repeats and without halting', async () => {
  const world = await standingSandbox();
  const spool = await aSpool();
  const rows = rowsOf(35);
  const answer = ({ position, limit }: PageQuery) => {
    const from = position.by === 'offset' ? position.offset : 0;
    return pageOf(rows.slice(from, from + (limit ?? 10)), { total: 35 });
  };
  const before = await aList(world, readingOf(answer, { spool }));
  const polled = await before.poll();

  const settings = { pagination: { style: 'offset' } };
  const after = await aList(world, readingOf(answer, { spool, settings }));
  await after.readToTail();

  expect(polled).toMatchObject(doubtful);
  expect(await after.poll()).toEqual(well);
  expect((await after.records()).map(({ id }) => id).toSorted()).toEqual(
    rows.map(({ id }) => id).toSorted(),
  );
});
