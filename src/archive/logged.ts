// What an archive says, read without proof: for whoever looks something up, and proves what it finds
// or does not need to. A damaged archive is a SyntaxError.

import { parseCheckpoint } from './checkpoint.ts';
import { type Entry, type EntryOf, parseEntry } from './entries.ts';
import { checkpointPath } from './layout.ts';
import { parseNote, withoutFence } from './note.ts';
import type { ArchiveReader } from './reader.ts';
import { decodeBundle, tilePath, tileWidth } from './tiles.ts';

/** The signed note under which an archive is read, and what it says. */
export async function newestCheckpoint(reader: ArchiveReader) {
  const note = await reader.small(checkpointPath);
  if (note === null) throw new SyntaxError('the archive has no checkpoint');
  return { note: withoutFence(note), ...parseCheckpoint(parseNote(note).text) };
}

/** How many entries a reader has: those of its proven tree, else those under the newest checkpoint. */
export async function sizeOf(reader: ArchiveReader): Promise<number> {
  return reader.head?.size ?? (await newestCheckpoint(reader)).size;
}

/** An entry with its place and its bytes in the log. */
export interface LoggedEntry {
  readonly index: number;
  readonly bytes: Buffer;
  readonly entry: Entry;
}

/** The log's first `size` entries in order, those before `from` left out. */
export async function* loggedEntries(
  reader: ArchiveReader,
  size: number,
  from = 0,
): AsyncGenerator<LoggedEntry> {
  for await (const { index, bytes } of loggedBytes(reader, size, from)) {
    yield { index, bytes, entry: parseEntry(bytes) };
  }
}

/** The same, not parsed. */
async function* loggedBytes(
  reader: ArchiveReader,
  size: number,
  from = 0,
): AsyncGenerator<Omit<LoggedEntry, 'entry'>> {
  for (let first = from - (from % tileWidth); first < size; first += tileWidth) {
    const width = Math.min(tileWidth, size - first);
    const index = first / tileWidth;
    const found = await reader.bundle(index, width);
    if (found === null) {
      throw new SyntaxError(`${tilePath({ level: 'entries', index, width })} is missing`);
    }
    const entries = decodeBundle(found.bytes, found.width).slice(0, width);
    for (const [i, bytes] of entries.entries()) {
      if (first + i < from) continue;
      yield { index: first + i, bytes };
    }
  }
}

/**
 * The entries of some kinds under the checkpoint that a reader has, in order. Others are not parsed, which is most of
 * what reading a log costs.
 */
export async function* entriesOf<T extends Entry['t']>(
  reader: ArchiveReader,
  kinds: readonly T[],
): AsyncGenerator<Omit<LoggedEntry, 'entry'> & { readonly entry: EntryOf<T> }> {
  const openings = kinds.map((kind) => Buffer.from(`{"t":"${kind}",`));
  const isOne = (bytes: Buffer) =>
    openings.some((one) => bytes.subarray(0, one.length).equals(one));
  for await (const { index, bytes } of loggedBytes(reader, await sizeOf(reader))) {
    if (isOne(bytes)) yield { index, bytes, entry: parseEntry(bytes) as EntryOf<T> };
  }
}

const gone = new WeakMap<ArchiveReader, Promise<ReadonlySet<string>>>();

/** True where an entry says that the segment went (retention.ts): its pages are to be left out. */
export async function isPruned(reader: ArchiveReader, segment: string): Promise<boolean> {
  const known = gone.get(reader) ?? prunedIn(reader);
  gone.set(reader, known);
  return (await known).has(segment);
}

async function prunedIn(reader: ArchiveReader): Promise<ReadonlySet<string>> {
  const objects = new Set<string>();
  for await (const { entry } of entriesOf(reader, ['pruned'])) objects.add(entry.object);
  return objects;
}
