// The tree against the vectors of the Certificate Transparency reference, against a naive tree that is written from RFC
// 6962 as it stands, and its proofs over random sizes.

import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  consistencyProof,
  emptyRoot,
  hashBytes,
  inclusionProof,
  leafHash,
  type NodeHashes,
  rootAt,
  rootOf,
  rootOfInclusion,
  type TreeHead,
} from '../../src/archive/merkle.ts';
import { decodeTile, tileHashes, tilesBetween, tileWidth } from '../../src/archive/tiles.ts';

const sha256 = (...parts: readonly Uint8Array[]) => hash('sha256', Buffer.concat(parts), 'buffer');

/** MTH of RFC 6962, 2.1. */
function naiveRoot(entries: readonly Uint8Array[]): Buffer {
  const [only] = entries;
  if (only === undefined) return sha256();
  if (entries.length === 1) return sha256(Buffer.of(0), only);
  let k = 1;
  while (k * 2 < entries.length) k *= 2;
  return sha256(Buffer.of(1), naiveRoot(entries.slice(0, k)), naiveRoot(entries.slice(k)));
}

/** PATH of RFC 6962, 2.1.1. */
function naivePath(m: number, entries: readonly Uint8Array[]): readonly Buffer[] {
  if (entries.length <= 1) return [];
  let k = 1;
  while (k * 2 < entries.length) k *= 2;
  const [left, right] = [entries.slice(0, k), entries.slice(k)];
  return m < k
    ? [...naivePath(m, left), naiveRoot(right)]
    : [...naivePath(m - k, right), naiveRoot(left)];
}

/** SUBPROOF of RFC 6962, 2.1.2. */
function naiveProof(m: number, entries: readonly Uint8Array[], whole = true): readonly Buffer[] {
  if (m === entries.length) return whole ? [] : [naiveRoot(entries)];
  let k = 1;
  while (k * 2 < entries.length) k *= 2;
  const [left, right] = [entries.slice(0, k), entries.slice(k)];
  return m <= k
    ? [...naiveProof(m, left, whole), naiveRoot(right)]
    : [...naiveProof(m - k, right, false), naiveRoot(left)];
}

const entriesOf = (size: number) => Array.from({ length: size }, (_, i) => Buffer.from(`e${i}`));

/** Hashes of whole subtrees, made naively. */
const hashesOf =
  (entries: readonly Uint8Array[]): NodeHashes =>
  async ({ level, index }) =>
    naiveRoot(entries.slice(index * 2 ** level, (index + 1) * 2 ** level));

describe('vectors of the Certificate Transparency reference', () => {
  const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657'].concat(
    '606162636465666768696a6b6c6d6e6f',
  );
  const roots = [
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
  ];

  test.each(roots.map((root, i) => [i + 1, root] as const))('tree of %i', (size, root) => {
    const leaves = inputs.slice(0, size).map((hex) => leafHash(Buffer.from(hex, 'hex')));

    expect(rootOf(leaves).toString('hex')).toBe(root);
  });

  test('the empty tree', () => {
    expect(emptyRoot.toString('hex')).toBe(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    );
  });
});

test('a tree of any size has the root that a naive tree has', () => {
  for (const size of [0, 1, 2, 3, 7, 8, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 1100]) {
    const entries = entriesOf(size);
    expect(rootOf(entries.map(leafHash))).toEqual(naiveRoot(entries));
  }
});

test('proofs are those of the RFC, and prove their claim', async () => {
  const sizes = fc.integer({ min: 1, max: 200 });
  const pair = sizes.chain((size) =>
    fc.tuple(fc.constant(size), fc.integer({ min: 0, max: size })),
  );
  await fc.assert(
    fc.asyncProperty(pair, async ([size, at]) => {
      const entries = entriesOf(size);
      const hashes = hashesOf(entries);
      const root = naiveRoot(entries);
      const older = { size: at, root: naiveRoot(entries.slice(0, at)) };

      const consistency = await consistencyProof(at, size, hashes);

      expect(await rootAt(size, hashes)).toEqual(root);
      expect(consistency).toEqual(at === 0 ? [] : naiveProof(at, entries));
      expect(isConsistent(older, { size, root }, consistency)).toBe(true);
      expect(isConsistent({ ...older, root: sha256(root) }, { size, root }, consistency)).toBe(
        false,
      );
      if (at < size) {
        const leaf = leafHash(Buffer.from(`e${at}`));
        const inclusion = await inclusionProof(at, size, hashes);
        expect(inclusion).toEqual(naivePath(at, entries));
        expect(rootOfInclusion({ index: at, size, leaf }, inclusion)).toEqual(root);
        const elsewhere = { index: at, size, leaf: sha256(leaf) };
        expect(rootOfInclusion(elsewhere, inclusion)).not.toEqual(root);
      }
    }),
    { numRuns: 300 },
  );
});

test('a proof with a bit changed, one hash more or one less shows nothing', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 100 }),
      fc.nat(),
      fc.nat(),
      async (size, pick, bit) => {
        const entries = entriesOf(size);
        const newer = { size, root: naiveRoot(entries) };
        const at = 1 + (pick % (size - 1));
        const older = { size: at, root: naiveRoot(entries.slice(0, at)) };
        const leaf = leafHash(Buffer.from(`e${at}`));
        const inclusion = await inclusionProof(at, size, hashesOf(entries));
        const consistency = await consistencyProof(at, size, hashesOf(entries));
        const shows = (proof: readonly Buffer[]) =>
          rootOfInclusion({ index: at, size, leaf }, proof)?.toString() === newer.root.toString();

        for (const bad of spoiled(inclusion, bit)) expect(shows(bad)).toBe(false);
        for (const bad of spoiled(consistency, bit)) {
          expect(isConsistent(older, newer, bad)).toBe(false);
        }
      },
    ),
    { numRuns: 200 },
  );
});

function spoiled(proof: readonly Buffer[], bit: number): readonly (readonly Buffer[])[] {
  const at = bit % Math.max(1, proof.length);
  const flipped = proof.map((hash, i) => {
    const copy = Buffer.from(hash);
    if (i === at) copy[bit % 32] = (copy[bit % 32] ?? 0) ^ (1 << (bit % 8));
    return copy;
  });
  const longer = [...proof, Buffer.alloc(32, 7)];
  return [...(proof.length > 0 ? [flipped, proof.slice(0, -1)] : []), longer];
}

test('tiles give the hashes of every whole subtree that proofs need', async () => {
  for (const size of [1, 255, 256, 257, 700, 66_000]) {
    const leaves = Array.from({ length: size }, (_, i) => sha256(Buffer.from(String(i))));
    const rows: Buffer[][] = [leaves];
    for (let row: Buffer[] = leaves; row.length >= tileWidth; ) {
      row = Array.from({ length: Math.floor(row.length / tileWidth) }, (_, i) =>
        rootOf(row.slice(i * tileWidth, (i + 1) * tileWidth)),
      );
      rows.push(row);
    }
    const tiles = new Map(
      rows.flatMap((row, level) =>
        tilesBetween(level, 0, size).map((tile) => [
          `${level}/${tile.index}/${tile.width}`,
          Buffer.concat(row.slice(tile.index * tileWidth, tile.index * tileWidth + tile.width)),
        ]),
      ),
    );
    const hashes = tileHashes(size, async ({ level, index, width }) => {
      return decodeTile(tiles.get(`${level}/${index}/${width}`) ?? Buffer.alloc(0), width);
    });
    const root = rootOf(leaves);

    expect(await rootAt(size, hashes)).toEqual(root);
    for (const index of [0, Math.floor(size / 3), size - 1]) {
      const proof = await inclusionProof(index, size, hashes);
      const leaf = leaves[index] ?? Buffer.alloc(0);
      expect(rootOfInclusion({ index, size, leaf }, proof)).toEqual(root);
    }
  }
});

/** True if the proof shows that `newer` extends `older` (RFC 6962, section 2.1.4). */
function isConsistent(older: TreeHead, newer: TreeHead, proof: readonly Uint8Array[]): boolean {
  if (older.size > newer.size || proof.some(({ length }) => length !== hashBytes)) return false;
  if (older.size === newer.size) return proof.length === 0 && equal(older.root, newer.root);
  if (older.size === 0) return proof.length === 0 && equal(older.root, emptyRoot);
  let [at, last] = [older.size - 1, newer.size - 1];
  while (at % 2 === 1) [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  const hashes = at === 0 ? [older.root, ...proof] : proof;
  let [before, after] = [hashes[0], hashes[0]];
  if (before === undefined || after === undefined) return false;
  for (const hash of hashes.slice(1)) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      before = sha256(Buffer.of(1), hash, before);
      after = sha256(Buffer.of(1), hash, after);
      while (at % 2 === 0 && at > 0) [at, last] = [at / 2, Math.floor(last / 2)];
    } else {
      after = sha256(Buffer.of(1), after, hash);
    }
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 && equal(before, older.root) && equal(after, newer.root);
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
