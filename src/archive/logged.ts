// Reads an archive's log without proof, for callers that prove the result or need no proof. A damaged archive is a
// SyntaxError.

import { parseCheckpoint } from './checkpoint.ts';
import { type Entry, type EntryOf, parseEntry } from './entries.ts';
import { checkpointPath } from './layout.ts';
import { openNote, parseNote, withoutFence } from './note.ts';
import type { ArchiveReader } from './reader.ts';
import { decodeBundle, tilePath, tileWidth } from './tiles.ts';

/** The signed note of the newest checkpoint, and its content: the reader's, if its caller has checked one. */
export async function newestCheckpoint(reader: ArchiveReader) {
  if (reader.signed !== null) return reader.signed;
  const note = await reader.small(checkpointPath);
  if (note === null) throw new SyntaxError('the archive has no checkpoint');
  return { note: withoutFence(note), ...parseCheckpoint(parseNote(note).text) };
}

/** True for a note that one of the reader's keys has signed, and if no key is known. */
export function isSignedFor({ signed }: ArchiveReader, note: Uint8Array): boolean {
  if (signed === null || signed.keys.length === 0) return true;
  try {
    return openNote(note, signed.keys).by.length > 0;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Number of entries: of the reader's proven tree, else under the newest checkpoint. */
export async function sizeOf(reader: ArchiveReader): Promise<number> {
  return reader.head?.size ?? (await newestCheckpoint(reader)).size;
}

/** An entry with its index and its bytes. */
export interface LoggedEntry {
  readonly index: number;
  readonly bytes: Buffer;
  readonly entry: Entry;
}

/** The log's first `size` entries in order, beginning at `from`. */
export async function* loggedEntries(
  reader: ArchiveReader,
  size: number,
  from = 0,
): AsyncGenerator<LoggedEntry> {
  for await (const { index, bytes } of loggedBytes(reader, size, from)) {
    yield { index, bytes, entry: parseEntry(bytes) };
  }
}

/** The same, unparsed. */
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
 * The entries of some kinds under the reader's checkpoint, in order. Others are not parsed, because parsing is most of
 * the cost of reading a log.
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

/** True if an entry says that the segment was deleted (retention.ts): its pages are skipped. */
export async function isPruned(reader: ArchiveReader, segment: string): Promise<boolean> {
  const known = gone.getOrInsertComputed(reader, () => prunedIn(reader));
  return (await known).has(segment);
}

async function prunedIn(reader: ArchiveReader): Promise<ReadonlySet<string>> {
  const objects = new Set<string>();
  for await (const { entry } of entriesOf(reader, ['pruned'])) objects.add(entry.object);
  return objects;
}
