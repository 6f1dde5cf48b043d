// `search` and `replay` of archives that somebody with write access and without the key has changed: they show and send
// nothing that the key's checkpoint does not prove, and name the position where the proof ends.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { type PageEntry, parseEntry } from '../../src/archive/entries.ts';
import { leafHash, rootOf } from '../../src/archive/merkle.ts';
import { signingKeyText } from '../../src/archive/note.ts';
import { compressBody } from '../../src/archive/segments.ts';
import { decodeBundle, encodeBundle } from '../../src/archive/tiles.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { cut, eventsOf } from './a-lake.ts';
import { archived, aSigner, aWriter, heldPages, type State } from './a-writer.ts';

const forged = 'forged-by-somebody';
const { vkey } = aSigner().verifier;
let plain = '';
let withLake = '';

beforeAll(async () => {
  [plain, withLake] = await Promise.all([written(false), written(true)]);
});

/** An archive of three pages of three events, each page in a segment; its lake has them all. */
async function written(hasLake: boolean): Promise<string> {
  const place = join(tempDir(), 'archive');
  const state: State = { mark: null };
  const writer = await aWriter({ store: openDirectory(place), state });
  const pages = heldPages(3);
  for (const page of pages) await archived(writer, [page]);
  if (hasLake) await cut(place, eventsOf(pages), () => Date.now());
  await writer.close();
  return place;
}

const filesIn = (place: string, under: string) =>
  readdirSync(join(place, under), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name))
    .toSorted();
const edit = (path: string, change: (bytes: Buffer) => Uint8Array) =>
  writeFileSync(path, change(readFileSync(path)));
const sizeAt = (place: string) =>
  Number(readFileSync(join(place, 'checkpoint'), 'utf8').split('\n')[1]);
const bundleOf = (place: string) => join(place, `tile/entries/000.p/${sizeAt(place)}`);

/** The last page gets another record; its entry is made to fit. Returns the entries as they are then. */
async function forgePage(place: string): Promise<readonly Buffer[]> {
  const entries = [...decodeBundle(readFileSync(bundleOf(place)), sizeAt(place))];
  const at = entries.findLastIndex((bytes) => parseEntry(bytes).t === 'page');
  const page = JSON.parse(String(entries[at])) as PageEntry;
  const path = join(place, page.body.segment);
  const bytes = readFileSync(path);
  const { length } = page.body;
  const body = zstdDecompressSync(bytes.subarray(0, length)).toString();
  const changed = Buffer.from(body.replace(/("id": ?")[^"]*/, `$1${forged}`));
  expect(changed.toString()).toContain(forged);
  const frame = await compressBody(changed);
  writeFileSync(path, Buffer.concat([frame, bytes.subarray(length)]));
  const { createHash } = await import('node:crypto');
  const sha256 = createHash('sha256').update(changed).digest('hex');
  const now = { ...page.body, sha256, bytes: changed.length, length: frame.length };
  entries[at] = Buffer.from(JSON.stringify({ ...page, body: now }));
  writeFileSync(bundleOf(place), encodeBundle(entries));
  return entries;
}

/** The same, with a tree and a checkpoint that fit; nobody has signed it. */
async function forgeTree(place: string): Promise<void> {
  const entries = await forgePage(place);
  const leaves = entries.map((one) => leafHash(one));
  writeFileSync(join(place, `tile/0/000.p/${leaves.length}`), Buffer.concat(leaves));
  edit(join(place, 'checkpoint'), (note) => {
    const lines = note.toString().split('\n');
    return Buffer.from(lines.with(2, rootOf(leaves).toString('base64')).join('\n'));
  });
}

/** Another key signs the changed tree. */
async function forgeKey(place: string): Promise<void> {
  const other = join(tempDir(), 'archive');
  const writer = await aWriter({
    ...{ store: openDirectory(other), signer: aSigner('archive.test', 9) },
  });
  await archived(writer, heldPages(2));
  await writer.close();
  cpSync(other, place, { recursive: true, force: true });
}

const attacks: Readonly<Record<string, (place: string) => unknown>> = {
  'a page and its entry are replaced': forgePage,
  'a page, its entry and the tree are replaced': forgeTree,
  'the whole log is replaced by one of another key': forgeKey,
  'an entry has another time': (place) =>
    edit(bundleOf(place), (bytes) =>
      Buffer.from(bytes.toString('latin1').replace(/("fetched_at":"20)2/, '$11'), 'latin1'),
    ),
  'a byte of a body differs': (place) =>
    edit(filesIn(place, 'segments')[0] ?? '', (bytes) => {
      bytes[20] = (bytes[20] ?? 0) ^ 1;
      return bytes;
    }),
  'two segments are exchanged': (place) => {
    const [one = '', other = ''] = filesIn(place, 'segments');
    const bytes = readFileSync(one);
    writeFileSync(one, readFileSync(other));
    writeFileSync(other, bytes);
  },
  'the checkpoint says another root': (place) =>
    edit(join(place, 'checkpoint'), (note) => {
      const lines = note.toString().split('\n');
      return Buffer.from(lines.with(2, Buffer.alloc(32, 7).toString('base64')).join('\n'));
    }),
  'the checkpoint is an older one under the newest size': (place) => {
    const [older = ''] = filesIn(place, 'checkpoints');
    const size = String(sizeAt(place));
    const lines = readFileSync(older, 'utf8').split('\n');
    writeFileSync(join(place, 'checkpoint'), lines.with(1, size).join('\n'));
  },
  'the tiles of the tree differ': (place) =>
    edit(join(place, `tile/0/000.p/${sizeAt(place)}`), (bytes) => bytes.fill(1)),
};

const lakeAttacks: Readonly<Record<string, (place: string) => unknown>> = {
  'an object of the lake is replaced by another': (place) => {
    const [one = '', other = one] = filesIn(place, 'lake').filter((name) => name.endsWith('quet'));
    edit(one, (bytes) => Buffer.concat([readFileSync(other), bytes]));
  },
  'a byte of an object of the lake differs': (place) =>
    edit(filesIn(place, 'lake').find((name) => name.endsWith('.parquet')) ?? '', (bytes) => {
      bytes[bytes.length >> 2] = (bytes[bytes.length >> 2] ?? 0) ^ 1;
      return bytes;
    }),
  'the end of an object of the lake says that it has no rows': (place) =>
    edit(filesIn(place, 'lake').find((name) => name.endsWith('.parquet')) ?? '', (bytes) => {
      bytes.writeUInt32LE(10, bytes.length - 8);
      return bytes;
    }),
  'the entry of an object names another hash': (place) =>
    edit(bundleOf(place), (bytes) =>
      Buffer.from(
        bytes.toString('latin1').replace(/("t":"lake",.*?"sha256":")....../, '$1000000'),
        'latin1',
      ),
    ),
};

/** A config whose sink writes the archive; `other` names its location otherwise. */
function aConfig(place: string, key = signingKeyText('archive.test', Buffer.alloc(32, 1))) {
  const dir = tempDir();
  const out = join(dir, 'out.ndjson');
  writeFileSync(join(dir, 'archive.key'), key);
  const file = join(dir, 'sluice.yaml');
  writeFileSync(
    file,
    `state: { dir: ${join(dir, 'state')} }
upstreams: { edge: { api: unified, ends: never, base_url: "https://edge.example/v1", auth: { api_key: k } } }
sources: { audit: { type: audit_events, upstream: edge, every: 30s } }
sinks:
  disk: { type: file, path: ${out}, format: json }
  proof: { type: archive, location: ${place}, signing_key: "\${file:${join(dir, 'archive.key')}}" }
`,
  );
  return { file, sent: () => (existsSync(out) ? readFileSync(out, 'utf8') : '') };
}

async function changedBy(attack: (place: string) => unknown, from: string): Promise<string> {
  const place = join(tempDir(), 'archive');
  mkdirSync(dirname(place), { recursive: true });
  cpSync(from, place, { recursive: true });
  await attack(place);
  return place;
}

const raw = (place: string, ...more: readonly string[]) =>
  runSluice(['archive', 'search', place, '--raw', ...more]);
const search = (place: string, ...more: readonly string[]) =>
  runHere(['archive', 'search', place, ...more]);

describe.each(Object.entries(attacks))('%s', (_, attack) => {
  test('search --raw, search -c and replay refuse it', async () => {
    const place = await changedBy(attack, plain);
    const { file, sent } = aConfig(place);

    const runs = [
      await raw(place, '--key', vkey),
      await search(place, '-c', file),
      await search(place, '-c', file, '--key', vkey),
      await runHere(['archive', 'replay', '-c', file, place, '--sink', 'disk']),
    ];

    for (const { exitCode, stdout, stderr } of runs) {
      expect({ exitCode, stderr }).toMatchObject({ exitCode: 1 });
      expect(stdout).not.toContain(forged);
      expect(stderr).toMatch(/entr|page|tile|checkpoint|key|root|segment/);
      expect(stderr).not.toContain('a fault in sluice');
    }
    expect(sent()).not.toContain(forged);
  });
});

test.each(Object.entries(lakeAttacks))('search of a lake: %s', async (_, attack) => {
  const place = await changedBy(attack, withLake);
  const { file } = aConfig(place);

  for (const more of [
    ['--key', vkey],
    ['-c', file],
  ]) {
    const { exitCode, stderr } = await search(place, ...more);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1 });
    expect(stderr).toMatch(/lake\/\S+ (differs|is damaged)|entry \d+ is not that/);
  }
});

test('what is whole is shown and sent, by the key of the config or by --key', async () => {
  const place = await changedBy(() => undefined, withLake);
  const { file, sent } = aConfig(place);

  const byRaw = await raw(place, '--key', vkey);
  const byLake = await search(place, '-c', file);
  const replayed = await runHere(['archive', 'replay', '-c', file, place, '--sink', 'disk']);

  expect(byRaw).toMatchObject({ exitCode: 0, stderr: '' });
  expect(byRaw.stdout.split('\n').length).toBe(10);
  expect(byLake).toMatchObject({ exitCode: 0, stderr: '' });
  expect(byLake.stdout.split('\n').filter(Boolean).length).toBe(9);
  expect(replayed.exitCode).toBe(0);
  expect(sent().split('\n').length).toBe(10);
});

test('without a key search says that nothing was proven, and replay refuses', async () => {
  const place = await changedBy(() => undefined, plain);
  const { file, sent } = aConfig(join(tempDir(), 'another'));

  expect(await raw(place)).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining('not proven: no key is known'),
  });
  expect(await search(place, '-c', file)).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining('not proven'),
  });
  const replayed = await runHere(['archive', 'replay', '-c', file, place, '--sink', 'disk']);
  expect(replayed.exitCode).toBe(1);
  expect(replayed.stderr).toContain('--key VKEY');
  expect(sent()).toBe('');
});

test('a forged page is not shown without a key either', async () => {
  const place = await changedBy(forgePage, plain);

  const { exitCode, stdout, stderr } = await raw(place);

  expect(exitCode).toBe(1);
  expect(stdout).not.toContain(forged);
  expect(stderr).toMatch(/entry \d+ is not that of the signed tree/);
});

test('a key of another name, and a log in the place of another shard, are refused', async () => {
  const root = tempDir();
  for (const [shard, at] of [
    [0, 1],
    [1, 0],
  ]) {
    const signer = aSigner(`archive.test/${shard}`, 1);
    const writer = await aWriter({ store: openDirectory(join(root, `${at}`)), signer });
    await archived(writer, heldPages(1));
    await writer.close();
  }

  const swapped = await raw(root, '--key', vkey);
  const other = await raw(plain, '--key', aSigner('other.test', 1).verifier.vkey);

  expect(swapped).toMatchObject({ exitCode: 1, stdout: '' });
  expect(swapped.stderr).toContain('the log of shard 1 is at the location of shard 0');
  expect(other).toMatchObject({ exitCode: 1, stdout: '' });
});
