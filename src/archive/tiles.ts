// The layout of a log in an object store, by C2SP tlog-tiles (c2sp.org/tlog-tiles): the tree's hashes in tiles of 256,
// the entries in bundles of 256, and at the right edge partial ones with their width in the name. A hash of level L is
// the root of a full tile of the level below. Invariant: a full tile or bundle never changes, and none is written
// empty.

import { hashBytes, type NodeHashes, nodeHash } from './merkle.ts';

/** Hashes of a full tile, entries of a full bundle. */
export const tileWidth = 256;
const tileHeight = 8;
/** An entry's length is stored in 16 bits. */
export const entryBytesMax = 65_535;
const lengthBytes = 2;
/** Longest object of a log, except segments. */
export const bundleBytesMax: number = tileWidth * (lengthBytes + entryBytesMax);

/** A tile, or the bundle of entries below a tile of level 0. */
export interface Tile {
  readonly level: number | 'entries';
  readonly index: number;
  /** 1 to 256; below 256 only at the right edge. */
  readonly width: number;
}

/** The object's name: `tile/0/x001/x234/067` or `tile/entries/000.p/5`. */
export function tilePath({ level, index, width }: Tile): string {
  let path = String(index % 1000).padStart(3, '0');
  for (let rest = Math.floor(index / 1000); rest > 0; rest = Math.floor(rest / 1000)) {
    path = `x${String(rest % 1000).padStart(3, '0')}/${path}`;
  }
  return `tile/${level}/${path}${width === tileWidth ? '' : `.p/${width}`}`;
}

const tilePattern =
  /^tile\/(entries|[0-9]|[1-5]\d|6[0-3])\/((?:x\d{3}\/)*\d{3})(?:\.p\/(\d{1,3}))?$/;

/** Parses a name; null: it is no tile or bundle. */
export function parseTilePath(path: string): Tile | null {
  const [, level = '', groups = '', partial] = tilePattern.exec(path) ?? [];
  if (groups === '') return null;
  const tile: Tile = {
    level: level === 'entries' ? level : Number(level),
    index: Number(groups.replaceAll(/[x/]/g, '')),
    width: partial === undefined ? tileWidth : Number(partial),
  };
  return tilePath(tile) === path &&
    tile.width > 0 &&
    (partial === undefined || tile.width < tileWidth)
    ? tile
    : null;
}

/**
 * The tiles of one level (or bundles) that a tree of `size` has and a tree of `from` did not: new full ones, and the
 * partial one at the edge, if any.
 */
export function tilesBetween(level: Tile['level'], from: number, size: number): readonly Tile[] {
  const unit = tileWidth ** (level === 'entries' ? 0 : level);
  const [had, has] = [Math.floor(from / unit), Math.floor(size / unit)];
  const tiles: Tile[] = [];
  if (had === has) return tiles;
  for (let index = Math.floor(had / tileWidth); index * tileWidth < has; index += 1) {
    tiles.push({ level, index, width: Math.min(tileWidth, has - index * tileWidth) });
  }
  return tiles;
}

/** The tile of a level, or bundle, that contains the hash or entry `index` in a tree of `size`. */
export function tileOf(level: Tile['level'], index: number, size: number): Tile {
  const unit = tileWidth ** (level === 'entries' ? 0 : level);
  const at = Math.floor(index / tileWidth);
  const width = Math.min(tileWidth, Math.floor(size / unit) - at * tileWidth);
  return { level, index: at, width };
}

/** A bundle's bytes: each entry after its length, 16 bits, big-endian. */
export function encodeBundle(entries: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.allocUnsafe(entries.reduce((sum, { length }) => sum + 2 + length, 0));
  let at = 0;
  for (const entry of entries) {
    at = bytes.writeUInt16BE(entry.length, at);
    bytes.set(entry, at);
    at += entry.length;
  }
  return bytes;
}

/** The entries of a bundle. Throws a SyntaxError if they are not exactly `width`. */
export function decodeBundle(bundle: Uint8Array, width: number): readonly Buffer[] {
  const bytes = Buffer.from(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  const entries: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const from = at + 2;
    at = from <= bytes.length ? from + bytes.readUInt16BE(at) : from;
    if (at > bytes.length) throw new SyntaxError('the bundle ends within an entry');
    if (entries.length === width)
      throw new SyntaxError(`the bundle has more than ${width} entries`);
    entries.push(bytes.subarray(from, at));
  }
  if (entries.length !== width) {
    throw new SyntaxError(`the bundle has ${entries.length} entries, not ${width}`);
  }
  return entries;
}

/** The hashes of a tile. Throws a SyntaxError if they are not exactly `width`. */
export function decodeTile(tile: Uint8Array, width: number): readonly Buffer[] {
  if (tile.length !== width * hashBytes) {
    throw new SyntaxError(`the tile has ${tile.length} bytes, not ${width * hashBytes}`);
  }
  const bytes = Buffer.from(tile.buffer, tile.byteOffset, tile.byteLength);
  return Array.from({ length: width }, (_, i) =>
    bytes.subarray(i * hashBytes, (i + 1) * hashBytes),
  );
}

/** Hashes of complete subtrees of the tree of `size`, computed from its tiles. */
export function tileHashes(
  size: number,
  read: (tile: Tile) => Promise<readonly Buffer[]>,
): NodeHashes {
  return async ({ level, index }) => {
    // The level of the tile, and the number of its hashes in the subtree.
    const tileLevel = Math.floor(level / tileHeight);
    const count = 2 ** (level % tileHeight);
    const first = index * count;
    const hashes = await read(tileOf(tileLevel, first, size));
    let row: readonly Buffer[] = hashes.slice(first % tileWidth, (first % tileWidth) + count);
    while (row.length > 1) {
      row = row.flatMap((left, i) => {
        const right = row[i + 1];
        return i % 2 === 0 && right !== undefined ? [nodeHash(left, right)] : [];
      });
    }
    const [root] = row;
    if (root === undefined) throw new SyntaxError(`no tile has node ${index} of level ${level}`);
    return root;
  };
}
