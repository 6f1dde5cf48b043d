// An archive that continues a moved one and has a cutover, and changes to it by an attacker with write access and without
// a key: the entry of the cutover, the first entries of the log, and files beside checkpoints.

import { hash } from 'node:crypto';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { movedMark } from '../../src/archive/heads.ts';
import { leafHash, rootOf } from '../../src/archive/merkle.ts';
import { decodeBundle, encodeBundle } from '../../src/archive/tiles.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aWriter, heldPages, type State, uidsOfPages } from './a-writer.ts';

/** The page of a cutover, as the process reports it. */
function cutover(first: number): HeldPage {
  const [page] = heldPages(1, first, '#conditions');
  if (page === undefined) throw new Error('there is a page');
  const details = {
    ...{ predecessor: 'old', successor: 'new', phase: 'cut_over' },
    ...{ matched: 9, only_old: 0, only_new: 0, streams_old: ['old'], streams_new: ['new'] },
  };
  const record = { condition: 'source.cut_over', message: 'cut over', details };
  return {
    ...page,
    context: { ...page.context, kind: 'condition' },
    ...{ body: Buffer.from(JSON.stringify([record])), items: '' },
    ...{ uids: page.uids.subarray(0, 32), count: 1 },
  };
}

/** Both archives. */
export interface SeamArchive {
  /** Directory of the earlier archive. */
  readonly before: string;
  readonly place: string;
  readonly state: State;
  /** Uids of the pages in `place`. */
  readonly uids: readonly string[];
}

/** An archive whose state was moved by `cluster import` to another location, and a cutover in the second log. */
export async function seamArchive(): Promise<SeamArchive> {
  const before = join(tempDir(), 'before');
  const place = join(tempDir(), 'archive');
  const old: State = { mark: null };
  const first = await aWriter({ store: openDirectory(before), state: old });
  await archived(first, [...heldPages(2, 0, 'old'), ...heldPages(1, 6, 'new')]);
  await first.close();
  if (old.mark === null) throw new Error('the writer remembers');
  const state: State = { mark: movedMark([old.mark]) };
  const second = await aWriter({ store: openDirectory(place), state });
  const pages = [...heldPages(1, 9, 'old'), ...heldPages(2, 12, 'new'), cutover(18)];
  for (const page of pages) await archived(second, [page]);
  await archived(second, heldPages(1, 19, 'new'));
  await second.close();
  return { before, place, state, uids: uidsOfPages([...pages, ...heldPages(1, 19, 'new')]) };
}

const filesIn = (at: string, under: string) =>
  readdirSync(join(at, under), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name))
    .toSorted();
const sizeAt = (at: string) => Number(readFileSync(join(at, 'checkpoint'), 'utf8').split('\n')[1]);
const bundleAt = (at: string) => join(at, `tile/entries/000.p/${sizeAt(at)}`);
const entriesAt = (at: string) => decodeBundle(readFileSync(bundleAt(at)), sizeAt(at));
const newest = (at: string) => filesIn(at, 'checkpoints').at(-1) ?? '';
const beside = (at: string, ending: string) => newest(at).replace(/note$/, ending);
const put = (path: string, bytes: string | Uint8Array) => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
};

/** Entries changed by their JSON; the bundle is written so that it can be read. */
const inEntries =
  (t: string, change: (entry: Record<string, unknown>) => object | null, fitsTree = false) =>
  (at: string) => {
    const made = entriesAt(at).flatMap((bytes) => {
      const entry = JSON.parse(bytes.toString()) as Record<string, unknown>;
      if (entry.t !== t) return [bytes];
      const changed = change(entry);
      return changed === null ? [] : [Buffer.from(JSON.stringify(changed))];
    });
    writeFileSync(bundleAt(at), encodeBundle(made));
    if (!fitsTree) return;
    const leaves = made.map((one) => leafHash(one));
    writeFileSync(join(at, `tile/0/000.p/${leaves.length}`), Buffer.concat(leaves));
    const lines = readFileSync(join(at, 'checkpoint'), 'utf8').split('\n');
    writeFileSync(
      join(at, 'checkpoint'),
      lines.with(2, rootOf(leaves).toString('base64')).join('\n'),
    );
  };
const first = (change: object) => (entry: Record<string, unknown>) =>
  entry.seq === 0 ? { ...entry, continues: change } : entry;

/** Each changes the archive in directory `at`; `before` is the directory of the earlier archive. Some only add files. */
export const seamAttacks: Readonly<Record<string, (at: string, before: string) => void>> = {
  'the cutover is that of another source': inEntries('succession', (one) => ({
    ...one,
    successor: 'other',
  })),
  'the cutover is a rollback': inEntries('succession', (one) => ({ ...one, phase: 'shadow' })),
  'the cutover names earlier pages': inEntries('succession', (one) => ({
    ...one,
    streams: (one.streams as object[]).map((stream) => ({ ...stream, seq: 0 })),
  })),
  'the cutover names no streams': inEntries('succession', (one) => ({ ...one, streams: [] })),
  'the cutover counts no records': inEntries('succession', (one) => ({ ...one, matched: 0 })),
  'the cutover is gone': inEntries('succession', () => null),
  'the cutover is another, and the tree fits': inEntries(
    'succession',
    (one) => ({ ...one, predecessor: 'nobody' }),
    true,
  ),
  'the log continues from another archive': inEntries(
    'page',
    first({ archive: '0'.repeat(64), origin: 'archive.test', seq: 2, prev: '0'.repeat(64) }),
  ),
  'the log begins here': inEntries('page', first('beginning' as unknown as object)),
  'the log continues later': inEntries('page', (one) =>
    one.seq === 2 ? { ...one, continues: { ...(one.continues as object), seq: 9 } } : one,
  ),
  'the log continues from another archive, and the tree fits': inEntries(
    'page',
    first({ archive: '0'.repeat(64), origin: 'archive.test', seq: 2, prev: '0'.repeat(64) }),
    true,
  ),
  'the segments of the earlier archive are in place of its own': (at, before) => {
    rmSync(join(at, 'segments'), { recursive: true });
    cpSync(join(before, 'segments'), join(at, 'segments'), { recursive: true });
  },
  'the checkpoint of the earlier archive is in its place': (at, before) =>
    cpSync(join(before, 'checkpoint'), join(at, 'checkpoint')),
  'archive.json of the earlier archive is in its place': (at, before) =>
    cpSync(join(before, 'archive.json'), join(at, 'archive.json')),
  'the entries of the earlier archive are in its place': (at, before) => {
    rmSync(join(at, 'tile'), { recursive: true });
    cpSync(join(before, 'tile'), join(at, 'tile'), { recursive: true });
  },
  'kept checkpoints of the earlier archive are beside its own': (at, before) =>
    cpSync(join(before, 'checkpoints'), join(at, 'checkpoints'), { recursive: true, force: false }),
  'the earlier archive is at the location of a shard': (at, before) =>
    cpSync(before, join(at, '1'), { recursive: true }),
  'the earlier archive is below its segments': (at, before) =>
    cpSync(before, join(at, 'segments/before'), { recursive: true }),
  'a fake stamp': (at) => put(beside(at, 'tsr'), 'no stamp'),
  'a stamp of an older checkpoint': (at) =>
    put((filesIn(at, 'checkpoints')[0] ?? '').replace(/note$/, 'tsr'), Buffer.alloc(64, 0x30)),
  'a stamp in the name of a checkpoint to come': (at) =>
    put(join(dirname(newest(at)), '00000000000000000999.tsr'), 'no stamp'),
  'a fake cosignature': (at) =>
    put(
      beside(at, 'cosig'),
      `${readFileSync(newest(at), 'utf8')}— witness.test ${'A'.repeat(104)}\n`,
    ),
  'a cosignature of another checkpoint': (at) =>
    put(beside(at, 'cosig'), readFileSync(filesIn(at, 'checkpoints')[0] ?? '')),
  'a cosignature in the name of a checkpoint to come': (at) =>
    put(join(dirname(newest(at)), '00000000000000000999.cosig'), readFileSync(newest(at))),
  'a directory in place of a stamp': (at) => mkdirSync(beside(at, 'tsr')),
  'a link to a device in place of a cosignature': (at) =>
    symlinkSync('/dev/zero', beside(at, 'cosig')),
  'a link to itself in place of a stamp': (at) => symlinkSync(beside(at, 'tsr'), beside(at, 'tsr')),
  'a stamp in place of the newest kept checkpoint': (at) =>
    renameSync(newest(at), beside(at, 'tsr')),
  'a body of the cutover that says nothing': (at) => {
    for (const path of filesIn(at, 'segments')) {
      const bytes = readFileSync(path);
      if (hash('sha256', bytes).startsWith('0')) continue;
      bytes[bytes.length - 40] = (bytes[bytes.length - 40] ?? 0) ^ 1;
      writeFileSync(path, bytes);
    }
  },
};
