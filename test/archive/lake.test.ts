// The lake of an archive in its log: what an entry binds, what is found when somebody lays hands on it, and what a crash
// between the two leaves.

import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { exportRange } from '../../src/archive/export.ts';
import { encodeHold } from '../../src/archive/holds.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { readParquet, readUids } from '../../src/parquet/read.ts';
import { anEvent } from '../support/an-event.ts';
import { memoryStore } from '../support/archive/memory-store.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { cut, eventsOf } from './a-lake.ts';
import {
  archived,
  aSigner,
  aWriter,
  heldPages,
  type Kill,
  Killed,
  mortal,
  readArchive,
  type State,
  uidsOfPages,
} from './a-writer.ts';

const hour = 3_600_000;

async function verified(location: string) {
  const reader = new ArchiveReader(openDirectory(location));
  return await verifyArchive(reader, { trusted: [aSigner().verifier] });
}

const entriesOf = async (location: string, t: string) =>
  (await readArchive(location)).entries.filter((entry) => entry.t === t);

function files(location: string): readonly string[] {
  return readdirSync(location, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(location.length + 1))
    .filter((name) => !name.startsWith('.'))
    .toSorted();
}

/** An archive of two segments and two cuts that meet within a page. */
async function anArchive(): Promise<string> {
  const location = join(tempDir(), 'archive');
  const writer = await aWriter({ store: openDirectory(location) });
  const [first, second] = [heldPages(4), heldPages(3, 12)];
  const events = eventsOf([...first, ...second]);
  await archived(writer, first);
  await cut(location, events.slice(0, 11));
  await archived(writer, second);
  await cut(location, events.slice(11));
  await writer.close();
  return location;
}

test('each object is entered with its source pages, after them', async () => {
  const location = await anArchive();
  const { entries } = await readArchive(location);
  const pages = entries.flatMap((entry, index) => (entry.t === 'page' ? [index] : []));

  const cuts = entries.filter((entry) => entry.t === 'lake_cut');
  const objects = entries.filter((entry) => entry.t === 'lake');

  expect(cuts).toMatchObject([
    { events: 11, objects: 4, numbers: [0, 11], entries: [pages[0], pages[3]], absent: 0 },
    { events: 10, objects: 4, numbers: [11, 21], entries: [pages[3], pages[6]], absent: 0 },
  ]);
  expect(objects.map(({ object }) => object).toSorted()).toEqual(
    files(location).filter((name) => name.endsWith('.parquet')),
  );
  expect((await verified(location)).remarks).toContain(
    'the lake: 21 events in 8 objects, as entries say',
  );
});

describe('somebody lays hands on it', () => {
  let whole = '';
  let lake: readonly string[] = [];
  beforeAll(async () => {
    whole = await anArchive();
    lake = files(whole).filter((name) => name.startsWith('lake/'));
  });
  const copied = () => {
    const location = join(tempDir(), 'archive');
    cpSync(whole, location, { recursive: true });
    return location;
  };
  const brokenObjects = async (location: string) =>
    (await verified(location)).breaks.map(({ object }) => object);

  test('every flipped bit is found in its object, and nowhere else', async () => {
    const all = new Map(files(whole).map((name) => [name, readFileSync(join(whole, name))]));
    const missed: string[] = [];
    for (const name of lake) {
      const length = all.get(name)?.length ?? 0;
      expect(length).toBeGreaterThan(0);
      for (let at = 0; at < length; at += Math.ceil(length / 6)) {
        const bytes = Buffer.from(all.get(name) ?? []);
        bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
        const reader = new ArchiveReader(memoryStore(new Map([...all, [name, bytes]])));
        const { breaks } = await verifyArchive(reader, { trusted: [aSigner().verifier] });
        const found = breaks.map(({ object, index }) => index !== null && object);
        if (found.length !== 1 || found[0] !== name) missed.push(`${name} ${at}: ${found}`);
      }
    }
    expect(missed).toEqual([]);
  });

  test('a missing object or cut is reported by name, also if all are missing', async () => {
    for (const gone of [...lake.map((name) => [name]), lake.slice(1, 3), lake]) {
      const location = copied();
      for (const name of gone) rmSync(join(location, name));
      expect((await brokenObjects(location)).toSorted()).toEqual(gone.toSorted());
    }
  });

  test('two swapped objects are both reported', async () => {
    const location = copied();
    const [one = '', other = ''] = lake;
    renameSync(join(location, one), join(location, 'x'));
    renameSync(join(location, other), join(location, one));
    renameSync(join(location, 'x'), join(location, other));

    expect((await brokenObjects(location)).toSorted()).toEqual([one, other].toSorted());
  });

  test('objects that no entry names are listed: a copy, another kind of file, a cut among the entered', async () => {
    const location = copied();
    const [one = ''] = lake;
    const copy = one.replace(/[^/]+$/, '0000000000001-0000000000002-0123456789ab.parquet');
    const cutName = lake.find((name) => name.endsWith('.cut')) ?? '';
    const earlier = cutName.replace(/\d{16}\.cut$/, '0000000000000001.cut');
    cpSync(join(location, one), join(location, copy));
    writeFileSync(join(location, 'lake/3002/notes.txt'), 'hello');
    cpSync(join(location, cutName), join(location, earlier));

    const { breaks, strays, remarks } = await verified(location);
    expect(breaks).toEqual([]);
    expect(strays.toSorted()).toEqual([copy, earlier, 'lake/3002/notes.txt'].toSorted());
    expect(remarks.join()).toContain('lake/3002/notes.txt');
  });

  test('a bundle that is gone, or has an entry more or less, breaks the archive and not verify', async () => {
    const widths = files(whole).filter((name) => name.startsWith('tile/entries/'));
    const widthOf = (name: string) => Number(/\d+$/.exec(name));
    const bundle = widths.toSorted((a, b) => widthOf(b) - widthOf(a))[0] ?? '';
    const bytes = readFileSync(join(whole, bundle));
    const length = 2 + bytes.readUInt16BE(0);
    const bundles = [
      null,
      bytes.subarray(length),
      Buffer.concat([bytes.subarray(0, length), bytes]),
    ];
    for (const changed of bundles) {
      const location = copied();
      for (const name of files(whole).filter((one) => one.startsWith('tile/entries/')))
        rmSync(join(location, name));
      if (changed !== null) writeFileSync(join(location, bundle), changed);

      const { breaks } = await verified(location);

      expect(breaks.length).toBeGreaterThan(0);
      expect(breaks.every(({ index, object }) => index !== null || object !== null)).toBe(true);
    }
  });
});

test('a cut of a clock that was ahead hides no later cut from the log', async () => {
  const location = join(tempDir(), 'archive');
  const writer = await aWriter({ store: openDirectory(location) });
  const [early, late] = [heldPages(2), heldPages(2, 6)];
  await archived(writer, early);
  await cut(location, eventsOf(early), () => Date.now() + 3_650 * 86_400_000);
  await archived(writer, late);
  await cut(location, eventsOf(late));
  await archived(writer, heldPages(1, 12));
  await writer.close();

  const { breaks, remarks } = await verified(location);

  expect(breaks).toEqual([]);
  expect(remarks).toContainEqual(expect.stringMatching(/^the lake: 12 events/));
});

test('a lake that lacks an event, or has one of another page, is reported with its position', async () => {
  const location = join(tempDir(), 'archive');
  const writer = await aWriter({ store: openDirectory(location) });
  const pages = heldPages(4);
  await archived(writer, pages);
  const events = eventsOf(pages).map((event) =>
    event.offset === 5 ? anEvent({ offset: 5, uid: 'f'.repeat(64) }) : event,
  );
  await cut(location, events);
  await writer.close();

  const { breaks } = await verified(location);

  expect(breaks).toMatchObject([
    {
      stream: 'audit',
      seq: 1,
      what: expect.stringContaining('an event of the page is in no object'),
    },
    {
      object: expect.stringContaining('.cut'),
      what: expect.stringContaining('1 events of the pages'),
    },
    {
      object: expect.stringContaining('lake/6003/'),
      what: expect.stringContaining('f'.repeat(64)),
    },
  ]);
});

describe('a crash', () => {
  test('before a cut is entered is no break, and the next process enters it', async () => {
    const location = join(tempDir(), 'archive');
    const state: State = { mark: null };
    const store = openDirectory(location);
    const writer = await aWriter({ store, state });
    const pages = heldPages(4);
    await archived(writer, pages);
    await cut(location, eventsOf(pages));

    const before = await verified(location);
    expect(before.breaks).toEqual([]);
    expect(before.remarks.join()).toContain('4 objects of the lake are not entered yet');

    await (await aWriter({ store, state })).close();
    expect(await entriesOf(location, 'lake')).toHaveLength(4);
    expect((await verified(location)).remarks.join()).not.toContain('not entered');
  });

  test('before the cut itself is written leaves objects that wait, and are no break', async () => {
    const location = await anArchive();
    const store = openDirectory(location);
    const pages = heldPages(2, 21);
    const writer = await aWriter({ store, state: { mark: null } });
    await cut(location, eventsOf(pages));
    const [newest = ''] = files(location)
      .filter((name) => name.endsWith('.cut'))
      .slice(-1);
    rmSync(join(location, newest));

    const { breaks, remarks } = await verified(location);

    expect(breaks).toEqual([]);
    expect(remarks.join()).toContain('objects of the lake are not entered yet');
    await writer.close();
  });
});

test('a cut whose pages are not signed yet waits for them, and delays nothing', async () => {
  const location = join(tempDir(), 'archive');
  const writer = await aWriter({ store: openDirectory(location) });
  const pages = heldPages(4);
  await cut(location, eventsOf(pages));
  await archived(writer, pages.slice(0, 2));
  await archived(writer, pages.slice(2));
  expect(await entriesOf(location, 'lake_cut')).toEqual([]);
  await writer.close();

  expect(await entriesOf(location, 'lake_cut')).toHaveLength(1);
  expect((await verified(location)).breaks).toEqual([]);
});

test('a damaged cut is passed over, and named by verify', async () => {
  const location = join(tempDir(), 'archive');
  const writer = await aWriter({ store: openDirectory(location) });
  const pages = heldPages(4);
  await archived(writer, pages.slice(0, 2));
  await cut(location, eventsOf(pages.slice(0, 2)));
  const [damaged = ''] = files(location).filter((name) => name.endsWith('.cut'));
  writeFileSync(join(location, damaged), 'no cut\n');
  await archived(writer, pages.slice(2));
  await writer.close();

  const { breaks, strays } = await verified(location);
  expect(breaks).toEqual([]);
  expect(strays).toContain(damaged);
});

describe('a cut is entered later where, for one checkpoint,', () => {
  test.each([
    ['an older bundle cannot be read', (name: string) => name.startsWith('tile/entries/000')],
    ['the cut itself is away', (name: string) => name.endsWith('-0000000000000000.cut')],
  ])('%s', async (_, isAway) => {
    const location = join(tempDir(), 'archive');
    const store = openDirectory(location);
    let isGone = false;
    const flickering = {
      ...store,
      read: async (name: string, range?: { readonly from: number; readonly length: number }) =>
        isGone && isAway(name) ? null : await store.read(name, range),
    };
    const writer = await aWriter({ store: flickering });
    const pages = heldPages(300);
    await archived(writer, pages);
    await cut(location, eventsOf(pages.slice(0, 2)));
    await cut(location, eventsOf(pages.slice(2)));
    isGone = true;
    await archived(writer, heldPages(1, 900));
    isGone = false;
    await archived(writer, heldPages(1, 903));
    await writer.close();

    expect(await entriesOf(location, 'lake_cut')).toHaveLength(2);
  });
});

test('events that stand in the lake twice are entered without their pages', async () => {
  const location = await anArchive();
  const writer = await aWriter({ store: openDirectory(location), state: { mark: null } });
  const pages = heldPages(2, 40);
  await cut(
    location,
    eventsOf(heldPages(2)).map((event, i) => ({ ...event, offset: 21 + i })),
  );
  await archived(writer, pages);
  await writer.close();

  const cuts = await entriesOf(location, 'lake_cut');
  expect(cuts.at(-1)).toMatchObject({ events: 6, entries: null });
  const { breaks, remarks } = await verified(location);
  expect(breaks).toEqual([]);
  expect(remarks.join()).toContain('6 events of the lake could not be compared');
});

test('an export has the cuts of its span, and proves with them', async () => {
  const location = await anArchive();
  const out = join(tempDir(), 'export');
  const reader = new ArchiveReader(openDirectory(location));
  const [read = ''] = (await readArchive(location)).entries.flatMap((entry) =>
    entry.t === 'page' ? [entry.fetched_at] : [],
  );
  const at = Date.parse(read);

  await exportRange(reader, { from: at, to: at + 1, into: openDirectory(out) });
  const none = join(tempDir(), 'none');
  await exportRange(reader, { from: at + 1, to: at + 2, into: openDirectory(none) });

  const lakeOf = (place: string) => files(place).filter((name) => name.startsWith('lake/'));
  expect(lakeOf(out)).toEqual(lakeOf(location));
  expect((await verified(out)).breaks).toEqual([]);
  expect(lakeOf(none)).toEqual([]);
  const asked = { trusted: [aSigner().verifier], from: at + 1, to: at + 2 };
  expect((await verifyArchive(new ArchiveReader(openDirectory(none)), asked)).breaks).toEqual([]);
});

describe('retention', () => {
  const day = 86_400_000;
  /** Pages that were read so many days ago, and what the lake made of them. */
  async function readAgo(location: string, days: number, first: number) {
    const fetchedAt = Date.now() - days * day;
    const pages = heldPages(2, first).map((page) => ({
      ...page,
      context: { ...page.context, fetchedAt },
    }));
    return { pages, cut: () => cut(location, eventsOf(pages), () => fetchedAt) };
  }

  test('old cuts are deleted with their objects, except those that a hold keeps', async () => {
    const location = join(tempDir(), 'archive');
    const store = openDirectory(location);
    const state: State = { mark: null };
    let now = 0;
    const writer = await aWriter({ store, state, now: () => now });
    for (const [i, days] of [60, 40, 0].entries()) {
      now = Date.now() - days * day;
      const { pages, cut: made } = await readAgo(location, days, i * 6);
      await archived(writer, pages);
      await made();
    }
    await writer.close();
    const before = files(location).filter((name) => name.startsWith('lake/'));
    const held = { from: null, to: new Date(Date.now() - 50 * day).toISOString() };
    const hold = { id: 'case-1', ...held, reason: 'a case', released_at: null };
    const placed_at = new Date().toISOString();
    await store.put('holds/case-1.json', [encodeHold({ ...hold, placed_at })]);

    const next = await aWriter({ store, state, bodiesMs: 30 * day });
    await archived(next, (await readAgo(location, 0, 18)).pages);
    await next.close();

    const left = files(location).filter((name) => name.startsWith('lake/'));
    const cuts = left.filter((name) => name.endsWith('.cut'));
    expect(cuts).toHaveLength(2);
    expect(left.length).toBe((before.length / 3) * 2);
    const { breaks, remarks } = await verified(location);
    expect(breaks).toEqual([]);
    expect(remarks.join()).toContain('went with their objects, as entries say: 1');

    rmSync(join(location, cuts[0] ?? ''));
    expect((await verified(location)).breaks).toMatchObject([{ object: cuts[0] }]);
  });
});

describe('a record that is erased', () => {
  const pages = heldPages(4);
  const [, uid = '', other = ''] = uidsOfPages(pages);
  const erase = (location: string, of = uid) =>
    runHere(['archive', 'erase', location, '--uid', of, '--reason', 'request 17', '--yes']);
  const lakeOf = (location: string) => files(location).filter((name) => name.endsWith('.parquet'));
  const having = async (location: string, of = uid) => {
    const found: string[] = [];
    for (const name of lakeOf(location)) {
      if ((await readUids(readFileSync(join(location, name)))).includes(of)) found.push(name);
    }
    return found;
  };

  const bytesOf = async (location: string, name: string) =>
    Uint8Array.from(readFileSync(join(location, name))).buffer;

  test('goes from the lake as well, whenever the process is killed', {
    tags: ['long'],
  }, async () => {
    const whole = join(tempDir(), 'archive');
    const state: State = { mark: null };
    const first = await aWriter({ store: openDirectory(whole), state });
    await archived(first, pages);
    await cut(whole, eventsOf(pages));
    await first.close();
    const [object = '', ...more] = await having(whole);
    const before = lakeOf(whole);
    expect([more, before.length]).toEqual([[], 4]);
    expect((await erase(whole)).stdout).toContain('and from 1 object of the lake: requested');
    const rows = await readParquet(await bytesOf(whole, object));

    // After a change is before the next one.
    for (let left = 1; ; left += 1) {
      const location = join(tempDir(), 'archive');
      cpSync(whole, location, { recursive: true });
      const store = openDirectory(location);
      // A mark names its location: this is a copy.
      const own: State = { mark: null };
      const kill: Kill = { left, when: 'after', isDead: false };
      const ended = await aWriter({ store: mortal(store, kill), state: own })
        .then((dying) => archived(dying, heldPages(1, 12)))
        .catch((error: unknown) => error);
      if (ended !== undefined) expect(ended).toBeInstanceOf(Killed);
      expect([left, (await verified(location)).breaks]).toEqual([left, []]);

      const next = await aWriter({ store, state: own });
      await archived(next, heldPages(1, 15));
      await next.close();

      const { breaks, remarks } = await verified(location);
      const reported = remarks.filter((one) => one.includes('erased'));
      expect([left, breaks, reported]).toEqual([
        ...[left, []],
        ['events of the lake that went with records that were erased, as entries say: 1'],
      ]);
      expect(remarks.filter((one) => one.includes('could not be compared'))).toEqual([]);
      expect(lakeOf(location)).toEqual(before);
      expect(await readParquet(await bytesOf(location, object))).toEqual(
        rows.filter(({ metadata }) => metadata.uid !== uid),
      );
      if (ended === undefined) {
        const out = join(tempDir(), 'out');
        const span = { from: 0, to: Date.now() + hour, into: openDirectory(out) };
        await exportRange(new ArchiveReader(store), span);
        expect((await verified(out)).breaks).toEqual([]);

        const flipped = readFileSync(join(location, object));
        flipped[flipped.length >> 1] = (flipped[flipped.length >> 1] ?? 0) ^ 1;
        writeFileSync(join(location, object), flipped);
        expect((await verified(location)).breaks).toMatchObject([{ object }]);
        const missing = before.find((name) => name !== object) ?? '';
        rmSync(join(location, missing));
        cpSync(join(whole, object), join(location, object));
        const undone = await verified(location);
        expect(undone.breaks).toMatchObject([{ object: missing }]);
        expect(undone.remarks).toContainEqual(
          expect.stringMatching(`${object} still has a record that an entry erases`),
        );
        break;
      }
      expect(left).toBeLessThan(60);
    }
  });

  test.each(['the first cut', 'a later cut'])(
    'goes from %s as well when no checkpoint covers it yet',
    async (which) => {
      const location = join(tempDir(), 'archive');
      const writer = await aWriter({ store: openDirectory(location) });
      if (which === 'a later cut') {
        await archived(writer, pages);
        await cut(location, eventsOf(pages));
      }
      const newer = heldPages(2, 12);
      await archived(writer, newer);
      await cut(location, eventsOf(newer));
      const [one = ''] = uidsOfPages(newer);

      expect(await erase(location, one)).toMatchObject({ exitCode: 0 });
      for (const first of [18, 21, 24]) await archived(writer, heldPages(1, first));
      await writer.close();

      const lake = files(location).filter((name) => name.endsWith('.parquet'));
      const left = await Promise.all(
        lake.map(async (name) => await readUids(readFileSync(join(location, name)))),
      );
      expect(left.flat()).not.toContain(one);
      const { breaks, remarks } = await verified(location);
      expect(breaks).toEqual([]);
      expect(remarks.join()).toContain('were erased, as entries say: 1');
    },
  );

  test('deletes the objects that no other cut lists, and later objects are kept', async () => {
    const location = join(tempDir(), 'archive');
    const store = openDirectory(location);
    const writer = await aWriter({ store });
    await archived(writer, pages);
    await cut(location, eventsOf(pages));
    await archived(writer, heldPages(1, 12));
    const [object = ''] = await having(location);
    const uids = await readUids(readFileSync(join(location, object)));
    for (const one of uids) {
      expect(await erase(location, one)).toMatchObject({ exitCode: 0 });
      await archived(writer, heldPages(1, 15));
      expect((await verified(location)).breaks).toEqual([]);
    }
    await writer.close();

    expect(uids.length).toBeGreaterThan(1);
    expect(lakeOf(location)).not.toContain(object);
    const { breaks, remarks } = await verified(location);
    expect(breaks).toEqual([]);
    expect(remarks.join()).toContain(`were erased, as entries say: ${uids.length}`);
    const out = join(tempDir(), 'out');
    const span = { from: 0, to: Date.now() + hour, into: openDirectory(out) };
    await exportRange(new ArchiveReader(store), span);
    expect((await verified(out)).breaks).toEqual([]);

    writeFileSync(join(location, object), '');
    expect((await verified(location)).breaks).toMatchObject([{ object }]);
  });

  test('is refused while the lake may yet get it, and while a hold keeps others of its object', async () => {
    const location = join(tempDir(), 'archive');
    const writer = await aWriter({ store: openDirectory(location) });
    const readAgo = (hours: number, page: HeldPage | undefined) => {
      if (page === undefined) throw new Error('there are pages');
      return { ...page, context: { ...page.context, fetchedAt: Date.now() - hours * hour } };
    };
    // The one that was read long before stands in the same objects.
    const [recent, old] = [readAgo(0, pages[0]), readAgo(100, pages[1])];
    const events = eventsOf([recent, old]);
    await archived(writer, [recent]);
    await cut(location, events.slice(0, 1));
    const early = await erase(location);
    await archived(writer, [old]);
    await cut(location, events.slice(1));
    await archived(writer, heldPages(1, 6));
    const to = new Date(Date.now() - 50 * hour).toISOString();
    const hold = (...args: readonly string[]) =>
      runHere(['archive', 'hold', ...args.slice(0, 1), location, ...args.slice(1)]);
    const case1 = ['--id', 'case-1', '--reason', 'a case', '--to', to];
    await hold('add', ...case1);
    const held = await erase(location, other);
    await hold('release', '--id', 'case-1');
    const asked = await erase(location, other);
    await hold('add', '--id', 'case-2', ...case1.slice(2));
    await archived(writer, heldPages(1, 9));
    await writer.close();

    expect([early, held, asked].map(({ exitCode }) => exitCode)).toEqual([1, 1, 0]);
    expect(early.stderr).toContain('its lake has not been written as far as the record yet');
    expect(held.stderr).toMatch(/the hold case-1, .* keeps an object of the lake that has it/);
    expect(await having(location, other)).toHaveLength(1);
    expect(await verified(location)).toMatchObject({ breaks: [], erasures: [] });
  });
});
