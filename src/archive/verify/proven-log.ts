// Walks through a log from its first entry to its last, with as much proof as its objects allow:
// hashes are proven from the root down, each tile by the hash of it that stands in the tile above,
// and entries by the tiles of level 0. Where a tile is damaged or gone, what lies below it is
// asked: hashes that lead to what is proven are the right ones, whoever held them. So a single
// damage is found where it is, and leaves everything else proven. One path of tiles is in memory.

import { leafHash, type NodeHashes, rootAt, rootOf, type TreeHead } from '../merkle.ts';
import type { ArchiveReader } from '../reader.ts';
import { parseTilePath, type Tile, tileHashes, tilePath, tileWidth } from '../tiles.ts';
import { splitBundle } from './split-bundle.ts';

/** An entry as it was found. */
export interface FoundEntry {
  readonly index: number;
  /** Its hash as the tree has it; null where nothing proves one. */
  readonly leaf: Buffer | null;
  /** What stands in its place, whether or not it is the entry; null where nothing does. */
  readonly bytes: Buffer | null;
  /** True where the bytes are proven to be the entry. */
  readonly isProven: boolean;
}

/** A damage to what proves entries, told while walking: entries `index` to `through` are below it. */
export interface TreeDamage {
  readonly index: number;
  readonly through: number;
  readonly object: string | null;
  readonly what: string;
}

/** Hashes, those that are not known null. */
type Hashes = readonly (Buffer | null)[];

/** A tile's hashes as it holds them, or why not. */
interface Stored {
  readonly hashes: Hashes;
  readonly flaw: string | null;
}

/** Differences between two sources of hashes that are tried in all combinations. */
const differencesMax = 8;

/** The log under a checkpoint, on whose text it stands. */
export class ProvenLog {
  readonly #reader: ArchiveReader;
  readonly #head: TreeHead;
  readonly #found: (damage: TreeDamage) => void;
  /** By level: the tile of it that the walk stands in. */
  readonly #path = new Map<number, { readonly index: number; readonly hashes: Hashes }>();
  #bundles: readonly number[] | null = null;
  /** By level: the tiles below which there are bundles. */
  readonly #above = new Map<number, ReadonlySet<number>>();

  constructor(reader: ArchiveReader, head: TreeHead, found: (damage: TreeDamage) => void) {
    this.#reader = reader;
    this.#head = head;
    this.#found = found;
  }

  /** Hashes of subtrees left of where the walk stands, proven where they are on its way. */
  get hashes(): NodeHashes {
    return tileHashes(this.#head.size, (tile) => this.#hashesOf(tile));
  }

  /** Entries in order, a bundle at a time. */
  async *bundles(): AsyncGenerator<readonly FoundEntry[]> {
    const edge = this.#edgeTiles();
    const hashes = await this.#provenEdge(edge);
    for (const [i, tile] of edge.entries()) yield* this.#below(tile, hashes[i] ?? []);
  }

  /** Of one tile: proven hashes where the walk is, else as stored. Throws a SyntaxError. */
  async #hashesOf(tile: Tile): Promise<readonly Buffer[]> {
    const here = this.#path.get(Number(tile.level));
    const known = here?.index === tile.index ? here.hashes : null;
    const hashes = known ?? (await this.#stored(tile)).hashes;
    const whole = hashes.slice(0, tile.width).filter((hash) => hash !== null);
    if (whole.length < tile.width) throw new SyntaxError(`${tilePath(tile)} is not there`);
    return whole;
  }

  /** The tiles at the right edge, that of the highest level first. */
  #edgeTiles(): readonly Tile[] {
    const tiles: Tile[] = [];
    for (let [level, count] = [0, this.#head.size]; count > 0; level += 1) {
      const index = Math.floor(count / tileWidth);
      if (count % tileWidth > 0) tiles.unshift({ level, index, width: count % tileWidth });
      count = index;
    }
    return tiles;
  }

  /** What the tiles at the edge hold, as far as it leads to the root. */
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

  /** The hashes of a full tile whose own hash is proven; null: it is not. */
  async #provenTile(tile: Tile, proven: Buffer | null): Promise<Hashes> {
    return await this.#resolve(
      [tile],
      async (hashes) => proven !== null && rootOf(hashes).equals(proven),
      proven !== null,
    );
  }

  /**
   * Which hashes stand in tiles beside each other, judged by `isRight`. Damages are told where
   * `isJudged`: a tile below one that nothing proves is as it is.
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
    if (isJudged) this.#tell(tiles, { read, below, right });
    // What nothing proves is passed on only where two sources say the same.
    return right ?? stored.map((hash, i) => (hash && below[i]?.equals(hash) ? hash : null));
  }

  #tell(
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

  /** What a tile should hold, by what lies below it. */
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
   * Whether entries stand below a tile that nothing proves: a checkpoint that nobody has signed may
   * tell of more of them than anybody could look for. What proves it not was told above.
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
      const { bytes = null, told: reported = 0 } = entries[i] ?? {};
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

/** The indexes of all bundles that are there. */
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

/** Hashes of which each is from one of two sources, and which are right together. */
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
