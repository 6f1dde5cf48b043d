// The verifiers in deploy/verifiers, which share no code with sluice: whole archives are whole, and attacks are breaks.
// Where Python or Go is missing, its tests are skipped and say so.

import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { encodeWish, prunePath } from '../../src/archive/retention.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { archived, aSigner, aWriter, heldPages, uidsOfPages } from '../archive/a-writer.ts';
import { type NaiveArchive, naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { type ProgramResult, runProgram } from '../support/children.ts';
import { tempDir } from '../support/temp.ts';
import { type ShortVerifier, shortVerifiers, verifiersDir } from './short-verifiers.ts';

const dayMs = 86_400_000;

const body =
  '\ufeff{"a": {"data": []}, "a": {"x]": "}\\"", "data": [ {"id": "\\u005d"},\n [1], null ]}}';
const archive = naiveArchive([
  {
    pages: [
      { stream: 'audit', records: 1 },
      { stream: 'audit', records: 0 },
    ],
  },
  {
    pages: [
      {
        stream: 'audit',
        body,
        texts: ['{"id": "\\u005d"}', '[1]', 'null'],
        records: 3,
        entry: { items: 'a.data' },
      },
      ...Array.from({ length: 300 }, (_, i) => ({ stream: 'logs/a', records: i % 6 })),
    ],
  },
  { pages: [{ stream: 'logs/a' }], rotates: true },
  { pages: [{ stream: 'audit', records: 7, kept: [1, 3, 6] }] },
]);
const key = archive.vkeys[1] ?? '';

let verifiers: readonly ShortVerifier[] = [];

beforeAll(async () => {
  verifiers = await shortVerifiers();
});

function written(of: Pick<NaiveArchive, 'files'> = archive): string {
  const place = tempDir();
  writeNaive(of, place);
  return place;
}

/** Names of the archive's files that start so, in order. */
const named = (start: string) =>
  [...archive.files.keys()].filter((name) => name.startsWith(start)).sort();
const last = (start: string) => named(start).at(-1) ?? '';
const changed = (name: string, change: (bytes: Buffer) => Buffer) => (place: string) =>
  writeFileSync(join(place, name), change(readFileSync(join(place, name))));
const flipped = (name: string, from: number) =>
  changed(name, (bytes) => {
    const at = from < 0 ? bytes.length + from : from;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return bytes;
  });
const gone = (name: string) => (place: string) => rmSync(join(place, name));
const earlier = (bytes: Buffer) => {
  const at = bytes.lastIndexOf('"fetched_at":"2026');
  bytes.write('"fetched_at":"2025', at);
  return bytes;
};
const older = archive.notes[1] ?? Buffer.alloc(0);
const other = naiveArchive([{ pages: [{ stream: 'audit' }] }]);

test('each has at most 150 lines', () => {
  for (const file of ['verify.py', 'verify.go'])
    expect(readFileSync(join(verifiersDir, file), 'utf8').split('\n').length).toBeLessThanOrEqual(
      151,
    );
});

test('verify.py without its packages reports how to install them', async () => {
  const run = ['-I', '-S', join(verifiersDir, 'verify.py'), written(), key];
  const { exitCode, output, errors } = await runProgram('python3', run);

  expect({ exitCode, output }).toEqual({ exitCode: 2, output: '' });
  expect(errors).toMatch(/^NO VERDICT: No module named 'zstandard'.*pip install zstandard.*\n$/);
});

describe.each(['python', 'go'])('%s', (name) => {
  let verified: (place: string, vkey?: string) => Promise<ProgramResult>;
  let alone: ShortVerifier['runAlone'];

  beforeEach(({ skip }) => {
    const verifier = verifiers.find((one) => one.name === name);
    if (verifier === undefined) return skip(`${name} cannot run here`);
    alone = verifier.runAlone;
    verified = async (place, vkey = key) => {
      const [result] = await verifier.run([place], vkey);
      if (result === undefined) throw new Error('there is a verdict');
      return result;
    };
  });

  describe('a whole archive', () => {
    test('is whole, after a rotation, with partial bundles and unusual bodies', async () => {
      const { exitCode, output, errors } = await verified(written());

      expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: '' });
      expect(output).toContain(`${archive.entries.length} entries, 305 pages, `);
      expect(output).toMatch(/ (0 without their bodies|305 bodies)$/m);
    });

    test('is whole with a number of 5,000 digits in a record', async () => {
      const text = `{"n":${'1'.repeat(5_000)}}`;
      const made = naiveArchive([
        { pages: [{ stream: 'a', body: `{"data":[${text}]}`, texts: [text], records: 1 }] },
      ]);

      expect((await verified(written(made), made.vkeys[0])).exitCode).toBe(0);
    });

    test('is whole with erased records and pruned bodies', async () => {
      const place = join(tempDir(), 'archive');
      const store = openDirectory(place);
      let now = Date.now() - 40 * dayMs;
      const pages = (days: number, first: number) =>
        heldPages(3, first).map((page) => {
          const fetchedAt = Date.now() - days * dayMs;
          return { ...page, context: { ...page.context, fetchedAt } };
        });
      const [old, fresh, last] = [pages(40, 0), pages(20, 9), pages(0, 18)];
      const writer = await aWriter({ store, now: () => now });
      await archived(writer, old);
      now = Date.now() - 20 * dayMs;
      await archived(writer, fresh);
      await store.put(prunePath, [encodeWish(Date.now() - 30 * dayMs, Date.now())]);
      for (const uid of uidsOfPages(fresh).slice(0, 2)) {
        const span = { from: timeText(now - dayMs), to: timeText(now + dayMs) };
        const request = { uid, reason: 'r', asked_at: timeText(Date.now()), ...span };
        await store.put(requestPath(uid), [encodeRequest(request)]);
      }
      now = Date.now();
      // The second record of the page goes with the next checkpoint.
      for (const page of last) await archived(writer, [page]);
      await writer.close();

      const reader = new ArchiveReader(store);
      const { size } = await newestCheckpoint(reader);
      let erased = 0;
      for await (const { entry } of loggedEntries(reader, size))
        if (entry.t === 'erased') erased += entry.records.length;

      const { exitCode, output, errors } = await verified(place, aSigner().verifier.vkey);

      expect(erased).toBe(2);

      expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: '' });
      expect(output).toMatch(/9 pages, (3 without their bodies|6 bodies)$/m);
    });
  });

  // Exit code 1 is a verdict on the archive; a fault of the call or the machine must not look like one.
  describe('there is no verdict', () => {
    const faults: readonly (readonly [string, () => readonly string[]])[] = [
      ['no argument', () => []],
      ['no key', () => [written()]],
      ['an argument too many', () => [written(), key, key]],
      ['a key that is none', () => [written(), 'nonsense']],
      ['an empty key', () => [written(), '']],
      ['a key under another id', () => [written(), key.replace(/\+[0-9a-f]{8}\+/, '+00000000+')]],
      ['a file in the place of the key', () => [written(), join(written(), 'archive.json')]],
      ['no directory', () => [join(tempDir(), 'away'), key]],
      ['an empty directory', () => [tempDir(), key]],
      ['a file in the place of the directory', () => [join(written(), 'archive.json'), key]],
    ];
    test.each(faults)('%s', async (_, args) => {
      const { exitCode, output, errors } = await alone(...args());

      expect({ exitCode, said: `${output}${errors}` }).toEqual({
        exitCode: 2,
        said: expect.stringMatching(/^NO VERDICT.*(verify(\.py)? DIR VKEY|no archive is in)/),
      });
    });

    // Reading there fails (EIO) for each user, root too.
    test.runIf(process.platform === 'linux').each(['checkpoint', 'segments/', 'tile/entries/'])(
      'a file that cannot be read: %s',
      async (start) => {
        const place = written();
        const file = join(place, last(start));
        rmSync(file);
        symlinkSync('/proc/self/mem', file);

        const { exitCode, output, errors } = await alone(place, key);

        expect({ exitCode, said: output + errors }).toEqual({
          exitCode: 2,
          said: expect.stringContaining('NO VERDICT'),
        });
        expect(output + errors).not.toMatch(/BROKEN|Traceback|goroutine/);
      },
    );

    test('a file that cannot be read, and a break', async () => {
      const place = written();
      const [first = '', second = ''] = named('segments/');
      flipped(first, 20)(place);
      rmSync(join(place, second));
      symlinkSync('/proc/self/mem', join(place, second));

      expect((await alone(place, key)).exitCode).toBe(1);
    });
  });

  describe('an attack is a break', () => {
    test.each([
      ['a bit of an entry', flipped(last('tile/entries/'), -5)],
      // Nothing but the root shows this one: it is well-formed, and no entry follows it in its stream.
      ['the time of the last page', changed(last('tile/entries/'), earlier)],
      ['a lost bundle', gone(named('tile/entries/')[0] ?? '')],
      ['an entry cut off', changed(last('tile/entries/'), (bytes) => bytes.subarray(0, -9))],
      ['a bit of the checkpoint', flipped('checkpoint', -20)],
      [
        'the size in the checkpoint',
        changed('checkpoint', (one) => Buffer.from(one.toString().replace(/\n\d+\n/, '\n5\n'))),
      ],
      ['the checkpoint of another log', changed('checkpoint', () => other.notes[0] ?? older)],
      ['no checkpoint', gone('checkpoint')],
      [
        'a bit of archive.json',
        changed('archive.json', (one) => Buffer.from(one.toString().replace('5a5a', '5b5a'))),
      ],
      ['a bit of a body', flipped(last('segments/'), 20)],
      ['a bit of the uids', flipped(last('segments/'), -3)],
      [
        'a longer segment',
        changed(last('segments/'), (bytes) => Buffer.concat([bytes, Buffer.alloc(9)])),
      ],
      ['an empty segment', changed(last('segments/'), () => Buffer.alloc(0))],
      ['a lost segment', gone(last('segments/'))],
      [
        'a segment in the place of another',
        changed(last('segments/'), () => archive.files.get(named('segments/')[0] ?? '') ?? older),
      ],
      ['a bit of an older checkpoint', flipped(named('checkpoints/')[0] ?? '', -20)],
      ['a lost older checkpoint', gone(named('checkpoints/')[1] ?? '')],
    ])('%s', async (_, attack) => {
      const place = written();
      attack(place);

      const { exitCode, output, errors } = await verified(place);

      expect(exitCode).toBe(1);
      expect(output + errors).toContain('BROKEN');
      expect(output).not.toContain('whole');
      expect(output + errors).not.toContain('Traceback');
    });

    test('another key, and the key before the rotation', async () => {
      const place = written();

      for (const vkey of [other.vkeys[0] ?? '', archive.vkeys[0] ?? '']) {
        expect((await verified(place, vkey)).exitCode).toBe(1);
      }
    });

    // Signed by the key, as a writer with a fault would: only the checks of entries find these.
    test.each([
      ['a number left out', { seq: 7 }],
      ['another record', { events: { root: 'ab'.repeat(32), count: 2 } }],
      ['fewer records', { kept: 1 }],
      ['a body of another segment', { body: { segment: '../x' } }],
      ['a kind that is unknown', { t: 'newer' }],
    ])('signed, and not true: %s', async (_, entry) => {
      const bad = naiveArchive([{ pages: [{ stream: 'audit' }, { stream: 'audit', entry }] }]);

      const { exitCode, output } = await verified(written(bad), bad.vkeys[0]);

      expect(exitCode).toBe(1);
      expect(output).toMatch(/^BROKEN (at )?entry \d/);
    });
  });
});
