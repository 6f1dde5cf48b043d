// Splits a possibly damaged bundle into its entries. If the lengths do not lead to the entries of the tree, the next
// entry is found by the start of entries, so a flipped bit in a length hides at most its own entry.

import { leafHash } from '../merkle.ts';
import { entryBytesMax, tileWidth } from '../tiles.ts';

const lengthBytes = 2;
const opening = Buffer.from('{"t":');
/** Limit of positions tried: valid JSON contains no entry start inside an entry, but damaged JSON may. */
const endsMax = 4;

/** Bytes at the position of an entry. */
export interface SplitEntry {
  readonly bytes: Buffer;
  /** The stored length before it. */
  readonly length: number;
}

/**
 * The entries of a bundle, in order; of an overfull one, one more than allowed. `leaves`: the hashes of its entries, if
 * known.
 */
export function splitBundle(
  bundle: Uint8Array,
  leaves: readonly (Buffer | null)[],
): readonly SplitEntry[] {
  const bytes = Buffer.from(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  const entries: SplitEntry[] = [];
  for (let at = 0; at < bytes.length && entries.length <= tileWidth; ) {
    const end = endOfEntry(bytes, at, leaves.slice(entries.length, entries.length + 2));
    const reported = at + lengthBytes <= bytes.length ? bytes.readUInt16BE(at) : 0;
    entries.push({ bytes: bytes.subarray(Math.min(at + lengthBytes, end), end), length: reported });
    at = end;
  }
  return entries;
}

/** The end of the entry at `at`: by its length, or if that is damaged by its hash or the next entry. */
function endOfEntry(
  bytes: Buffer,
  at: number,
  [leaf = null, next = null]: readonly (Buffer | null)[],
): number {
  const from = at + lengthBytes;
  const reported = from <= bytes.length ? from + bytes.readUInt16BE(at) : bytes.length;
  const isEntry = (start: number, end: number, hash: Buffer | null) =>
    hash !== null && end <= bytes.length && leafHash(bytes.subarray(start, end)).equals(hash);
  const isNext = (end: number) => {
    const start = end + lengthBytes;
    if (start > bytes.length) return end === bytes.length && next === null;
    return isEntry(start, start + bytes.readUInt16BE(end), next);
  };
  if (leaf === null || isEntry(from, reported, leaf)) return Math.min(reported, bytes.length);
  const ends = [...endsFrom(bytes, from).take(endsMax)];
  const end = ends.find((one) => isEntry(from, one, leaf)) ?? [reported, ...ends].find(isNext);
  return Math.min(end ?? reported, bytes.length);
}

/** Positions at which another entry may begin, within the reach of an entry, and the end. */
function* endsFrom(bytes: Buffer, from: number): Generator<number> {
  const near = bytes.subarray(0, from + entryBytesMax + lengthBytes + opening.length);
  for (let at = near.indexOf(opening, from); at >= 0; at = near.indexOf(opening, at + 1)) {
    if (at - lengthBytes >= from) yield at - lengthBytes;
  }
  if (bytes.length - from <= entryBytesMax) yield bytes.length;
}
