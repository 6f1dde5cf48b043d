// The entries of a bundle that may be damaged. Where its lengths do not lead to the entries that
// the tree knows, the next entry is looked for by how entries begin, so that one flipped bit in a
// length hides no entry but at most its own.

import { leafHash } from '../merkle.ts';
import { entryBytesMax, tileWidth } from '../tiles.ts';

const lengthBytes = 2;
const opening = Buffer.from('{"t":');
/** Places looked at: no JSON has an opening within it that is not an entry's, but damaged JSON may. */
const endsMax = 4;

/** Bytes in the place of an entry. */
export interface SplitEntry {
  readonly bytes: Buffer;
  /** The length that stands before it. */
  readonly told: number;
}

/**
 * What stands in a bundle, in order; of one that has more than it can, one more than that. `leaves`:
 * the hashes of its entries, where they are known.
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
    entries.push({ bytes: bytes.subarray(Math.min(at + lengthBytes, end), end), told: reported });
    at = end;
  }
  return entries;
}

/** Where the entry at `at` ends: by its length, or where that is damaged by its hash or the next. */
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

/** Places where another entry may begin, as far as an entry may reach, and the end. */
function* endsFrom(bytes: Buffer, from: number): Generator<number> {
  const near = bytes.subarray(0, from + entryBytesMax + lengthBytes + opening.length);
  for (let at = near.indexOf(opening, from); at >= 0; at = near.indexOf(opening, at + 1)) {
    if (at - lengthBytes >= from) yield at - lengthBytes;
  }
  if (bytes.length - from <= entryBytesMax) yield bytes.length;
}
