// Reads the entries of a log proven against its signed tree, for a writer that acts on them, because others can change
// the store at any time. A writer passes the tree's edge from memory, which is then not read. Invariant: no tile or
// entry is returned that does not lead to the given root; a wrong bundle or tile is a SyntaxError that names the
// object.

import type { ObjectStore } from '../objects/index.ts';
import type { TreeEdge } from './growing-tree.ts';
import { leafHash, type NodeHashes, rootAt, rootOf, type TreeHead } from './merkle.ts';
import { ArchiveReader, type SignedHead } from './reader.ts';
import { decodeBundle, encodeBundle, type Tile, tileHashes, tilePath, tileWidth } from './tiles.ts';

type Hashes = readonly Buffer[];

/** Reads an archive up to a root that the caller trusts. */
export class ProvenReader extends ArchiveReader {
  override readonly head: TreeHead;
  override readonly signed: SignedHead | null;
  /** By level: the full tile that was proven last. */
  readonly #full = new Map<number, { readonly index: number; readonly hashes: Hashes }>();
  #edge: Promise<ReadonlyMap<number, Hashes>> | null = null;
  /** The entries of the partial bundle, if the caller has them. */
  readonly #entries: readonly Uint8Array[];

  /** `edge`: the tree's edge, if the caller has it; else it is read and proven. */
  constructor(store: ObjectStore, head: TreeHead | SignedHead, edge?: TreeEdge) {
    super(store);
    this.head = head;
    this.signed = 'note' in head ? head : null;
    if (edge !== undefined) this.#edge = Promise.resolve(edge.tiles);
    this.#entries = edge?.entries ?? [];
  }

  /** Proven hashes of subtrees. */
  get hashes(): NodeHashes {
    return tileHashes(this.head.size, (tile) => this.tile(tile));
  }

  /** Throws a SyntaxError if the tile is missing, or its hashes do not lead to the root. */
  override async tile({ level, index, width }: Tile): Promise<Hashes> {
    return (await this.#proven(Number(level), index)).slice(0, width);
  }

  /** The bundle with exactly these entries. Throws a SyntaxError if an entry is not that of the tree. */
  override async bundle(index: number, width: number) {
    if (index * tileWidth + this.#entries.length === this.head.size && this.#entries.length > 0) {
      return { bytes: encodeBundle(this.#entries.slice(0, width)), width };
    }
    const leaves = await this.tile({ level: 0, index, width });
    const found = await super.bundle(index, width);
    const name = tilePath({ level: 'entries', index, width });
    if (found === null) throw new SyntaxError(`${name} is missing`);
    const entries = decodeBundle(found.bytes, found.width).slice(0, width);
    const wrong = leaves.findIndex((leaf, i) => !leaf.equals(leafHash(entries[i] ?? leaf)));
    if (wrong < 0) return { bytes: encodeBundle(entries), width };
    throw new SyntaxError(
      `${name}: entry ${index * tileWidth + wrong} is not that of the signed tree`,
    );
  }

  async #proven(level: number, index: number): Promise<Hashes> {
    const width = this.#widthOf(level, index);
    if (width <= 0) throw new SyntaxError(`the signed tree has no tile ${index} of level ${level}`);
    if (width < tileWidth) return (await this.#provenEdge()).get(level) ?? [];
    const known = this.#full.get(level);
    if (known?.index === index) return known.hashes;
    const above = await this.#proven(level + 1, Math.floor(index / tileWidth));
    const hashes = await this.#read({ level, index, width });
    if (above[index % tileWidth]?.equals(rootOf(hashes)) !== true)
      throw forged({ level, index, width });
    this.#full.set(level, { index, hashes });
    return hashes;
  }

  /** The partial tiles by level; together they form the root. */
  async #provenEdge(): Promise<ReadonlyMap<number, Hashes>> {
    this.#edge ??= this.#readEdge();
    return await this.#edge;
  }

  async #readEdge(): Promise<ReadonlyMap<number, Hashes>> {
    const { size, root } = this.head;
    const edge = new Map<number, Hashes>();
    for (let [level, count] = [0, size]; count > 0; level += 1) {
      const [index, width] = [Math.floor(count / tileWidth), count % tileWidth];
      if (width > 0) edge.set(level, await this.#read({ level, index, width }));
      count = index;
    }
    const hashes = tileHashes(size, async ({ level }) => edge.get(Number(level)) ?? []);
    if ((await rootAt(size, hashes)).equals(root)) return edge;
    throw new SyntaxError(
      `the tiles at the edge of the tree do not lead to the signed root of size ${size}`,
    );
  }

  async #read(tile: Tile): Promise<Hashes> {
    const hashes = await super.tile(tile);
    if (hashes !== null) return hashes;
    throw new SyntaxError(`${tilePath(tile)} is missing`);
  }

  #widthOf(level: number, index: number): number {
    const count = Math.floor(this.head.size / tileWidth ** level);
    return Math.min(tileWidth, count - index * tileWidth);
  }
}

function forged(tile: Tile): SyntaxError {
  return new SyntaxError(`${tilePath(tile)} does not lead to the signed root`);
}
