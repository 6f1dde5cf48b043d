// A position that upstream only seems to ignore: equal records without ids, moved rows, and a server that really serves
// another position look alike. Whatever `on_cursor_invalid` is, the list is read again then, and nothing is skipped.

import { expect, test } from 'vitest';
import { AUDIT } from '../sandbox/client.ts';
import { answeredBy, answerWith, cursorIn } from '../support/made-up-list.ts';
import type { ManualClock } from '../support/manual-clock.ts';
import {
  aList,
  differences,
  hourMs,
  type ListUnderTest,
  ledgerIds,
  minuteMs,
  none,
  standingSandbox,
} from './reading.ts';

const reactions = ['rewalk', 'halt', 'from_now'] as const;
const textsOf = async (list: ListUnderTest) => (await list.records()).map(({ text }) => text);

/** A time before `lookback`, so that `from_now` would skip the record. */
const timeOf = (clock: ManualClock) => new Date(clock.now() - 20 * minuteMs).toISOString();

test.for(reactions)(
  'A04: a record equal to the last one, at a cursor that leads on for ever, is read: %s',
  async (reaction) => {
    const world = await standingSandbox();
    const time = timeOf(world.clock);
    const rows: object[] = [0, 1, 2].map((n) => ({ n, time }));
    const list = await aList(world, {
      settings: { order: 'oldest_first', on_cursor_invalid: reaction, id: null },
      wrap: (stream) =>
        answeredBy(stream, async (request) => {
          const at = Number(cursorIn(request) ?? 0);
          return answerWith(rows.slice(at), { next_cursor: `${rows.length}` });
        }),
    });
    await list.readToTail();

    rows.push({ n: 2, time });
    await list.readToTail();

    const texts = rows.map((row) => JSON.stringify(row));
    expect(differences(await textsOf(list), texts)).toEqual(none);
  },
);

test.for(reactions)('A29: rows that move within the first pages are read: %s', async (reaction) => {
  const world = await standingSandbox();
  const time = timeOf(world.clock);
  const size = 5;
  const rows = [0, 1, 2, 3].map((n) => ({ id: `${n}`, time }));
  const pagination = { style: 'page' };
  const list = await aList(world, {
    settings: {
      order: 'oldest_first',
      on_cursor_invalid: reaction,
      page_limit: size,
      pagination,
    },
    wrap: (stream) =>
      answeredBy(stream, async ({ query }) => {
        const at = (Number(new Map(query).get('page')) - 1) * size;
        return answerWith(rows.slice(at, at + size));
      }),
  });
  await list.readToTail();

  for (const id of ['5', '6', '7', '8']) rows.push({ id, time });
  await list.readToTail();

  const texts = rows.map((row) => JSON.stringify(row));
  expect(differences(await textsOf(list), texts)).toEqual(none);
});

test.for(reactions)(
  'A08: a server that answers a dead cursor with its first page hides nothing: %s',
  async (reaction) => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    const bad = { cursor_lifetime_s: 60, bad_cursor: 'ignored' as const };
    sandbox.control.setFaults({ lists: [{ path: AUDIT, ...bad }] });
    const settings = { order: 'oldest_first', on_cursor_invalid: reaction };
    const list = await aList(world, { settings });
    await list.readToTail();
    sandbox.control.grow(AUDIT, 15);
    await clock.advance(hourMs);

    await list.readToTail();

    const ids = (await list.records()).map(({ id }) => id);
    expect(differences(ids, ledgerIds(sandbox))).toEqual(none);
    expect(await list.reported()).toMatchObject([
      {
        condition: 'source.checkpoint_reset',
        message: expect.stringContaining('seems to answer the cursor with another position'),
      },
    ]);
  },
);

test('A03: a suspicion within a full scan repeats the scan and does not halt the stream', async () => {
  const world = await standingSandbox();
  const { clock } = world;
  const size = 3;
  const rows = Array.from({ length: 30 }, (_, n) => ({ n }));
  let answerMs = 0;
  const list = await aList(world, {
    settings: {
      ...{ order: 'oldest_first', on_cursor_invalid: 'halt', page_limit: size, id: null },
      // A poll reads three pages of a scan.
      reconcile_every: '1m',
    },
    wrap: (stream) =>
      answeredBy(stream, async (request) => {
        await clock.advance(answerMs);
        const at = Number(cursorIn(request) ?? 0);
        const next = at + size < rows.length ? String(at + size) : null;
        return answerWith(rows.slice(at, at + size), { next_cursor: next });
      }),
  });
  await list.readToTail();

  // In one poll, the scan finds a new record, and then a page whose last row equals the first row of the list.
  rows[19] = { n: 100 };
  rows[23] = { n: 0 };
  answerMs = 2_000;
  await clock.advance(minuteMs);
  const outcomes: string[] = [];
  for (let poll = 0; poll < 12; poll += 1) {
    outcomes.push((await list.poll()).outcome);
    await clock.advance(minuteMs);
  }

  expect(outcomes).toContain('retry');
  expect(outcomes).not.toContain('refused');
  expect(outcomes.at(-1)).toBe('done');
  const texts = await textsOf(list);
  expect(texts.filter((text) => text === '{"n":0}')).toHaveLength(2);
  expect(texts).toContain('{"n":100}');
});
