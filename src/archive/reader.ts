// An archive as it is read: its objects by what they are, taken apart but not believed. Whoever
// reads decides what an object that is missing or in another form means to it; a store that cannot
// be reached is an ExportError and means nothing about the archive. What must stay true: nothing
// here writes, and no name that an entry gives leads to an object of another kind.

import type { ObjectRange, ObjectStore } from '../objects/store.ts';
import { hashBytes, type TreeHead } from './merkle.ts';
import { readSmall } from './small-objects.ts';
import {
  bundleBytesMax,
  decodeTile,
  parseTilePath,
  type Tile,
  tilePath,
  tileWidth,
} from './tiles.ts';

/** Names of objects that an entry may give, by what they are. */
const namePatterns = {
  segment: /^segments\/\d{4}\/\d\d\/\d\d\/\d{20}\.zst$/,
  checkpoint: /^checkpoints\/\d{4}\/\d\d\/\d\d\/\d{20}\.note$/,
  anchor: /^checkpoints\/\d{4}\/\d\d\/\d\d\/\d{20}\.(tsr|cosig)$/,
  cut: /^lake\/cuts\/\d{4}\/\d\d\/\d\d\/\d{13}-\d{16}\.cut$/,
  lake: /^lake\/\d+\/(?:[^/]+\/)+[^/]+\.parquet$/,
  manifest: /^manifests\/(?:[^/.][^/]*\/)+\d{4}-\d\d-\d\d\.json$/,
} as const;

/** Of these every one is of a few lines. */
const small: ReadonlySet<string> = new Set(['checkpoint', 'anchor', 'manifest']);

const wholeRange: ObjectRange = { from: 0, length: bundleBytesMax + 1 };

/** A byte more than a tile has. */
const tileRange: ObjectRange = { from: 0, length: tileWidth * hashBytes + 1 };
const bundleRange: ObjectRange = { from: 0, length: 1024 * 1024 };

/** True where bytes have as many entries as a bundle can. */
function hasAllEntries(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  for (let count = 0; count < tileWidth; count += 1) {
    if (at + 2 > bytes.length) return false;
    at += 2 + view.getUint16(at);
  }
  return at <= bytes.length;
}

/** What an entry names an object as. */
export type NamedObject = keyof typeof namePatterns;

/** Reads the objects of an archive. */
export class ArchiveReader {
  readonly store: ObjectStore;
  /** The tree that every entry is proven against (proven-reader.ts); null: entries are returned without proof. */
  readonly head: TreeHead | null = null;

  constructor(store: ObjectStore) {
    this.store = store;
  }

  /**
   * An object's bytes, or so much of a range as there is; null where it is not there. Without a
   * range no more is read than the longest object has that is read whole, and that one more byte
   * shows to be none.
   */
  async read(name: string, range: ObjectRange = wholeRange): Promise<Uint8Array | null> {
    return (await this.store.read(name, range))?.body ?? null;
  }

  /** An object that an entry names; null where it is not there. Throws a SyntaxError for a name of another kind. */
  async named(kind: NamedObject, name: string, range?: ObjectRange): Promise<Uint8Array | null> {
    if (!namePatterns[kind].test(name)) throw new SyntaxError(`no ${kind} has that name`);
    return small.has(kind) ? await this.small(name) : await this.read(name, range);
  }

  /** An object of a few lines; null where it is not there, no bytes where it is longer than any can be. */
  async small(name: string): Promise<Uint8Array | null> {
    return (await readSmall(this.store, name))?.body ?? null;
  }

  /**
   * The hashes of a tile, or of a wider one that has taken its place; null where there is none.
   * Throws a SyntaxError for one of a wrong length.
   */
  async tile(tile: Tile): Promise<readonly Buffer[] | null> {
    const found = await this.#widest(tile);
    if (found === null) return null;
    return decodeTile(found.bytes, found.width).slice(0, tile.width);
  }

  /** A bundle's bytes and how many entries they hold: of it, or of a wider one in its place. */
  async bundle(index: number, width: number) {
    return await this.#widest({ level: 'entries', index, width });
  }

  /** Partial tiles may go once a wider one is there. */
  async #widest(
    tile: Tile,
  ): Promise<{ readonly bytes: Uint8Array; readonly width: number } | null> {
    const full = { ...tile, width: tileWidth };
    for (const one of tile.width === tileWidth ? [full] : [tile, full]) {
      const bytes = await this.#wholeTile(one);
      if (bytes !== null) return { bytes, width: one.width };
    }
    for await (const width of this.widthsOf(tile)) {
      const bytes = width > tile.width ? await this.#wholeTile({ ...tile, width }) : null;
      if (bytes !== null) return { bytes, width };
    }
    return null;
  }

  /** All bytes of a tile or bundle; of one that is too long so many that this shows. */
  async #wholeTile(tile: Tile): Promise<Uint8Array | null> {
    const name = tilePath(tile);
    if (tile.level !== 'entries') return await this.read(name, tileRange);
    const head = await this.read(name, bundleRange);
    // Few bundles are as long, and what others put there may be much longer.
    if (head === null || head.length < bundleRange.length || hasAllEntries(head)) return head;
    return await this.read(name);
  }

  /** The widths in which a tile or bundle is there. */
  async *widthsOf({ level, index }: Pick<Tile, 'level' | 'index'>): AsyncGenerator<number> {
    for await (const { name } of this.store.list(tilePath({ level, index, width: tileWidth }))) {
      const tile = parseTilePath(name);
      if (tile?.index === index) yield tile.width;
    }
  }
}
