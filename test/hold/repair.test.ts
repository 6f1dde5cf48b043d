// Each way in which a state database can be damaged, and the result: it is set aside unchanged, another is built from
// the readable parts, and pages that are neither delivered nor stored any more are read again. No damage goes
// unreported.

import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { presentEpoch, reachOf } from '../../src/contracts/numbering.ts';
import { readDelivered, writeDelivered } from '../../src/hold/delivered.ts';
import { findOlder } from '../../src/hold/older.ts';
import { repairDatabase, type StreamReset } from '../../src/hold/repair.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { Store } from '../../src/hold/store.ts';
import { tempDir } from '../support/temp.ts';
import { type Accounts, copied, lossesIn, repair, sinks, streams, twoRuns } from './accounts.ts';
import { changeUids, overwrite, placeOf, rootOf, sqlitePage } from './damages.ts';
import { rowsIn } from './rows.ts';

let closed: Accounts;
let killed: Accounts;

beforeAll(async () => {
  ({ closed, killed } = await twoRuns());
});

/** What the files say that were set aside. */
function asideIn(dir: string): readonly string[] {
  const asides = readdirSync(dir).filter((name) => name.startsWith('damaged-'));
  return asides.flatMap((aside) =>
    readdirSync(join(dir, aside)).map((name) => readFileSync(join(dir, aside, name), 'latin1')),
  );
}

/** Damages that leave nothing to be read: streams go back to where all was delivered. */
const unreadable: Readonly<Record<string, (path: string) => void>> = {
  'is empty': (path) => truncateSync(path, 0),
  'is gone': (path) => rmSync(path),
  'is no database': (path) => writeFileSync(path, Buffer.alloc(100_000, 'not a database ')),
  'is cut within its header': (path) => truncateSync(path, 60),
  'has lost its first page': (path) => overwrite(path, 0, Buffer.alloc(sqlitePage)),
  'has a list of tables that is no list': (path) => overwrite(path, 100, Buffer.alloc(500, 0xff)),
};

describe.each(Object.entries(unreadable))('repairDatabase, where the database %s', (_, damage) => {
  test('goes back to the last position delivered everywhere and reports it to every stream’s sinks', () => {
    const dir = copied(closed.dir);
    damage(join(dir, 'sluice.db'));

    const { repaired, told: reported } = repair(dir);
    const again = repair(dir);
    const older = findOlder({ dir, sync: 'normal', sinks, streams, report: () => null });

    expect(older).toBeNull();
    expect(repaired?.saved).toBe(0);
    expect(repaired?.lost).toBeNull();
    expect(repaired?.resets).toEqual(reported);
    expect(reported.map(({ stream }) => stream).toSorted()).toEqual([...streams]);
    expect(reported.every(({ deliveredAt }) => deliveredAt !== null)).toBe(true);
    expect(lossesIn(dir, closed)).toEqual([]);
    const store = new Store({ dir, sync: 'normal', keepMs: 0 });
    expect(store.streams.recall('audit').checkpoint).toEqual({ last: 60 });
    expect(store.streams.recall('logs').checkpoint).toEqual({ last: 17 });
    expect(store.read(0, 1e9).map(({ context }) => context.stream)).toEqual(
      reported.map(({ stream }) => stream),
    );
    store.close();
    expect(again.repaired).toBeNull();
  });
});

/** Damages that leave most of the file readable. */
const partial: Readonly<Record<string, (dir: string, path: string) => void>> = {
  'has one changed byte in a held page': (_, path) =>
    overwrite(path, placeOf(path, '"id":"130"') + 500, Buffer.from('y')),
  'has a changed bit in the uids of a held page': (dir) => changeUids(dir, 90),
  'is cut in the middle': (_, path) => truncateSync(path, Math.floor(statSync(path).size / 4)),
  'is cut by one byte': (_, path) => truncateSync(path, statSync(path).size - 1),
  'has zeros where pages are listed': (dir, path) =>
    overwrite(path, rootOf(dir, 'page'), Buffer.alloc(sqlitePage)),
  'has zeros where checkpoints are': (dir, path) =>
    overwrite(path, rootOf(dir, 'checkpoint'), Buffer.alloc(sqlitePage)),
  'has zeros where positions are': (dir, path) =>
    overwrite(path, rootOf(dir, 'position'), Buffer.alloc(sqlitePage)),
  'has zeros where known records are': (dir, path) =>
    overwrite(path, rootOf(dir, 'identities'), Buffer.alloc(sqlitePage)),
  'has zeros where it says which spool it is': (dir, path) =>
    overwrite(path, rootOf(dir, 'meta'), Buffer.alloc(sqlitePage)),
  'has zeros in every tenth block of the disk': (_, path) => {
    for (let at = 4_096 * 10; at < statSync(path).size - 4_096; at += 4_096 * 10) {
      overwrite(path, at, Buffer.alloc(4_096));
    }
  },
};

describe.each(Object.entries(partial))('repairDatabase, where the database %s', (_, damage) => {
  test('keeps all readable data, and loses nothing', () => {
    const dir = copied(closed.dir);
    damage(dir, join(dir, 'sluice.db'));

    const { repaired, told: reported } = repair(dir);
    const losses = lossesIn(dir, closed);
    const again = repair(dir);

    expect(repaired).not.toBeNull();
    expect(losses).toEqual([]);
    expect(repaired?.resets).toEqual(reported);
    expect(again.repaired).toBeNull();
  });
});

test('repairDatabase leaves streams where they are when nothing that counts is missing', () => {
  const dir = copied(closed.dir);
  overwrite(join(dir, 'sluice.db'), rootOf(dir, 'note'), Buffer.alloc(sqlitePage));

  const { repaired, told: reported } = repair(dir);

  expect(repaired).toMatchObject({ saved: 100, lost: 0, resets: [], deadLettersSaved: true });
  expect(reported).toEqual([]);
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  expect(store.streams.recall('audit').checkpoint).toEqual({ last: 140 });
  expect([store.progress('a').position, store.progress('b').position]).toEqual([120, 80]);
  expect(rowsIn(dir, 'SELECT reason FROM dead_letter')).toEqual([{ reason: 'too long' }]);
  expect(store.read(0, 1e9).map(({ first }) => first)).toContain(77);
  store.close();
});

test('repairDatabase leaves no sink waiting for events that were the last and are gone', () => {
  const dir = copied(closed.dir);
  changeUids(dir, closed.end - 1);

  const repaired = repairDatabase({ dir, sync: 'normal', sinks, streams, report: () => null });

  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  const last = store.read(0, 1e9).at(-1);
  expect(repaired?.lost).toBe(5);
  expect(store.end).toBe((last?.first ?? 0) + (last?.count ?? 0));
  store.close();
});

test('repairDatabase resumes as the same spool in an epoch of its own, since the sinks’ knowledge of lost numbers is void', async () => {
  const dir = copied(closed.dir);
  const numbering = () => {
    const store = new Store({ dir, sync: 'normal', keepMs: 0, readOnly: true });
    const known = store.numbering;
    store.close();
    return known;
  };
  const before = numbering();
  overwrite(join(dir, 'sluice.db'), rootOf(dir, 'note'), Buffer.alloc(sqlitePage));

  repair(dir);

  const after = numbering();
  const last = { spool: before.spool, epoch: presentEpoch(before), next: closed.end };
  expect(after.spool).toBe(before.spool);
  expect(presentEpoch(after)).toBeGreaterThan(presentEpoch(before));
  expect(reachOf(last, after).position).toBeLessThanOrEqual(closed.end);
});

test('repairDatabase trusts no earlier number if streams go back: repeats are recognised by uid', () => {
  const dir = copied(closed.dir);
  const before = new Store({ dir, sync: 'normal', keepMs: 0, readOnly: true });
  const { spool, epochs } = before.numbering;
  before.close();
  truncateSync(join(dir, 'sluice.db'), 3 * sqlitePage);

  const { told: reported } = repair(dir);

  const after = new Store({ dir, sync: 'normal', keepMs: 0, readOnly: true });
  const reach = reachOf(
    { spool, epoch: presentEpoch({ spool, epochs }), next: 60 },
    after.numbering,
  );
  after.close();
  expect(reported.length).toBeGreaterThan(0);
  expect(reach).toEqual({ position: 0, ahead: true });
});

test.each(['cut', 'emptied', 'removed'])(
  'findOlder reports a log that was %s, and once',
  async (how) => {
    const dir = copied(killed.dir);
    const log = join(dir, 'sluice.db-wal');
    if (how === 'removed') rmSync(log);
    else truncateSync(log, how === 'cut' ? Math.floor(statSync(log).size / 2) : 0);
    const reported: StreamReset[] = [];
    const settings = { dir, sync: 'normal', sinks, streams } as const;
    const report = (reset: StreamReset) => {
      reported.push(reset);
      return null;
    };

    const repaired = repairDatabase({ ...settings, report });
    const found = findOlder({ ...settings, report });
    const spool = await openSpool({ ...settings, keepMs: 0, bytesMax: 1e9 });
    await spool.close();
    const again = findOlder({ ...settings, report });

    expect([repaired, again]).toEqual([null, null]);
    expect(found?.sign).toMatch(/^[ab] had come to event \d+$/);
    expect(reported.map(({ reason }) => reason)).toEqual(reported.map(() => 'state_older'));
    expect(lossesIn(dir, killed)).toEqual([]);
  },
);

test.each([
  ['delivered.json', /^[ab] had come to event \d+$/],
  ['reached', /^events up to \d+ had been held$/],
])('findOlder needs only one of two signs: without %s', (missing, sign) => {
  const dir = copied(killed.dir);
  const { spool = '', streams: places = {} } = readDelivered(dir) ?? {};
  writeDelivered(dir, { spool, end: 1e6, streams: places });
  rmSync(join(dir, 'sluice.db-wal'));
  rmSync(join(dir, missing));

  const found = findOlder({ dir, sync: 'normal', sinks, streams, report: () => null });

  expect(found?.sign).toMatch(sign);
});

test('findOlder finds nothing in a state that is as it was left, killed or closed', () => {
  const none = [killed, closed].map(({ dir }) =>
    findOlder({ dir: copied(dir), sync: 'normal', sinks, streams, report: () => null }),
  );

  expect(none).toEqual([null, null]);
});

test('repairDatabase does not let SQLite skip the log if the header names another journal', () => {
  const dir = copied(killed.dir);
  overwrite(join(dir, 'sluice.db'), 18, Buffer.from([1, 1]));

  expect(repair(dir).repaired?.damage).toContain('journal mode');

  expect(lossesIn(dir, killed)).toEqual([]);
});

test('repairDatabase keeps the damaged files as they were found, for their owner only', () => {
  const dir = copied(killed.dir);
  overwrite(join(dir, 'sluice.db'), rootOf(dir, 'entity'), Buffer.alloc(sqlitePage));
  const found = ['sluice.db', 'sluice.db-wal'].map((name) => readFileSync(join(dir, name)));

  const { repaired } = repair(dir);

  const aside = repaired?.aside ?? '';
  expect(aside).toMatch(/damaged-\d{4}-\d\d-\d\dT\d{6}\.\d{3}Z$/);
  const kept = ['sluice.db', 'sluice.db-wal'].map((name) => readFileSync(join(aside, name)));
  expect(kept.map((bytes, index) => bytes.equals(found[index] ?? Buffer.of()))).toEqual([
    true,
    true,
  ]);
  expect(statSync(aside).mode & 0o777).toBe(0o700);
  expect(readdirSync(aside).map((name) => statSync(join(aside, name)).mode & 0o777)).toEqual(
    readdirSync(aside).map(() => 0o600),
  );
});

test('repairDatabase reads again from the start if no delivered position is known', () => {
  const dir = copied(closed.dir);
  writeFileSync(join(dir, 'sluice.db'), 'nothing');
  writeFileSync(join(dir, 'delivered.json'), readFileSync(join(dir, 'delivered.json')).subarray(9));

  const { told: reported } = repair(dir);

  expect(reported).toEqual(
    streams.map((stream) => ({ stream, deliveredAt: null, reason: 'state_damaged' })),
  );
  expect(lossesIn(dir, closed)).toEqual([]);
});

test('repairDatabase does nothing in a directory where there is no database yet', () => {
  const dir = tempDir();
  appendFileSync(join(dir, 'sluice.db'), '');

  expect(repair(dir).repaired).toBeNull();
  expect(repair(tempDir()).repaired).toBeNull();
  expect(statSync(join(dir, 'sluice.db')).size).toBe(0);
});

test('a start continues where another was killed while it created the database', () => {
  const dir = tempDir();
  const [path, journal] = [join(dir, 'sluice.db'), join(dir, 'sluice.db-journal')];
  // Both files are copied in the middle of a write with a rollback journal, as a kill leaves them.
  const creating = join(tempDir(), 'sluice.db');
  {
    using database = new DatabaseSync(creating);
    database.exec('PRAGMA cache_size = 2; BEGIN; CREATE TABLE t (x)');
    const insert = database.prepare('INSERT INTO t VALUES (zeroblob(5000))');
    for (let row = 0; row < 100; row += 1) insert.run();
    copyFileSync(creating, path);
    copyFileSync(`${creating}-journal`, journal);
  }
  expect(readFileSync(journal)[0]).not.toBe(0);

  expect(repair(dir).repaired).toBeNull();
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  expect(store.end).toBe(0);
  store.close();
  expect(existsSync(journal)).toBe(false);
});

test('repairDatabase leaves a sound database as it is, also one that was killed', () => {
  const dir = copied(killed.dir);
  const files = () => ['sluice.db', 'sluice.db-wal'].map((name) => readFileSync(join(dir, name)));
  const before = files();

  expect(repair(dir).repaired).toBeNull();

  expect(files().map((bytes, index) => bytes.equals(before[index] ?? Buffer.of()))).toEqual([
    true,
    true,
  ]);
  expect(lossesIn(dir, killed)).toEqual([]);
});

test('repairDatabase leaves a database of a newer sluice to be refused', () => {
  const dir = copied(closed.dir);
  overwrite(join(dir, 'sluice.db'), 63, Buffer.from([77]));

  expect(repair(dir).repaired).toBeNull();
  expect(() => new Store({ dir, sync: 'normal', keepMs: 0 })).toThrow('newer sluice (schema 77)');
});

test('repairDatabase finishes a repair that an interrupted start had begun', () => {
  const dir = copied(closed.dir);
  const path = join(dir, 'sluice.db');
  writeFileSync(path, 'nothing');
  repair(dir);
  const whole = readFileSync(path);
  const cutOff = (files: Readonly<Record<string, Uint8Array>>) => {
    rmSync(path);
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(dir, name), bytes);
    return repair(dir).repaired;
  };

  const beforeItTookItsName = cutOff({
    'sluice.db.mended': whole,
    'sluice.db-wal': Buffer.from('of the damaged one'),
  });
  expect(beforeItTookItsName).toBeNull();
  expect(readFileSync(path).equals(whole)).toBe(true);
  expect(asideIn(dir)).toContain('of the damaged one');

  const beforeItWasWhole = cutOff({ 'sluice.db.partial': whole, 'sluice.db': whole.subarray(9) });
  expect(beforeItWasWhole).not.toBeNull();
  expect(existsSync(`${path}.partial`)).toBe(false);
  expect(lossesIn(dir, closed)).toEqual([]);
});

test('repairDatabase has the files beside the new database ready before that is in place', () => {
  const dir = copied(closed.dir);
  const path = join(dir, 'sluice.db');
  overwrite(path, rootOf(dir, 'page'), Buffer.alloc(sqlitePage));
  const before = readDelivered(dir);
  vi.setSystemTime(new Date('2026-11-27T00:00:00Z'));
  // The damaged database cannot be moved there: as if the start had ended before it moved it.
  const aside = join(dir, 'damaged-2026-11-27T000000.000Z');
  writeFileSync(aside, '');
  expect(() => repair(dir)).toThrow();
  vi.useRealTimers();

  const noted = readDelivered(dir);
  const isReached = existsSync(join(dir, 'reached'));
  rmSync(aside);
  const { repaired } = repair(dir);

  expect(noted).not.toEqual(before);
  expect(noted).toEqual(readDelivered(dir));
  expect(isReached).toBe(false);
  expect(repaired?.resets.length).toBeGreaterThan(0);
});

test('spool resumes in a repaired directory, and streams’ positions are known there too', async () => {
  const dir = copied(killed.dir);
  overwrite(join(dir, 'sluice.db'), rootOf(dir, 'entity'), Buffer.alloc(sqlitePage));
  repair(dir);
  const spool = await openSpool({ dir, sync: 'normal', keepMs: 0, sinks, bytesMax: 1e9 });
  const { end } = spool.gauge;

  const seen = new Set<number>();
  for (let from = 0; from < end; ) {
    const pages = await spool.read(from, 1e9);
    expect(pages.length).toBeGreaterThan(0);
    for (const { first } of pages) seen.add(first);
    from = (pages.at(-1)?.first ?? 0) + (pages.at(-1)?.count ?? 0);
  }
  await spool.close();
  renameSync(join(dir, 'sluice.db'), join(dir, 'gone'));
  const second = repair(dir);

  expect(seen.size).toBeGreaterThanOrEqual(2);
  expect(second.told.every(({ deliveredAt }) => deliveredAt !== null)).toBe(true);
  expect(lossesIn(dir, killed)).toEqual([]);
});
