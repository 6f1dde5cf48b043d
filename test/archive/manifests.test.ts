// Manifests of completeness: what each day of each stream comes to, as the entries say, however the writer was killed.

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { exportRange } from '../../src/archive/export.ts';
import { dayPath } from '../../src/archive/manifests.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import type { Json } from '../../src/contracts/json.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { tempDir } from '../support/temp.ts';
import {
  archived,
  aWriter,
  heldPages,
  Killed,
  mortal,
  readArchive,
  type State,
} from './a-writer.ts';
import { verified } from './anchored.ts';

const first = '2026-11-22';
const second = '2026-11-23';
const noon = (day: string) => Date.parse(`${day}T12:00:00Z`);

/** The pages of a day's responses; the last one ends the list. */
function pagesOf(day: string, from: number, { count = 2, stream = 'audit' } = {}) {
  return heldPages(count, from, stream).map((page, i): HeldPage => {
    const fetchedAt = noon(day) + i * 1_000;
    const next = i === count - 1 ? null : `cursor-${day}-${i}`;
    const answer = { status: 200, path: '/v1/audit/events', asked: null, next };
    return { ...page, context: { ...page.context, fetchedAt, answer } };
  });
}

const read = (location: string, stream: string, day: string) =>
  JSON.parse(readFileSync(join(location, dayPath({ stream, day })), 'utf8'));

const manifestsIn = (location: string) =>
  readdirSync(location, { recursive: true, encoding: 'utf8' })
    .filter((name) => /^manifests\/.*\.json$/.test(name))
    .sort();

test('a day that is over has its manifest, and no other', async () => {
  const location = tempDir();
  const writer = await aWriter({ store: openDirectory(location) });
  await archived(writer, [...pagesOf(first, 0), ...pagesOf(first, 6, { stream: 'fw/c 1/x' })]);
  await archived(writer, pagesOf(second, 12));
  expect(manifestsIn(location)).toEqual([]);
  await archived(writer, pagesOf(second, 18));
  await writer.close();

  expect(manifestsIn(location)).toEqual([`manifests/audit/${first}.json`]);
  expect(read(location, 'audit', first)).toEqual({
    ...{ stream: 'audit', day: first, source: 'audit', seq: [0, 1], pages: 2 },
    ...{ records: 6, kept: 6, conditions: {} },
    compared: { times: 0, dropped: 0, missing: 0, changed: 0 },
    asked: null,
    next: null,
    ...{ tails: 1, last_tail: `${first}T12:00:01.000Z` },
    // A process's start, the segment, and the four pages.
    size: 6,
  });
  expect((await verified(location)).breaks).toEqual([]);
});

test('a process that begins on a later day writes it, also where its mark is older, or lost', async () => {
  for (const forget of [
    (mark: Json) => mark,
    () => null,
    (mark: Json) => {
      const { heads, ...rest } = mark as { heads: { days?: unknown } };
      const { days: _, ...others } = heads;
      return { ...rest, heads: others } as Json;
    },
  ]) {
    const location = tempDir();
    const state: State = { mark: null };
    const store = openDirectory(location);
    for (const [n, day] of [first, first, second, '2026-11-24'].entries()) {
      const writer = await aWriter({ store, state });
      await archived(writer, pagesOf(day, n * 6));
      await writer.close();
      state.mark = forget(state.mark);
    }

    expect(manifestsIn(location).map((name) => name.slice(-15, -5))).toEqual([first, second]);
    expect(read(location, 'audit', first)).toMatchObject({ seq: [0, 3], pages: 4, tails: 2 });
    expect((await verified(location)).breaks).toEqual([]);
  }
});

test('killed at each change of the store it is there once, as the entries say', async () => {
  const days = [first, second, '2026-11-24'];
  let kills = 0;
  for (let left = 1; ; left += 3) {
    const location = tempDir();
    const state: State = { mark: null };
    const kill = { left, when: left % 2 === 0 ? 'before' : 'after', isDead: false } as const;
    const stores = [mortal(openDirectory(location), { ...kill }), openDirectory(location)];
    for (const store of stores) {
      try {
        const writer = await aWriter({ store, state });
        const done = writer.place?.next ?? 0;
        for (const [n, day] of days.entries()) {
          const pages = pagesOf(day, n * 6).filter((page) => page.first >= done);
          if (pages.length > 0) await archived(writer, pages);
        }
        await writer.close();
        if (store === stores[0]) return expect(kills).toBeGreaterThan(8);
      } catch (error) {
        if (!(error instanceof Killed)) throw error;
        kills += 1;
      }
    }
    // What was written and not entered is entered with whatever comes next.
    const writer = await aWriter({ store: openDirectory(location), state });
    await archived(writer, pagesOf('2026-11-24', 18));
    await writer.close();
    const { entries } = await readArchive(location);
    const entered = entries.flatMap((entry) => (entry.t === 'manifest' ? [entry.object] : []));
    expect(entered, `killed at ${left}`).toEqual(manifestsIn(location));
    expect(entered.length, `killed at ${left}`).toBe(2);
  }
});

describe('somebody lays hands on one', () => {
  async function anArchive() {
    const location = tempDir();
    const writer = await aWriter({ store: openDirectory(location) });
    for (const [n, day] of [first, second, '2026-11-24'].entries())
      await archived(writer, pagesOf(day, n * 6));
    await writer.close();
    return { location, file: join(location, dayPath({ stream: 'audit', day: first })) };
  }

  test('a flipped bit is found in it, and nowhere else', async () => {
    const { location, file } = await anArchive();
    const whole = readFileSync(file);
    for (let at = 0; at < whole.length; at += 7) {
      const flipped = Buffer.from(whole);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8));
      writeFileSync(file, flipped);
      const { breaks } = await verified(location);
      expect(breaks).toEqual([
        expect.objectContaining({
          stream: 'audit',
          object: `manifests/audit/${first}.json`,
          what: 'the manifest differs from its entry',
        }),
      ]);
    }
  });

  test('a missing one is reported by its name, unless its day is not requested', async () => {
    const { location, file } = await anArchive();
    rmSync(file);

    const { breaks } = await verified(location);
    const later = await verified(location, { from: Date.parse(second) });

    expect(breaks.map(({ what, object }) => [what, object])).toEqual([
      ['the manifest is missing', `manifests/audit/${first}.json`],
    ]);
    expect(later.breaks).toEqual([]);
  });

  test('an export has those of its span, and proves', async () => {
    const { location } = await anArchive();
    const into = tempDir();
    const span = { from: Date.parse(second), to: Date.parse('2026-11-24') };
    await exportRange(new ArchiveReader(openDirectory(location)), {
      ...span,
      into: openDirectory(into),
    });

    expect(manifestsIn(into)).toEqual([`manifests/audit/${second}.json`]);
    expect((await verified(into, span)).breaks).toEqual([]);
  });
});

test('names of streams lead nowhere else, and no two to one location', () => {
  const names = ['a/b', 'a//b', 'a%2Fb', '../../etc', 'a/../b', '.', 'x'.repeat(300), 'ü\ud800'];
  const paths = names.map((stream) => dayPath({ stream, day: first }));

  expect(new Set(paths).size).toBe(names.length);
  for (const path of paths) expect(path).toMatch(/^manifests\/(?:[^/.][^/]*\/)+[-\d]{10}\.json$/);
});
