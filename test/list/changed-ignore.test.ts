// Records without ids after a change of `ignore`: their keys are others, and those that are read again must be recognised.

import { describe, expect, test } from 'vitest';
import { ListPoller } from '../../src/list/poller.ts';
import { ListReader } from '../../src/list/reader.ts';
import { answerWith, cursorIn, madeUpList } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { aSpool, heldIn, hourMs, minuteMs } from './reading.ts';

type Row = Readonly<Record<string, unknown>>;

const begin = Date.UTC(2025, 11, 31);
const settings = {
  lookbackMs: 5_000,
  rewindEveryMs: 15 * minuteMs,
  reconcileEveryMs: hourMs,
  onCursorInvalid: 'rewalk',
} as const;
const limit = 7;

/** A list without ids, read into one spool by a process after another, each with an `ignore` of its own. */
async function aListOf(rows: () => readonly Row[]) {
  const spool = await aSpool();
  const clock = manualClock();
  const never = new AbortController().signal;
  return {
    /** Reads for two days. */
    async readWith(ignore: readonly string[]) {
      const get = async (request: Parameters<typeof cursorIn>[0]) => {
        const all = rows();
        const from = Number(cursorIn(request) ?? 0);
        const next = from + limit < all.length ? String(from + limit) : null;
        return answerWith(all.slice(from, from + limit), { next_cursor: next });
      };
      const of = { records: 'log', immutable: false, time: ['time'], pageLimit: limit } as const;
      const stream = madeUpList(get, { ...of, ignore });
      const deps = {
        stream,
        spool,
        clock,
        log: silent,
        order: 'auto',
        start: 'beginning',
      } as const;
      const { rewindEveryMs: patienceMs, lookbackMs } = settings;
      const reader = new ListReader({ ...deps, patienceMs, lookbackMs });
      const poller = new ListPoller(reader, settings);
      for (let poll = 0; poll < 60; poll += 1) {
        const result = await poller.poll(never);
        if (result.outcome !== 'done') throw result.cause;
        await clock.advance(poll % 10 === 9 ? 8 * hourMs : minuteMs);
      }
    },
    async held() {
      const all = await heldIn(spool);
      return all.filter(({ kind }) => kind !== 'condition');
    },
  };
}

const row = (n: number): Row => {
  const time = new Date(begin + n * 1_000).toISOString();
  return { time, n, age: n % 3, seen: { at: n % 5 }, ...(n % 4 === 0 ? {} : { extra: n }) };
};
const rowsFrom = (from: number, count: number) => {
  return Array.from({ length: count }, (_, at) => row(from + at));
};
/** Records that are at most `lookback` older than the newest one. */
const recentOf = (rows: readonly Row[]) => {
  const timeOf = ({ time }: Row) => Date.parse(String(time));
  const newest = Math.max(...rows.map(timeOf));
  return rows.filter((one) => timeOf(one) >= newest - settings.lookbackMs);
};
const texts = (rows: readonly Row[]) => rows.map((one) => JSON.stringify(one)).toSorted();

describe.each(['oldest first', 'newest first'])('a list that is served %s', (order) => {
  const served = (rows: readonly Row[]) => (order === 'oldest first' ? rows : rows.toReversed());

  test.each([
    [[[], ['age']]],
    [[['age'], ['age', 'seen.at']]],
    [[['age'], []]],
    [[['age', 'seen.at'], ['age']]],
    [[['age'], ['extra', 'seen']]],
    [[['age'], [], ['age']]],
    [[[], ['age'], [], ['age'], ['extra', 'age'], []]],
  ])('records are delivered once, and new ones too, after ignore %j', async (ignores) => {
    const rows: Row[] = [];
    const list = await aListOf(() => served(rows));
    /** Late ones could look like these after a change that compares more. */
    const doubtful: Row[] = [];
    for (const [at, ignore] of ignores.entries()) {
      const before = ignores[at - 1] ?? [];
      if (!before.every((path) => ignore.includes(path))) doubtful.push(...recentOf(rows));
      rows.push(...rowsFrom(rows.length, 30));
      await list.readWith(ignore);
    }
    rows.push(...rowsFrom(rows.length, 30));
    await list.readWith(ignores.at(-1) ?? []);

    const held = await list.held();
    expect(held.map(({ text }) => text).toSorted()).toEqual(texts([...rows, ...doubtful]));
    expect(new Set(held.map(({ uid }) => uid)).size).toBe(held.length);
  });

  test('later records that differ only in a path that is compared again are new', async () => {
    const beat = (n: number): Row => ({ time: new Date(begin + n * 1_000).toISOString(), beat: 1 });
    const rows = Array.from({ length: 20 }, (_, n) => beat(n));
    const list = await aListOf(() => served(rows));
    await list.readWith(['time']);
    // Upstream keeps the newest records only.
    rows.splice(0, 15);

    for (let n = 20; n < 30; n += 1) {
      rows.push(beat(n));
      await list.readWith([]);
    }

    const held = new Set((await list.held()).map(({ text }) => text));
    const missing = texts(rows).filter((text) => !held.has(text));
    expect(missing).toEqual([]);
  });

  test('late records that differ only in a path that is compared again are stored', async () => {
    const twin = (n: number): Row => ({ time: new Date(begin).toISOString(), n });
    const others = rowsFrom(1, 3);
    const rows = [twin(1), twin(2), ...others];
    const list = await aListOf(() => served(rows));
    await list.readWith(['n']);

    rows.unshift(twin(3));
    rows.push(twin(4));
    await list.readWith([]);

    const held = new Set((await list.held()).map(({ text }) => text));
    expect(texts(rows).filter((text) => !held.has(text))).toEqual([]);
  });

  test('a record is recognised only once by an earlier key', async () => {
    const rows = rowsFrom(0, 20);
    const list = await aListOf(() => served(rows));
    await list.readWith(['age']);
    const doubtful = recentOf(rows);
    await list.readWith([]);
    const late = { ...rows[4], age: 98 };
    rows.push(late);
    await list.readWith([]);
    rows.pop();
    // In place of the record that is stored under the same key.
    const [gone = {}] = rows.splice(5, 1, { ...rows[5], age: 99 });
    await list.readWith(['age']);

    const held = await list.held();
    expect(held.map(({ text }) => text).toSorted()).toEqual(
      texts([...rows, ...doubtful, late, gone]),
    );
    expect(new Set(held.map(({ uid }) => uid)).size).toBe(held.length);
  });

  test('equal records stay as many', async () => {
    const rows = [...rowsFrom(0, 10), ...rowsFrom(9, 1), ...rowsFrom(9, 1)];
    const list = await aListOf(() => served(rows));
    await list.readWith([]);
    rows.push(...rowsFrom(10, 2));
    await list.readWith(['age']);
    await list.readWith([]);

    const held = (await list.held()).map(({ text }) => text);
    expect(held.toSorted()).toEqual(texts([...rows, ...recentOf(rows)]));
  });
});
