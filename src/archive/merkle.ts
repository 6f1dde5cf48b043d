// The Merkle tree of RFC 6962, section 2.1: leaf and node hashes, roots, and the two proofs: an entry is in a tree
// (inclusion), and one tree extends another (consistency). Pure: the caller supplies node hashes (from tiles or
// memory). Invariant: every value is exactly that of the RFC, because independent tools recompute it.

import { hash } from 'node:crypto';

/** Bytes of a hash: SHA-256. */
export const hashBytes = 32;

/** Root of the tree without entries. */
export const emptyRoot: Buffer = hash('sha256', '', 'buffer');

const node = Buffer.alloc(1 + 2 * hashBytes);
node[0] = 1;

/** A leaf's hash: SHA-256(0x00 || entry). */
export function leafHash(entry: Uint8Array): Buffer {
  const input = Buffer.allocUnsafe(1 + entry.length);
  input[0] = 0;
  input.set(entry, 1);
  return hash('sha256', input, 'buffer');
}

/** A node's hash: SHA-256(0x01 || left || right). */
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  node.set(left, 1);
  node.set(right, 1 + hashBytes);
  return hash('sha256', node, 'buffer');
}

/** The largest power of two that is smaller than `size`, which is at least 2. */
function splitOf(size: number): number {
  let k = 1;
  while (k * 2 < size) k *= 2;
  return k;
}

/** A complete subtree: the hash over `2 ** level` leaves, the `index`th of that level. */
export interface NodeId {
  readonly level: number;
  readonly index: number;
}

/** Returns the hash of a complete subtree. */
export type NodeHashes = (id: NodeId) => Promise<Uint8Array>;

/** Leaves `from` up to `to` that form a subtree, complete except at its right edge. */
interface Subtree {
  readonly from: number;
  readonly to: number;
}

/** The complete subtrees of a subtree, from the left. */
function wholeSubtrees({ from, to }: Subtree): readonly NodeId[] {
  const ids: NodeId[] = [];
  for (let at = from; at < to; ) {
    let [level, width] = [0, 1];
    while (at % (width * 2) === 0 && at + width * 2 <= to) [level, width] = [level + 1, width * 2];
    ids.push({ level, index: at / width });
    at += width;
  }
  return ids;
}

/** Joins hashes of complete subtrees, larger ones first, from the right, as RFC 6962 does. */
function joined(hashes: readonly Uint8Array[]): Buffer {
  const [last = emptyRoot, ...others] = hashes.toReversed();
  return Buffer.from(others.reduce((right, left) => nodeHash(left, right), last));
}

async function subtreeHash(subtree: Subtree, hashes: NodeHashes): Promise<Buffer> {
  return joined(await Promise.all(wholeSubtrees(subtree).map(hashes)));
}

/** The root of the first `size` leaves. */
export function rootAt(size: number, hashes: NodeHashes): Promise<Buffer> {
  return subtreeHash({ from: 0, to: size }, hashes);
}

/** The proof that leaf `index` is in the tree of `size` leaves, from the leaf to the root. */
export function inclusionProof(
  index: number,
  size: number,
  hashes: NodeHashes,
): Promise<readonly Buffer[]> {
  const path: Subtree[] = [];
  for (let [from, to] = [0, size]; to - from > 1; ) {
    const middle = from + splitOf(to - from);
    path.push(index < middle ? { from: middle, to } : { from, to: middle });
    if (index < middle) to = middle;
    else from = middle;
  }
  return Promise.all(path.toReversed().map((subtree) => subtreeHash(subtree, hashes)));
}

/** The proof that the tree of `size` leaves extends the tree of `older` leaves. */
export function consistencyProof(
  older: number,
  size: number,
  hashes: NodeHashes,
): Promise<readonly Buffer[]> {
  const path: Subtree[] = [];
  if (older > 0) {
    let [from, to] = [0, size];
    while (older < to) {
      const middle = from + splitOf(to - from);
      path.push(older <= middle ? { from: middle, to } : { from, to: middle });
      if (older <= middle) to = middle;
      else from = middle;
    }
    if (from > 0) path.push({ from, to });
  }
  return Promise.all(path.toReversed().map((subtree) => subtreeHash(subtree, hashes)));
}

/** The root that a proof of inclusion yields for a leaf; null: it has the wrong number of hashes. */
export function rootOfInclusion(
  {
    index,
    size,
    leaf,
  }: { readonly index: number; readonly size: number; readonly leaf: Uint8Array },
  proof: readonly Uint8Array[],
): Uint8Array | null {
  if (!(index < size)) return null;
  let [at, last, root] = [index, size - 1, leaf];
  for (const hash of proof) {
    if (last === 0 || hash.length !== hashBytes) return null;
    if (at % 2 === 1 || at === last) {
      root = nodeHash(hash, root);
      while (at % 2 === 0 && at > 0) [at, last] = [at / 2, Math.floor(last / 2)];
    } else {
      root = nodeHash(root, hash);
    }
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 ? root : null;
}

/** One tree, as in a checkpoint. */
export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/** The root over leaves in memory. */
export function rootOf(leaves: readonly Buffer[]): Buffer {
  let row = leaves;
  while (row.length > 1) {
    const above: Buffer[] = [];
    for (let i = 0; i < row.length; i += 2) {
      const [left = emptyRoot, right] = [row[i], row[i + 1]];
      above.push(right === undefined ? left : nodeHash(left, right));
    }
    row = above;
  }
  return row[0] ?? emptyRoot;
}
