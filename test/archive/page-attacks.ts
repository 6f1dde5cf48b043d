// Archives that an attacker with write access and without the key has changed: pages with other records, whose entries, tree
// or checkpoint are made to fit as far as possible without the key.

import { hash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { type PageEntry, parseEntry } from '../../src/archive/entries.ts';
import { leafHash, rootOf } from '../../src/archive/merkle.ts';
import { compressBody } from '../../src/archive/segments.ts';
import { decodeBundle, encodeBundle } from '../../src/archive/tiles.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { tempDir } from '../support/temp.ts';
import { cut, eventsOf } from './a-lake.ts';
import { archived, aSigner, aWriter, heldPages, type State } from './a-writer.ts';

/** The id of a record that the attacks put into a page. */
export const forged = 'forged-by-somebody';

/** An archive of three pages of three events, each page in a segment; its lake has them all. */
export async function threePages(hasLake: boolean): Promise<string> {
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
export async function forgePage(place: string): Promise<readonly Buffer[]> {
  const entries = [...decodeBundle(readFileSync(bundleOf(place)), sizeAt(place))];
  const at = entries.findLastIndex((bytes) => parseEntry(bytes).t === 'page');
  const page = JSON.parse(String(entries[at])) as PageEntry;
  const path = join(place, page.body.segment);
  const bytes = readFileSync(path);
  const { length } = page.body;
  const body = zstdDecompressSync(bytes.subarray(0, length)).toString();
  const changed = Buffer.from(body.replace(/("id": ?")[^"]*/, `$1${forged}`));
  if (!changed.includes(forged)) throw new Error('the page has an id');
  const frame = await compressBody(changed);
  writeFileSync(path, Buffer.concat([frame, bytes.subarray(length)]));
  const sha256 = hash('sha256', changed, 'hex');
  const now = { ...page.body, sha256, bytes: changed.length, length: frame.length };
  entries[at] = Buffer.from(JSON.stringify({ ...page, body: now }));
  writeFileSync(bundleOf(place), encodeBundle(entries));
  return entries;
}

/** The same, with a matching tree and checkpoint; unsigned. */
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

/** Each ends in a broken archive. */
export const pageAttacks: Readonly<Record<string, (place: string) => unknown>> = {
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

/** The same, of an archive with a lake. */
export const lakeAttacks: Readonly<Record<string, (place: string) => unknown>> = {
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
