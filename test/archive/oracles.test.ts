// Archives before independent readers: those that the tests of reading are made with, and those
// that the writer makes.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDirectory } from '../../src/objects/directory.ts';
import { naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { oraclesFor } from '../support/archive/oracles.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, readArchive } from './a-writer.ts';

/** Building the programs may take long. */
const buildMs = 600_000;

test('Tessera and Go read the naive archive', { timeout: buildMs }, async (context) => {
  const { oracle, fsck } = await oraclesFor(context);

  for (const pages of [1, 253, 254, 700]) {
    const archive = naiveArchive([
      { pages: [{ stream: 'audit' }] },
      { pages: Array.from({ length: pages }, () => ({ stream: 'logs/a', records: 1 })) },
    ]);
    const dir = tempDir();
    writeNaive(archive, dir);
    const [vkey = ''] = archive.vkeys;
    writeFileSync(join(dir, 'older.note'), archive.notes[0] ?? '');

    const log = await oracle('log', dir, vkey);
    const since = await oracle('since', dir, vkey, join(dir, 'older.note'));
    const tessera = await fsck(dir, vkey);

    expect(log.errors).toBe('');
    expect(log.output).toContain(`${archive.entries.length} `);
    expect(since.exitCode).toBe(0);
    expect(tessera).toMatchObject({ exitCode: 0 });
  }
});

test('Tessera and Go read the writer’s output', { timeout: buildMs }, async (context) => {
  const { oracle, fsck } = await oraclesFor(context);
  const dir = tempDir();
  const { vkey } = aSigner().verifier;
  const writer = await aWriter({ store: openDirectory(dir) });
  const pages = heldPages(600);
  for (const [from, to] of [
    [0, 1],
    [1, 250],
    [250, 600],
  ] as const) {
    await archived(writer, pages.slice(from, to));
  }
  await writer.close();

  const log = await oracle('log', dir, vkey);
  const tessera = await fsck(dir, vkey);

  const { size, entries } = await readArchive(dir);
  expect(log).toMatchObject({ errors: '', output: expect.stringContaining(`${size} `) });
  expect(tessera).toMatchObject({ exitCode: 0 });
  const kept = entries.flatMap((entry) => (entry.t === 'checkpoint' ? [entry.object] : []));
  for (const object of kept) {
    expect(await oracle('since', dir, vkey, join(dir, object))).toMatchObject({ exitCode: 0 });
  }
});

test('Go finds a flipped bit in an entry', { timeout: buildMs }, async (context) => {
  const { oracle } = await oraclesFor(context);
  const archive = naiveArchive([{ pages: [{ stream: 'audit' }, { stream: 'audit' }] }]);
  const dir = tempDir();
  const bundle = archive.files.get('tile/entries/000.p/4') ?? Buffer.alloc(0);
  bundle[700] = (bundle[700] ?? 0) ^ 1;
  writeNaive(archive, dir);

  const { exitCode, errors } = await oracle('log', dir, archive.vkeys[0] ?? '');

  expect(exitCode).toBe(1);
  expect(errors).toContain('is not what its tile says');
});
