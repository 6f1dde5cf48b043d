// Archives made to harm a verifier: their files are no files, are larger than possible, form a cycle of links, or have
// endless content. There is always a verdict, in bounded time and memory, and the verdict is never ok.

import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseEntry } from '../../src/archive/entries.ts';
import { parseVkey } from '../../src/archive/note.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { type VerifyOptions, verifyArchive } from '../../src/archive/verify/verify.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { type NaiveArchive, naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

/** 12 entries, of which the 6th hands on to another key. */
function written(): { readonly archive: NaiveArchive; readonly dir: string } {
  const archive = naiveArchive([
    { pages: [{ stream: 'audit' }, { stream: 'logs/a', records: 3, kept: [0, 2] }] },
    { pages: [{ stream: 'audit', records: 0 }], rotates: true },
    { pages: [{ stream: 'logs/a', records: 1 }, { stream: 'audit' }] },
  ]);
  const dir = tempDir();
  writeNaive(archive, dir);
  return { archive, dir };
}

async function verified(
  { archive, dir }: ReturnType<typeof written>,
  options: Partial<VerifyOptions> = {},
) {
  const trusted = archive.vkeys.slice(0, 1).map(parseVkey);
  return await verifyArchive(new ArchiveReader(openDirectory(dir)), { trusted, ...options });
}

const kinds = {
  manifest: 'archive.json',
  checkpoint: 'checkpoint',
  tile: 'tile/0/000.p/12',
  bundle: 'tile/entries/000.p/12',
  segment: 'segments/2026/01/31/00000000000000000001.zst',
  kept: 'checkpoints/2026/01/31/00000000000000000004.note',
} as const;

const gib = 2 ** 30;
const inPlace: Readonly<Record<string, (path: string) => unknown>> = {
  'a pipe': (path) => spawnSync('mkfifo', [path]),
  'a socket': async (path) => {
    const server = createServer();
    onTestFinished(() => void server.close());
    await new Promise<void>((done) => server.listen(path, done));
  },
  'a directory': (path) => mkdirSync(path),
  'a device': (path) => symlinkSync('/dev/zero', path),
  'a link to itself': (path) => symlinkSync(path, path),
  'an empty file': (path) => writeFileSync(path, ''),
  'a file of 64 GiB of nothing': (path) => {
    writeFileSync(path, '');
    truncateSync(path, 64 * gib);
  },
};

describe.each(Object.entries(kinds))('%s', (_, name) => {
  test.each(Object.keys(inPlace))('%s at an object’s path is no object', async (what) => {
    const made = written();
    rmSync(join(made.dir, name));
    await inPlace[what]?.(join(made.dir, name));

    const { breaks } = await verified(made);

    expect(breaks.map(({ object }) => object)).toContain(name);
  });
});

test('a file at the path of a directory is no object either', async () => {
  for (const name of ['tile', 'tile/0', 'tile/0/000.p', 'checkpoints', 'segments']) {
    const made = written();
    rmSync(join(made.dir, name), { recursive: true });
    writeFileSync(join(made.dir, name), 'x');

    const { breaks } = await verified(made);

    expect([name, breaks.some(({ object }) => object?.startsWith(name))]).toEqual([name, true]);
  }
});

test('cyclic links, and names that no object has, are skipped', async () => {
  const made = written();
  for (const name of ['0', 'a', 'b', 'zzz']) symlinkSync('.', join(made.dir, 'checkpoints', name));
  writeFileSync(join(made.dir, 'checkpoints', 'a\n\u001b[2J'), 'x');
  writeFileSync(join(made.dir, 'checkpoints', 'b\\c.note'), 'x');
  writeFileSync(join(made.dir, 'checkpoints', 'zzz.note'), 'x');
  const whole = await verified(made);
  rmSync(join(made.dir, 'checkpoint'));

  const { breaks, size } = await verified(made);

  expect(whole.breaks).toEqual([]);
  expect(size).toBe(12);
  expect(breaks).toMatchObject([{ object: 'checkpoint', what: 'the checkpoint is missing' }]);
});

test('a log of more entries than there are atoms to write them is not walked through', async () => {
  const made = written();
  for (const size of [200_000_000, Number.MAX_SAFE_INTEGER]) {
    const root = Buffer.alloc(32).toString('base64');
    const line = `— sluice.test/naive ${Buffer.alloc(68).toString('base64')}\n`;
    const note = `sluice.test/naive\n${size}\n${root}\n\n${line.repeat(90)}`;
    writeFileSync(join(made.dir, 'checkpoint'), note);

    const report = await verified(made);

    expect(report.size).toBe(size);
    expect(report.breaks.length).toBeGreaterThan(0);
  }
});

test('endless content is no manifest, and no bundle', async () => {
  for (const [name, bytes] of [
    [kinds.manifest, Buffer.alloc(8_000_000, 'a')],
    [kinds.manifest, Buffer.alloc(8_000_000, '[')],
    [kinds.bundle, Buffer.alloc(16_000_000)],
    [kinds.bundle, Buffer.alloc(16_000_000, 255)],
    [kinds.bundle, Buffer.alloc(16_000_000, Buffer.from([0, 1, 65]))],
  ] as const) {
    const made = written();
    writeFileSync(join(made.dir, name), bytes);

    const { breaks } = await verified(made);

    expect(breaks.length).toBeGreaterThan(0);
  }
});

test('a segment with extra bytes at its end is reported once, without reading on', async () => {
  const made = written();
  truncateSync(join(made.dir, kinds.segment), 64 * gib);

  const { breaks } = await verified(made);

  expect(breaks).toMatchObject([{ index: 1, object: kinds.segment }]);
  expect(breaks[0]?.what).toMatch(/longer than \d+ bytes/);
});

test('--since beside damage: both are reported, or the damage alone', async () => {
  const made = written();
  const since = made.archive.notes[1] ?? Buffer.alloc(0);
  rmSync(join(made.dir, kinds.tile));
  rmSync(join(made.dir, kinds.bundle));

  const { breaks } = await verified(made, { since });

  expect(breaks.map(({ object }) => object)).toEqual(
    expect.arrayContaining([kinds.tile, kinds.bundle]),
  );
});

test('an older checkpoint put back is found by a newer one that a clock gone back has named', async () => {
  const made = written();
  const newest = made.archive.notes[2] ?? Buffer.alloc(0);
  const name = 'checkpoints/2025/12/31/00000000000000000012.note';
  rmSync(join(made.dir, 'checkpoints/2026/01/31/00000000000000000012.note'));
  mkdirSync(join(made.dir, 'checkpoints/2025/12/31'), { recursive: true });
  writeFileSync(join(made.dir, name), newest);
  const whole = await verified(made);
  writeFileSync(join(made.dir, 'checkpoint'), made.archive.notes[1] ?? '');
  const { breaks } = await verified(made);
  rmSync(join(made.dir, 'checkpoint'));
  const { size } = await verified(made);

  expect([whole.breaks, whole.remarks.join().includes('no copy')]).toEqual([[], false]);
  expect(breaks).toMatchObject([{ object: name, what: expect.stringContaining('an older one') }]);
  expect(size).toBe(12);
});

describe('an entry that two readers could take for two', () => {
  const text = naiveArchive([{ pages: [] }]).entries[0]?.toString('utf8') ?? '';

  test.each([
    ['a key twice', Buffer.from(text.replace('{', '{"version":"9",'))],
    ['text that is no UTF-8', Buffer.from(text.replace('0.1.0', '0.\u00ff'), 'latin1')],
    ['blanks', Buffer.from(`${text} `)],
  ])('%s: it is none', (_, bytes) => {
    expect(parseEntry(Buffer.from(text))).toMatchObject({ t: 'start' });
    expect(() => parseEntry(bytes)).toThrow('not an entry');
  });
});

test('an entry that counts records which its page has not is none that proves', async () => {
  const body = { stream: 'audit', body: '{}', texts: [], entry: { kind: 'answer', kept: 5 } };
  const archive = naiveArchive([{ pages: [body] }]);
  const dir = tempDir();
  writeNaive(archive, dir);

  const { breaks } = await verified({ archive, dir });

  expect(breaks).toMatchObject([{ index: 2, stream: 'audit' }]);
});

test('pages of ten thousand years, of many streams, are a page for an auditor soon', async () => {
  const far = ['0001-01-01T00:00:00Z', '9999-12-31T00:00:00Z'];
  const pages = Array.from({ length: 400 }, (_, i) => ({
    stream: `logs/${i >> 1}`,
    records: 0,
    entry: { fetched_at: far[i % 2] },
  }));
  const archive = naiveArchive([{ pages }]);
  const dir = tempDir();
  writeNaive(archive, dir);
  const html = join(dir, 'report.html');
  const key = ['--key', archive.vkeys[0] ?? ''];

  const { exitCode } = await runHere(['archive', 'verify', dir, ...key, '--html', html]);

  expect(exitCode).toBe(0);
});

test('an event with a checkpoint in it may be as deep as it likes', async () => {
  const { archive, dir } = written();
  const note = JSON.stringify(archive.notes[0]?.toString('utf8'));
  const depth = 100_000;
  const since = join(dir, 'since.json');
  writeFileSync(since, `${'{"a":'.repeat(depth)}${note}${'}'.repeat(depth)}`);

  const given = ['--key', archive.vkeys[0] ?? '', '--since', since];
  const { exitCode } = await runHere(['archive', 'verify', dir, ...given]);

  expect(exitCode).toBe(0);
});
