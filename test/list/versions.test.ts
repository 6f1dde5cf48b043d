// An id is not a promise: records that share one, records that change, and fields that differ at each reading. Each content
// is held once and has a uid of its own, the same in whatever order and by whomever it is read.

import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Json } from '../../src/contracts/json.ts';
import { Backfill } from '../../src/list/backfill.ts';
import { olderCheck } from '../../src/list/identity.ts';
import { ListPoller } from '../../src/list/poller.ts';
import { ListReader } from '../../src/list/reader.ts';
import { answerWith, cursorIn, madeUpList } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { asVersion1 } from '../support/older-checkpoint.ts';
import { silent } from '../support/silent-log.ts';
import { aSpool, heldIn, hourMs, minuteMs } from './reading.ts';

type Row = Readonly<Record<string, unknown>>;

const begin = Date.UTC(2026, 0, 1);
const settings = {
  lookbackMs: 10 * minuteMs,
  rewindEveryMs: 15 * minuteMs,
  reconcileEveryMs: hourMs,
  onCursorInvalid: 'rewalk',
} as const;

interface Wishes {
  readonly immutable?: boolean;
  readonly ignore?: readonly string[];
  readonly limit?: number;
  readonly spool?: Awaited<ReturnType<typeof aSpool>>;
}

/** A list of what `rows` gives at each request, read into a spool. */
async function aListOf(rows: () => readonly Row[], wishes: Wishes = {}) {
  const { immutable = false, ignore = [], limit = 20 } = wishes;
  const spool = wishes.spool ?? (await aSpool());
  const clock = manualClock();
  const stream = madeUpList(
    async (request) => {
      const all = rows();
      const from = Number(cursorIn(request) ?? 0);
      const next = from + limit < all.length ? String(from + limit) : null;
      return answerWith(all.slice(from, from + limit), { next_cursor: next });
    },
    { records: immutable ? 'audit' : 'log', immutable, time: ['time'], ignore, pageLimit: limit },
  );
  const deps = { stream, spool, clock, log: silent } as const;
  const never = new AbortController().signal;
  const start = () =>
    new ListPoller(
      new ListReader({
        ...deps,
        order: 'auto',
        start: 'beginning',
        patienceMs: settings.rewindEveryMs,
        lookbackMs: settings.lookbackMs,
      }),
      settings,
    );
  let poller = start();
  return {
    spool,
    stream,
    clock,
    async read(times = 1) {
      for (let left = times; left > 0; left -= 1) {
        for (let polls = 0; ; polls += 1) {
          const result = await poller.poll(never);
          if (result.outcome !== 'done') throw result.cause;
          if (!result.more) break;
          if (polls === 50) throw new Error('the tail is not reached within 50 polls');
        }
        await clock.advance(minuteMs);
      }
    },
    restart() {
      poller = start();
    },
    async backfill() {
      const span = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };
      const pace = () => Promise.resolve();
      const list = { order: 'auto', lookbackMs: 0 } as const;
      const backfill = new Backfill({ ...deps, list, span, key: 'backfill:src', pace });
      await backfill.poll(never);
    },
    async held() {
      const all = await heldIn(spool);
      return all.filter(({ kind }) => kind !== 'condition');
    },
    async reported() {
      return (await heldIn(spool)).filter(({ kind }) => kind === 'condition');
    },
    async conditions() {
      return (await this.reported()).map(({ text }) => JSON.parse(text).condition);
    },
  };
}

type Listed = Awaited<ReturnType<typeof aListOf>>;

const textsOf = async (list: Listed) => (await list.held()).map(({ text }) => text);
const uidByText = async (list: Listed) =>
  new Map((await list.held()).map(({ text, uid }) => [text, uid]));
const texts = (rows: readonly Row[]) => rows.map((row) => JSON.stringify(row));
const time = (n: number) => new Date(begin + n * 1_000).toISOString();
const numbered = <R extends Row>(count: number, of: (n: number) => R) =>
  Array.from({ length: count }, (_, n) => ({ time: time(n), ...of(n) }));

test('records that share ids are each stored once, and no loop is detected if ids repeat', async () => {
  const rows = numbered(200, (n) => ({ id: `r${n % 20}`, n }));
  const list = await aListOf(() => rows);

  await list.read(3);
  await list.clock.advance(25 * hourMs);
  list.restart();
  await list.read(20);

  const held = await list.held();
  expect(held.map(({ text }) => text)).toEqual(texts(rows));
  expect(new Set(held.map(({ uid }) => uid)).size).toBe(rows.length);
  expect(await list.conditions()).toEqual([]);
});

test('an immutable record that shares an id is a violation once, and neither version is reported again', async () => {
  const rows = [
    { id: 'a', time: time(1), x: 1 },
    { id: 'b', time: time(2), x: 1 },
    { id: 'a', time: time(3), x: 2 },
  ];
  const list = await aListOf(() => rows, { immutable: true });

  await list.read(30);
  list.restart();
  await list.read(100);

  expect(await textsOf(list)).toEqual(texts(rows));
  expect(await list.conditions()).toEqual(['integrity_violation']);
});

test('each record that violates is reported by its uid, as the same event also after state was lost and in a backfill', async () => {
  const rows = numbered(30, (n) => ({ id: `r${n % 25}`, n }));
  const list = await aListOf(() => rows, { immutable: true });
  const again = await aListOf(() => rows, { immutable: true });

  await list.read(3);
  await again.read(3);
  const reported = await list.reported();
  const uids = await uidByText(list);
  const changed = texts(rows.slice(25)).map((text) => uids.get(text));

  expect(reported.map(({ text }) => JSON.parse(text).details)).toEqual(
    changed.map((uid) => ({ uid })),
  );
  const own = reported.map(({ uid }) => uid);
  expect(new Set(own).size).toBe(5);
  expect((await again.reported()).map(({ uid }) => uid)).toEqual(own);
  await list.backfill();
  expect((await list.reported()).map(({ uid }) => uid)).toEqual([...own, ...own]);
});

test('the same content has the same uid in another order of reading, after state was lost, and in a backfill', async () => {
  const rows = numbered(60, (n) => ({ id: `r${n % 50}`, n, x: { p: n, q: [1, n] } }));
  const one = await aListOf(() => rows);
  const other = await aListOf(() => rows.toReversed());
  const printed = rows.map(({ x, n, id, time: at }) => ({
    x: { q: x.q, p: x.p },
    n,
    id,
    time: at,
  }));
  const again = await aListOf(() => printed);

  await one.read();
  await other.read();
  await again.read();
  const before = await uidByText(one);
  await one.backfill();

  expect(await uidByText(other)).toEqual(before);
  expect([...(await uidByText(again)).values()]).toEqual([...before.values()]);
  expect((await one.held()).slice(60).map(({ text, uid }) => [text, uid])).toEqual([...before]);
});

test('a record of logs that has changed is held again, and the same however it is printed', async () => {
  let rows: readonly Row[] = numbered(15, (n) => ({ id: `r${n}`, state: 'open', at: { n } }));
  const list = await aListOf(() => rows);
  await list.read(2);

  rows = rows.map((row, n) => (n === 7 ? { ...row, state: 'closed' } : row));
  await list.read(2);
  rows = rows.map(({ at, ...row }) => ({ at, ...row }));
  await list.read(2);

  const held = await textsOf(list);
  expect(held.slice(15).map((text) => JSON.parse(text))).toEqual([{ ...rows[7], state: 'closed' }]);
  expect(await list.conditions()).toEqual([]);
});

/** A number that is another one each time. */
function counter(): () => number {
  let count = 0;
  return () => {
    count += 1;
    return count;
  };
}

const volatile = (count: number, seen: () => number) => () =>
  numbered(count, (n) => ({ id: `r${n}`, n, meta: { seen: seen() } }));

test('a field that differs at each reading redelivers nothing, is reported once, and delays no new record', async () => {
  const next = counter();
  let count = 60;
  const list = await aListOf(() => volatile(count, next)());
  await list.read(3);

  count = 63;
  await list.read(40);
  list.restart();
  await list.read(40);

  const ids = (await list.held()).map(({ text }) => JSON.parse(text).id);
  expect(ids).toEqual(Array.from({ length: 63 }, (_, n) => `r${n}`));
  const [drift, ...more] = (await heldIn(list.spool)).filter(({ kind }) => kind === 'condition');
  expect(more).toEqual([]);
  expect(JSON.parse(drift?.text ?? '')).toMatchObject({
    condition: 'schema_drift',
    details: { paths: ['meta.seen'] },
  });
});

test.each([5, 200])(
  'records that share ids are no drift, however many come between two readings; pages of %i',
  async (limit) => {
    const rows = Array.from({ length: 200 }, (_, n) => ({ id: `r${n % 40}`, n })).toReversed();
    let count = 40;
    const newestFirst = await aListOf(() => rows.slice(-count), { limit });
    await newestFirst.read(2);

    newestFirst.restart();
    count = 200;
    await newestFirst.read(30);

    expect((await textsOf(newestFirst)).toSorted()).toEqual(texts(rows).toSorted());
  },
);

test('with ignore the field makes no version, a change beside it does, and setting it delivers nothing twice', async () => {
  const next = counter();
  let state = 'open';
  const rows = () =>
    numbered(30, (n) => ({
      id: `r${n}`,
      state: n === 3 ? state : 'open',
      meta: { seen: next() },
    }));
  const before = await aListOf(rows);
  await before.read(3);
  const list = await aListOf(rows, { spool: before.spool, ignore: ['meta.seen'] });

  await list.read(20);
  state = 'closed';
  await list.read(60);

  const held = (await list.held()).slice(30).map(({ text }) => JSON.parse(text));
  expect(held).toMatchObject([{ id: 'r3', state: 'closed' }]);
  expect(await list.conditions()).toEqual(['schema_drift']);
});

test('a record that is held back and then no longer changes is reported, once', async () => {
  const next = counter();
  let isMoving = true;
  const list = await aListOf(volatile(30, () => (isMoving ? next() : 0)));
  await list.read(5);
  expect(await list.held()).toHaveLength(30);

  isMoving = false;
  await list.read(120);

  const last = (await list.held()).slice(30).map(({ text }) => JSON.parse(text));
  expect(last.map(({ id }) => id).sort()).toEqual(
    Array.from({ length: 30 }, (_, n) => `r${n}`).sort(),
  );
  expect(new Set(last.map(({ meta }) => meta.seen))).toEqual(new Set([0]));
});

/** What version 0.1.0 held of records: its checkpoint had no `ignore`, and its identities went by the id alone. */
async function leftByOlder(rows: readonly Row[], immutable: boolean) {
  const before = await aListOf(() => rows, { immutable });
  await before.read();
  const { checkpoint } = await before.spool.recall('src');
  const {
    ignore: _,
    olderUpTo: __,
    drift: ___,
    ...kept
  } = asVersion1(checkpoint) as Record<string, Json>;
  const identities = rows.map((row) => {
    const key = createHash('sha256').update(`${JSON.stringify(['src', '', 'src'])}i\0${row.id}`);
    const check = Buffer.alloc(4);
    check.writeUInt32LE(immutable ? olderCheck(Buffer.from(JSON.stringify(row))) : 0);
    return Buffer.concat([key.digest().subarray(0, 16), check]);
  });
  const spool = await aSpool();
  await spool.append({
    stream: 'src',
    pages: [],
    checkpoint: kept,
    identities: new Uint8Array(Buffer.concat(identities)),
  });
  return spool;
}

test.each([true, false])(
  'records stored by version 0.1.0 are not stored again, and a later change is; immutable: %s',
  async (immutable) => {
    const rows = numbered(30, (n) => ({ id: `r${n}`, state: 'open' }));
    let now: readonly Row[] = rows;
    const list = await aListOf(() => now, {
      immutable,
      spool: await leftByOlder(rows, immutable),
    });

    await list.read(40);
    list.restart();
    await list.read(40);
    expect(await list.held()).toEqual([]);
    now = rows.map((row, n) => (n === 12 ? { ...row, state: 'closed' } : row));
    await list.read(90);

    expect(await textsOf(list)).toEqual(texts(now.slice(12, 13)));
    expect(await list.conditions()).toEqual(immutable ? ['integrity_violation'] : []);
  },
);

test('two checks that version 0.1.0 has kept for one id, one after the other, are both honoured', async () => {
  const rows = [
    { id: 'a', time: time(1), x: 1 },
    { id: 'a', time: time(3), x: 2 },
  ];
  const list = await aListOf(() => rows, {
    immutable: true,
    spool: await leftByOlder(rows, true),
  });

  await list.read(40);

  expect(await list.held()).toEqual([]);
  expect(await list.conditions()).toEqual([]);
});

test('olderCheck returns the check stored by version 0.1.0', () => {
  const records = [
    '{"id":"a","x":1}',
    '{ "x" : [ 1, "b", [true, null], {"y":-1.5e3} ], "id":"\\u0061\\"é" }',
    '{}',
  ];

  // As version 0.1.0 gave them.
  expect(records.map((record) => olderCheck(Buffer.from(record)))).toEqual([
    1_620_956_803, 192_394_062, 1,
  ]);
});
