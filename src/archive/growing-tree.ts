// The right edge of a growing tree: hashes and entries that are not in a full tile or bundle yet, at most 255 per
// level. Invariant: the objects returned by `take`, written in any order, complete all tiles and bundles that were
// added since the last call.

import type { ObjectStore } from '../objects/index.ts';
import { leafHash, rootOf } from './merkle.ts';
import {
  bundleBytesMax,
  decodeBundle,
  decodeTile,
  encodeBundle,
  type Tile,
  tileOf,
  tilePath,
  tileWidth,
} from './tiles.ts';

/** An object to write. */
export interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The part of a tree outside full tiles and bundles. */
export interface TreeEdge {
  /** Hashes by level. */
  readonly tiles: ReadonlyMap<number, readonly Buffer[]>;
  /** Of the partial bundle. */
  readonly entries: readonly Uint8Array[];
}

/** A growing log tree. */
export class GrowingTree {
  #size = 0;
  /** Entries of the last bundle while it is partial. */
  #entries: Uint8Array[] = [];
  /** For each level, the hashes of its last tile while it is partial, and the number of earlier ones. */
  readonly #rows: { before: number; hashes: Buffer[]; isNew: boolean }[] = [];
  readonly #full: NamedBytes[] = [];

  get size(): number {
    return this.#size;
  }

  /** The hash over a full tile of a level is a hash of the next level, so levels are folded upwards. */
  get root(): Buffer {
    const [first = [], ...others] = this.#rows.map(({ hashes }) => hashes);
    let below = first;
    for (const hashes of others) {
      below = below.length === 0 ? hashes : [...hashes, rootOf(below)];
    }
    return rootOf(below);
  }

  /** The tree's present partial tiles and bundle. */
  get edge(): TreeEdge {
    const tiles = new Map<number, readonly Buffer[]>();
    for (const [level, { hashes }] of this.#rows.entries()) {
      if (hashes.length > 0) tiles.set(level, [...hashes]);
    }
    return { tiles, entries: [...this.#entries] };
  }

  /** Adds an entry; returns its leaf hash. */
  append(entry: Uint8Array): Buffer {
    const leaf = leafHash(entry);
    this.#entries.push(entry);
    this.#size += 1;
    if (this.#entries.length === tileWidth) {
      const index = this.#size / tileWidth - 1;
      this.#fill({ level: 'entries', index, width: tileWidth }, encodeBundle(this.#entries));
      this.#entries = [];
    }
    this.#push(0, leaf);
    return leaf;
  }

  #push(level: number, hash: Buffer): void {
    this.#rows[level] ??= { before: 0, hashes: [], isNew: false };
    const row = this.#rows[level];
    row.hashes.push(hash);
    row.isNew = true;
    if (row.hashes.length < tileWidth) return;
    const index = row.before / tileWidth;
    this.#fill({ level, index, width: tileWidth }, Buffer.concat(row.hashes));
    this.#push(level + 1, rootOf(row.hashes));
    this.#rows[level] = { before: row.before + tileWidth, hashes: [], isNew: false };
  }

  #fill(tile: Tile, bytes: Uint8Array): void {
    this.#full.push({ name: tilePath(tile), bytes });
  }

  /** New tiles and bundles since the last call. */
  take(): readonly NamedBytes[] {
    const taken = this.#full.splice(0);
    for (const [level, row] of this.#rows.entries()) {
      const { before, hashes, isNew } = row;
      row.isNew = false;
      if (!isNew || hashes.length === 0) continue;
      const edge = { index: before / tileWidth, width: hashes.length };
      taken.push({ name: tilePath({ level, ...edge }), bytes: Buffer.concat(hashes) });
      if (level > 0) continue;
      const bundle = tilePath({ level: 'entries', ...edge });
      taken.push({ name: bundle, bytes: encodeBundle(this.#entries) });
    }
    return taken;
  }

  /**
   * Reads the tree of `size` from a store. Throws a SyntaxError if a tile is missing or does not fit; the caller
   * compares the root with the signed one.
   */
  static async read(store: ObjectStore, size: number): Promise<GrowingTree> {
    const tree = new GrowingTree();
    tree.#size = size;
    for (let [level, count] = [0, size]; count > 0; level += 1) {
      const before = count - (count % tileWidth);
      const tile = { level, index: before / tileWidth, width: count % tileWidth };
      const hashes = tile.width === 0 ? [] : await readHashes(store, tile);
      tree.#rows.push({ before, hashes: [...hashes], isNew: false });
      count = before / tileWidth;
    }
    if (size % tileWidth > 0) {
      const bundle = tileOf('entries', size - 1, size);
      tree.#entries = [...decodeBundle(await readTile(store, bundle), bundle.width)];
      const leaves = tree.#rows[0]?.hashes ?? [];
      if (tree.#entries.some((entry, i) => leaves[i]?.equals(leafHash(entry)) !== true)) {
        throw new SyntaxError(`${tilePath(bundle)} has not the entries of its tile`);
      }
    }
    return tree;
  }
}

/** Entries `from` up to `size` of a log with at least that many. Throws a SyntaxError. */
export async function* readEntries(store: ObjectStore, from: number, size: number) {
  for (let at = from; at < size; ) {
    const bundle = tileOf('entries', at, size);
    const entries = decodeBundle(await readTile(store, bundle), bundle.width);
    yield* entries.slice(at % tileWidth);
    at = bundle.index * tileWidth + bundle.width;
  }
}

/** The hashes of a tile. Throws a SyntaxError if it is missing or has another length. */
async function readHashes(store: ObjectStore, tile: Tile): Promise<readonly Buffer[]> {
  return decodeTile(await readTile(store, tile), tile.width);
}

async function readTile(store: ObjectStore, tile: Tile): Promise<Uint8Array> {
  const name = tilePath(tile);
  const found = await store.read(name, { from: 0, length: bundleBytesMax + 1 });
  if (found === null) throw new SyntaxError(`${name} is missing`);
  return found.body;
}
