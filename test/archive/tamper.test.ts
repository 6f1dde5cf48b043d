// Archives after an attack: every changed, removed or swapped object is found and reported with its position. The
// archives are small and written by the tests' own writer, so that every file of every kind is tested.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseVkey } from '../../src/archive/note.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import type { Break, Report } from '../../src/archive/verify/findings.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import { memoryStore } from '../support/archive/memory-store.ts';
import { type NaiveArchive, naiveArchive } from '../support/archive/naive-archive.ts';

type Files = ReadonlyMap<string, Buffer>;

const small = naiveArchive([
  { pages: [{ stream: 'audit' }, { stream: 'logs/a', records: 3, kept: [0, 2] }] },
  { pages: [{ stream: 'audit', records: 0 }], rotates: true },
  { pages: [{ stream: 'logs/a', records: 1 }, { stream: 'audit' }] },
]);
/** Several tiles of level 0, and one above them. */
const large = naiveArchive([
  ...[300, 1, 400].map((count) => ({
    pages: Array.from({ length: count }, (_, i) => ({ stream: `logs/${i % 3}`, records: 1 })),
  })),
  { pages: [{ stream: 'logs/0' }] },
]);

async function verified(archive: NaiveArchive, files: Files = archive.files): Promise<Report> {
  const trusted = archive.vkeys.slice(0, 1).map(parseVkey);
  return await verifyArchive(new ArchiveReader(memoryStore(files)), { trusted });
}

/** The breaks; that an archive cannot be read at all is one as well. */
async function breaksOf(archive: NaiveArchive, files: Files): Promise<readonly Break[]> {
  try {
    return (await verified(archive, files)).breaks;
  } catch (error) {
    if (!(error instanceof ExportError)) throw error;
    return [{ index: null, stream: null, seq: null, object: null, what: error.message }];
  }
}

function flipped({ files }: NaiveArchive, name: string, at: number, bit: number): Files {
  const bytes = Buffer.from(files.get(name) ?? []);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
  return new Map([...files, [name, bytes]]);
}

const parsedEntries = ({ entries }: NaiveArchive) =>
  entries.map((entry) => JSON.parse(entry.toString('utf8')));

/** Indexes of the entries that a byte of a file belongs to. */
function ownersOf(archive: NaiveArchive, name: string, at: number): readonly (number | null)[] {
  const entries = parsedEntries(archive);
  const [, kind = '', group = ''] = /^(?:tile\/)?([^/]+)\/?(\d{3})?/.exec(name) ?? [];
  const first = Number(group) * 256;
  const where = (test: (entry: Record<string, unknown>) => boolean) =>
    entries.flatMap((entry, index) => (test(entry) ? [index] : []));
  switch (kind) {
    case 'entries': {
      let end = 0;
      return [
        archive.entries.findIndex((entry, index) => {
          if (index < first) return false;
          end += 2 + entry.length;
          return at < end;
        }),
      ];
    }
    case '0':
      return [first + Math.floor(at / 32)];
    case '1':
      return [Math.floor(at / 32) * 256];
    case 'segments': {
      const page = where(
        ({ body, uids }) =>
          (body as { segment?: string })?.segment === name &&
          at >= (body as { at: number }).at &&
          at <
            (body as { at: number; length: number }).at +
              (body as { length: number }).length +
              8 +
              (uids as { bytes: number }).bytes,
      );
      return [...page, ...where(({ t, object }) => t === 'segment' && object === name)];
    }
    case 'checkpoints': {
      const reported = where(({ t, object }) => t === 'checkpoint' && object === name);
      return reported.length > 0 ? reported : [null];
    }
    case 'archive.json':
      return where(({ t }) => t === 'start');
    default:
      return [null];
  }
}

/** Every byte in place of some of each file. */
const isLong = process.env.SLUICE_TEST_LONG === '1';

test('an untouched archive is whole', async () => {
  expect(await verified(small)).toMatchObject({ breaks: [], breaksOmitted: 0, size: 12 });
  expect(await verified(large)).toMatchObject({ breaks: [], breaksOmitted: 0 });
});

describe('one flipped bit', () => {
  const names = [...small.files.keys()];

  test.each(names)('%s: found where it is', async (name) => {
    const missed: string[] = [];
    const length = small.files.get(name)?.length ?? 0;
    for (let at = 0; at < length; at += isLong ? 1 : length > 1_000 ? 7 : 2) {
      // All bits of all bytes were tried when this was written; here another one of each byte that is tried.
      const bit = (at * 5 + length) % 8;
      const breaks = await breaksOf(small, flipped(small, name, at, bit));
      const owners = ownersOf(small, name, at);
      const isFound = breaks.some(({ index }) => owners.includes(index));
      if (!isFound) missed.push(`byte ${at} bit ${bit}: ${JSON.stringify(breaks)}`);
    }

    expect(length).toBeGreaterThan(0);
    expect(missed).toEqual([]);
  });

  test('of a large archive, and nothing else is reported as broken', async () => {
    const places = fc
      .constantFrom(...[...large.files.keys()].filter((name) => /^(tile|segments)/.test(name)))
      .chain((name) =>
        fc.tuple(fc.constant(name), fc.nat((large.files.get(name)?.length ?? 1) - 1), fc.nat(7)),
      );

    await fc.assert(
      fc.asyncProperty(places, async ([name, at, bit]) => {
        const breaks = await breaksOf(large, flipped(large, name, at, bit));
        const owners = ownersOf(large, name, at);
        expect([name, at, breaks.map(({ index }) => owners.includes(index))]).toEqual([
          ...[name, at, [true]],
        ]);
      }),
      // Each file of the small archive is tried.
      { numRuns: process.env.SLUICE_TEST_LONG === '1' ? 60 : 20 },
    );
  });

  test('names stream and number of an entry that cannot be read any more', async () => {
    const index = parsedEntries(small).findIndex(({ stream }) => stream === 'logs/a');
    const offset = small.entries.slice(0, index).reduce((sum, { length }) => sum + length + 2, 0);

    const breaks = await breaksOf(small, flipped(small, 'tile/entries/000.p/12', offset + 2, 0));

    expect(breaks).toMatchObject([{ index, stream: 'logs/a', seq: 0 }]);
  });
});

describe('files that are gone', () => {
  const names = [...small.files.keys()];
  const newestCopy = names.findLast((name) => name.startsWith('checkpoints/')) ?? '';
  const without = ({ files }: NaiveArchive, gone: readonly string[]) =>
    new Map([...files].filter(([name]) => !gone.includes(name)));

  test('each one is missed by its name', async () => {
    for (const name of names.filter((one) => one !== newestCopy)) {
      const breaks = await breaksOf(small, without(small, [name]));
      expect([name, breaks.map(({ object }) => object)]).toEqual([
        ...[name, expect.arrayContaining([name])],
      ]);
    }
  });

  test('the newest copy of the checkpoint is one, and not needed: it is remarked', async () => {
    const report = await verified(small, without(small, [newestCopy]));

    expect(report.breaks).toEqual([]);
    expect(report.remarks.join()).toContain('no copy in checkpoints/');
  });

  test('of any two, both are reported missing, except objects that only a lost bundle names', async () => {
    const evidence = names.filter((name) => name !== newestCopy && name !== 'checkpoint');
    for (const [i, one] of evidence.entries()) {
      for (const other of evidence.slice(i + 1)) {
        const reported = (await breaksOf(small, without(small, [one, other]))).map(
          ({ object }) => object,
        );
        // Where the bundle is gone, nothing names the files that its entries speak of.
        const needed = [one, other].filter(
          (name) => !`${one}${other}`.includes('entries') || name.includes('entries'),
        );
        expect([one, other, reported]).toEqual([one, other, expect.arrayContaining(needed)]);
      }
    }
  });

  test('any number of them leaves no archive that looks whole', async () => {
    const some = fc.subarray([...large.files.keys()], { minLength: 1 });
    const copy = [...large.files.keys()].findLast((name) => name.startsWith('checkpoints/'));

    await fc.assert(
      fc.asyncProperty(some, async (gone) => {
        const reported = await breaksOf(large, without(large, gone));
        expect(reported.length > 0 || (gone.length === 1 && gone[0] === copy)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  test('a bundle: every entry in the bundle is reported by its stream if others follow', async () => {
    const breaks = await breaksOf(large, without(large, ['tile/entries/000']));
    const lost = breaks.filter(({ stream }) => stream !== null);

    expect(breaks[0]).toMatchObject({ index: 0, through: 255, object: 'tile/entries/000' });
    expect(lost.map(({ stream }) => stream)).toEqual(
      expect.arrayContaining(['logs/0', 'logs/1', 'logs/2']),
    );
  });
});

describe('swapped files', () => {
  test('two segments', async () => {
    const [one = '', other = ''] = [...small.files.keys()].filter((name) => /^seg/.test(name));
    const files = new Map(small.files);
    files.set(one, small.files.get(other) ?? Buffer.alloc(0));
    files.set(other, small.files.get(one) ?? Buffer.alloc(0));

    const reported = (await breaksOf(small, files)).map(({ object }) => object);

    expect(reported).toEqual(expect.arrayContaining([one, other]));
  });

  test('two tiles, and two bundles', async () => {
    for (const [one, other] of [
      ['tile/0/000', 'tile/0/001'],
      ['tile/entries/000', 'tile/entries/001'],
    ] as const) {
      const files = new Map(large.files);
      files.set(one, large.files.get(other) ?? Buffer.alloc(0));
      files.set(other, large.files.get(one) ?? Buffer.alloc(0));
      const breaks = await breaksOf(large, files);
      const indexes = new Set(breaks.map(({ index }) => index));
      expect(one.includes('entries') ? indexes.size : indexes.has(0) && indexes.has(256)).toBe(
        one.includes('entries') ? 512 : true,
      );
    }
  });

  test('an older checkpoint beside newer tiles', async () => {
    const files = new Map([...large.files, ['checkpoint', large.notes[1] ?? Buffer.alloc(0)]]);

    const breaks = await breaksOf(large, files);

    expect(breaks.length).toBeGreaterThan(0);
    expect(breaks[0]?.what).toContain('older');
  });

  test('a tree that somebody else has signed', async () => {
    const forged = naiveArchive([{ pages: [{ stream: 'audit' }] }]);

    const breaks = await breaksOf(small, forged.files);

    expect(breaks).toMatchObject([{ object: 'checkpoint' }]);
    expect(breaks[0]?.what).toContain('none of the keys that were given');
  });

  test('a forged end of the log, signed by another key, also where an entry names that key', async () => {
    const forged = naiveArchive([
      ...Array.from({ length: 2 }, () => ({ pages: [{ stream: 'audit' }] })),
      { pages: [], rotates: true },
    ]);
    // The note over the new key's entry, signed by the new key alone.
    const text = forged.notes[2]?.toString('utf8') ?? '';
    const lines = text.split('\n');
    const alone = Buffer.from([...lines.slice(0, 4), ...lines.slice(5)].join('\n'));
    const copy = [...forged.files.keys()].findLast((name) => /^checkpoints/.test(name)) ?? '';
    const files = new Map([...forged.files, ['checkpoint', alone], [copy, alone]]);

    const breaks = await breaksOf(forged, files);

    expect(breaks.map(({ what }) => what).join()).toContain('no checkpoint hands on');
  });
});
