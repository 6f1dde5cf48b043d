// Reads the objects of an archive by kind, parsed but not trusted. The caller decides the meaning of a missing or
// malformed object; an unreachable store is an ExportError and says nothing about the archive. Invariants: this file
// writes nothing; no name in an entry leads to an object of another kind.

import type { ObjectRange, ObjectStore } from '../objects/index.ts';
import { hashBytes, type TreeHead } from './merkle.ts';
import type { Verifier } from './note.ts';
import { readSmall } from './small-objects.ts';
import {
  bundleBytesMax,
  decodeTile,
  parseTilePath,
  type Tile,
  tilePath,
  tileWidth,
} from './tiles.ts';

/** Patterns of object names in entries, by kind. */
const namePatterns = {
  segment: /^segments\/\d{4}\/\d\d\/\d\d\/\d{20}\.zst$/,
  checkpoint: /^checkpoints\/\d{4}\/\d\d\/\d\d\/\d{20}\.note$/,
  anchor: /^checkpoints\/\d{4}\/\d\d\/\d\d\/\d{20}\.(tsr|cosig)$/,
  cut: /^lake\/cuts\/\d{4}\/\d\d\/\d\d\/\d{13}-\d{16}\.cut$/,
  lake: /^lake\/\d+\/(?:[^/]+\/)+[^/]+\.parquet$/,
  manifest: /^manifests\/(?:[^/.][^/]*\/)+\d{4}-\d\d-\d\d\.json$/,
} as const;

/** Kinds whose objects have only a few lines. */
const small: ReadonlySet<string> = new Set(['checkpoint', 'anchor', 'manifest']);

const wholeRange: ObjectRange = { from: 0, length: bundleBytesMax + 1 };

/** One byte more than a tile has. */
const tileRange: ObjectRange = { from: 0, length: tileWidth * hashBytes + 1 };
const bundleRange: ObjectRange = { from: 0, length: 1024 * 1024 };

/** True if the bytes contain as many entries as a bundle can. */
function hasAllEntries(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  for (let count = 0; count < tileWidth; count += 1) {
    if (at + 2 > bytes.length) return false;
    at += 2 + view.getUint16(at);
  }
  return at <= bytes.length;
}

/** A checkpoint that a caller has read and checked once. */
export interface SignedHead extends TreeHead {
  readonly origin: string;
  /** The signed note. */
  readonly note: Uint8Array;
  /** The keys, one of which has signed it, under the log's name; empty: no key is known, and none was checked. */
  readonly keys: readonly Verifier[];
}

/** The kinds of objects that an entry names. */
export type NamedObject = keyof typeof namePatterns;

/** Reads the objects of an archive. */
export class ArchiveReader {
  readonly store: ObjectStore;
  /** The tree against which entries are proven (proven-reader.ts); null: entries are returned without proof. */
  readonly head: TreeHead | null = null;
  /** Its checkpoint as checked by the caller: the store's may be another one by now; null: the caller has checked none. */
  readonly signed: SignedHead | null = null;

  constructor(store: ObjectStore) {
    this.store = store;
  }

  /**
   * An object's bytes, or the existing part of a range; null: it does not exist. Without a range, the read stops at one
   * byte more than the longest valid object has, which shows that it is invalid.
   */
  async read(name: string, range: ObjectRange = wholeRange): Promise<Uint8Array | null> {
    return (await this.store.read(name, range))?.body ?? null;
  }

  /** An object that an entry names; null: it does not exist. Throws a SyntaxError for a name of another kind. */
  async named(kind: NamedObject, name: string, range?: ObjectRange): Promise<Uint8Array | null> {
    if (!namePatterns[kind].test(name)) throw new SyntaxError(`no ${kind} has that name`);
    return small.has(kind) ? await this.small(name) : await this.read(name, range);
  }

  /** An object of a few lines; null: it does not exist; empty: it is longer than any valid one. */
  async small(name: string): Promise<Uint8Array | null> {
    return (await readSmall(this.store, name))?.body ?? null;
  }

  /**
   * The hashes of a tile, or of a wider one that has replaced it; null: none. Throws a SyntaxError for a wrong length.
   */
  async tile(tile: Tile): Promise<readonly Buffer[] | null> {
    const found = await this.#widest(tile);
    if (found === null) return null;
    return decodeTile(found.bytes, found.width).slice(0, tile.width);
  }

  /** The bytes and number of entries of a bundle, or of a wider one that has replaced it. */
  async bundle(index: number, width: number) {
    return await this.#widest({ level: 'entries', index, width });
  }

  /** A partial tile may be deleted once a wider one exists. */
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

  /** All bytes of a tile or bundle; of one that is too long, enough to show that. */
  async #wholeTile(tile: Tile): Promise<Uint8Array | null> {
    const name = tilePath(tile);
    if (tile.level !== 'entries') return await this.read(name, tileRange);
    const head = await this.read(name, bundleRange);
    // Few bundles are that long, but planted objects may be much longer.
    if (head === null || head.length < bundleRange.length || hasAllEntries(head)) return head;
    return await this.read(name);
  }

  /** The stored widths of a tile or bundle. */
  async *widthsOf({ level, index }: Pick<Tile, 'level' | 'index'>): AsyncGenerator<number> {
    for await (const { name } of this.store.list(tilePath({ level, index, width: tileWidth }))) {
      const tile = parseTilePath(name);
      if (tile?.index === index) yield tile.width;
    }
  }
}
