// Walks through a log from its first entry to its last, with as much proof as its objects allow. Hashes are proven from
// the root down: each tile by its hash in the tile above, and entries by the tiles of level 0. If a tile is damaged or
// missing, the objects below it are used: hashes that lead to proven ones are correct, whatever their source. So damage
// is located exactly, and everything else stays proven. Memory has one path of tiles.

import { leafHash, type NodeHashes, rootAt, rootOf, type TreeHead } from '../merkle.ts';
import type { ArchiveReader } from '../reader.ts';
import { parseTilePath, type Tile, tileHashes, tilePath, tileWidth } from '../tiles.ts';
import { splitBundle } from './split-bundle.ts';

/** An entry as found. */
export interface FoundEntry {
  readonly index: number;
  /** Its hash by the tree; null: nothing proves one. */
  readonly leaf: Buffer | null;
  /** The stored bytes, which may differ from the entry; null: none. */
  readonly bytes: Buffer | null;
  /** True if the bytes are proven to be the entry. */
  readonly isProven: boolean;
}

/** Damage to the proof of entries `index` to `through`, reported during the walk. */
export interface TreeDamage {
  readonly index: number;
  readonly through: number;
  readonly object: string | null;
  readonly what: string;
}

/** Hashes; unknown ones are null. */
type Hashes = readonly (Buffer | null)[];

/** A tile's stored hashes, and its flaw. */
interface Stored {
  readonly hashes: Hashes;
  readonly flaw: string | null;
}

/** Limit of differences between two sources of hashes that are tried in all combinations. */
const differencesMax = 8;

/** The log under a checkpoint, whose text is not trusted. */
export class ProvenLog {
  readonly #reader: ArchiveReader;
  readonly #head: TreeHead;
  readonly #found: (damage: TreeDamage) => void;
  /** By level: the tile at the walk's position. */
  readonly #path = new Map<number, { readonly index: number; readonly hashes: Hashes }>();
  #bundles: readonly number[] | null = null;
  /** By level: the tiles with bundles below them. */
  readonly #above = new Map<number, ReadonlySet<number>>();

  constructor(reader: ArchiveReader, head: TreeHead, found: (damage: TreeDamage) => void) {
    this.#reader = reader;
    this.#head = head;
    this.#found = found;
  }

  /** Hashes of subtrees to the left of the walk's position, proven if they are on its path. */
  get hashes(): NodeHashes {
    return tileHashes(this.#head.size, (tile) => this.#hashesOf(tile));
  }

  /** Entries in order, a bundle at a time. */
  async *bundles(): AsyncGenerator<readonly FoundEntry[]> {
    const edge = this.#edgeTiles();
    const hashes = await this.#provenEdge(edge);
    for (const [i, tile] of edge.entries()) yield* this.#below(tile, hashes[i] ?? []);
  }

  /** Hashes of one tile: proven ones at the walk's position, else as stored. Throws a SyntaxError. */
  async #hashesOf(tile: Tile): Promise<readonly Buffer[]> {
    const here = this.#path.get(Number(tile.level));
    const known = here?.index === tile.index ? here.hashes : null;
    const hashes = known ?? (await this.#stored(tile)).hashes;
    const whole = hashes.slice(0, tile.width).filter((hash) => hash !== null);
    if (whole.length < tile.width) throw new SyntaxError(`${tilePath(tile)} is not there`);
    return whole;
  }

  /** The tiles at the right edge, the highest level first. */
  #edgeTiles(): readonly Tile[] {
    const tiles: Tile[] = [];
    for (let [level, count] = [0, this.#head.size]; count > 0; level += 1) {
      const index = Math.floor(count / tileWidth);
      if (count % tileWidth > 0) tiles.unshift({ level, index, width: count % tileWidth });
      count = index;
    }
    return tiles;
  }

  /** The hashes of the edge tiles, as far as they lead to the root. */
  async #provenEdge(edge: readonly Tile[]): Promise<readonly Hashes[]> {
    const { size, root } = this.#head;
    const cut = (all: Hashes) => {
      let at = 0;
      return edge.map(({ width }) => {
        at += width;
        return all.slice(at - width, at);
      });
    };
    const isRoot = async (all: readonly Buffer[]) => {
      const parts = cut(all);
      const read = async (tile: Tile) =>
        (parts[edge.findIndex(({ level }) => level === tile.level)] ?? []) as readonly Buffer[];
      return (await rootAt(size, tileHashes(size, read))).equals(root);
    };
    return cut(await this.#resolve(edge, isRoot));
  }

  /** The hashes of a full tile with a proven hash; null: the hash is not proven. */
  async #provenTile(tile: Tile, proven: Buffer | null): Promise<Hashes> {
    return await this.#resolve(
      [tile],
      async (hashes) => proven !== null && rootOf(hashes).equals(proven),
      proven !== null,
    );
  }

  /**
   * The correct hashes of neighbouring tiles, judged by `isRight`. Damage is reported if `isJudged`: a tile below an
   * unproven one is left as it is.
   */
  async #resolve(
    tiles: readonly Tile[],
    isRight: (hashes: readonly Buffer[]) => Promise<boolean>,
    isJudged = true,
  ): Promise<Hashes> {
    const read = await Promise.all(tiles.map((tile) => this.#stored(tile)));
    const stored = read.flatMap(({ hashes }) => hashes);
    if (isWhole(stored) && (await isRight(stored))) return stored;
    const below = (await Promise.all(tiles.map((tile) => this.#madeOfBelow(tile)))).flat();
    const right = await firstRight(stored, below, isRight);
    if (isJudged) this.#report(tiles, { read, below, right });
    // Unproven hashes are passed on only if two sources agree.
    return right ?? stored.map((hash, i) => (hash && below[i]?.equals(hash) ? hash : null));
  }

  #report(
    tiles: readonly Tile[],
    { read, below, right }: { read: readonly Stored[]; below: Hashes; right: Hashes | null },
  ): void {
    let from = 0;
    for (const [i, tile] of tiles.entries()) {
      const { hashes = [], flaw = null } = read[i] ?? {};
      const part = right?.slice(from, from + tile.width) ?? null;
      const lower = below.slice(from, from + tile.width);
      from += tile.width;
      const object = tilePath(tile);
      const place = (first: number, last: number) => {
        const unit = tileWidth ** Number(tile.level);
        const start = (tile.index * tileWidth + first) * unit;
        return { index: start, through: start + (last - first + 1) * unit - 1, object };
      };
      if (flaw !== null) this.#found({ ...place(0, tile.width - 1), what: flaw });
      else if (part === null) {
        const agree = lower.every((hash, j) => hash && hashes[j]?.equals(hash));
        const what = agree
          ? 'the tile and its entries agree with each other, and do not lead to the signed root'
          : 'neither the tile nor its entries lead to the signed root';
        this.#found({ ...place(0, tile.width - 1), what });
      } else {
        for (const [j, hash] of part.entries()) {
          if (hash && hashes[j]?.equals(hash)) continue;
          this.#found({
            ...place(j, j),
            what: 'a hash in the tile is not that of the signed tree',
          });
        }
      }
    }
  }

  async #stored(tile: Tile): Promise<Stored> {
    const nothing = Array.from({ length: tile.width }, () => null);
    try {
      const hashes = await this.#reader.tile(tile);
      if (hashes !== null) return { hashes, flaw: null };
      return { hashes: nothing, flaw: 'the tile is missing' };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return { hashes: nothing, flaw: error.message };
    }
  }

  /** The hashes that a tile should have, computed from the objects below. */
  async #madeOfBelow(tile: Tile): Promise<Hashes> {
    if (tile.level === 0) {
      const found = await this.#reader.bundle(tile.index, tile.width);
      const entries = found === null ? [] : splitBundle(found.bytes, []);
      return Array.from({ length: tile.width }, (_, i) => {
        const entry = entries[i];
        return entry === undefined ? null : leafHash(entry.bytes);
      });
    }
    const made: (Buffer | null)[] = [];
    for (let i = 0; i < tile.width; i += 1) {
      const child = { level: Number(tile.level) - 1, index: tile.index * tileWidth + i };
      const { hashes } = await this.#stored({ ...child, width: tileWidth });
      made.push(isWhole(hashes) ? rootOf(hashes) : null);
    }
    return made;
  }

  async *#below(tile: Tile, hashes: Hashes): AsyncGenerator<readonly FoundEntry[]> {
    this.#path.set(Number(tile.level), { index: tile.index, hashes });
    if (tile.level === 0) {
      yield await this.#entries(tile, hashes);
      return;
    }
    for (const [i, hash] of hashes.entries()) {
      const index = tile.index * tileWidth + i;
      const child: Tile = { level: Number(tile.level) - 1, index, width: tileWidth };
      if (hash === null && !(await this.#isAnythingBelow(child))) continue;
      yield* this.#below(child, await this.#provenTile(child, hash));
    }
  }

  /**
   * Whether entries exist below an unproven tile: an unsigned checkpoint may claim more entries than could be searched.
   * The missing proof was reported above.
   */
  async #isAnythingBelow({ level, index }: Tile): Promise<boolean> {
    let tiles = this.#above.get(Number(level));
    if (tiles === undefined) {
      const count = tileWidth ** Number(level);
      this.#bundles ??= await bundlesIn(this.#reader);
      tiles = new Set(this.#bundles.map((bundle) => Math.floor(bundle / count)));
      this.#above.set(Number(level), tiles);
    }
    return tiles.has(index);
  }

  async #entries({ index, width }: Tile, leaves: Hashes): Promise<readonly FoundEntry[]> {
    const found = await this.#reader.bundle(index, width);
    const start = index * tileWidth;
    if (found === null) {
      const object = tilePath({ level: 'entries', index, width });
      const through = start + width - 1;
      this.#found({ index: start, through, object, what: 'the bundle of entries is missing' });
    }
    const entries = found === null ? [] : splitBundle(found.bytes, leaves);
    if (found !== null && entries.length !== found.width) {
      const object = tilePath({ level: 'entries', index, width: found.width });
      const what = `the bundle has ${entries.length} entries, not ${found.width}`;
      this.#found({ index: start, through: start + width - 1, object, what });
    }
    return leaves.map((leaf, i) => {
      const { bytes = null, length: reported = 0 } = entries[i] ?? {};
      const isProven = bytes !== null && leaf !== null && leafHash(bytes).equals(leaf);
      if (isProven && bytes.length !== reported) {
        const object = tilePath({ level: 'entries', index, width });
        const what = `the length of the entry is ${bytes.length}, not ${reported} as before it`;
        this.#found({ index: start + i, through: start + i, object, what });
      }
      return { index: start + i, leaf, bytes, isProven };
    });
  }
}

/** The indices of all stored bundles. */
async function bundlesIn({ store }: ArchiveReader): Promise<readonly number[]> {
  const bundles = new Set<number>();
  for await (const { name } of store.list('tile/entries/')) {
    const tile = parseTilePath(name);
    if (tile !== null) bundles.add(tile.index);
  }
  return [...bundles];
}

function isWhole(hashes: Hashes): hashes is readonly Buffer[] {
  return !hashes.includes(null);
}

/** A combination of hashes from two sources that is correct. */
async function firstRight(
  one: Hashes,
  other: Hashes,
  isRight: (hashes: readonly Buffer[]) => Promise<boolean>,
): Promise<readonly Buffer[] | null> {
  const known = one.map((hash, i) => hash ?? other[i] ?? null);
  const differences = known.flatMap((hash, i) =>
    hash && other[i] && !hash.equals(other[i]) ? [i] : [],
  );
  if (!isWhole(known) || differences.length > differencesMax) return null;
  for (let choice = 0; choice < 2 ** differences.length; choice += 1) {
    const tried = [...known];
    for (const [bit, i] of differences.entries()) {
      if ((choice >> bit) % 2 === 1) tried[i] = other[i] ?? tried[i] ?? Buffer.alloc(0);
    }
    if (await isRight(tried)) return tried;
  }
  return null;
}
