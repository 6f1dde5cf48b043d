// The data that a scan (json-scan.ts) keeps about the surrounding objects, mainly their keys: which
// of them an object has had already, and which are excluded from a digest. Keys are known by their
// hashes.

import { keyHash } from './json-tokens.ts';

/** Comparing this many keys with each other is faster than sorting them. */
const comparedMax = 32;

/** The hashes of an object's keys, after those of the surrounding objects. */
class KeyStack {
  count = 0;
  #hashes = new Int32Array(64);

  add(hash: number): void {
    if (this.count === this.#hashes.length) {
      const larger = new Int32Array(this.count * 2);
      larger.set(this.#hashes);
      this.#hashes = larger;
    }
    this.#hashes[this.count] = hash;
    this.count += 1;
  }

  /** Removes the keys from `from` on; true if one of them is repeated. */
  hasTwice(from: number): boolean {
    const hashes = this.#hashes;
    const end = this.count;
    this.count = from;
    if (end - from > comparedMax) {
      const sorted = hashes.slice(from, end).sort();
      return sorted.some((hash, i) => hash === sorted[i + 1]);
    }
    for (let i = from + 1; i < end; i += 1) {
      const hash = hashes[i];
      for (let other = from; other < i; other += 1) if (hashes[other] === hash) return true;
    }
    return false;
  }
}

/** Dotted paths excluded from a digest. Elements have their array's path; keys may contain dots. */
export class IgnoredPaths {
  readonly #keys = new Map<
    number,
    { readonly hash2: number; readonly inner: IgnoredPaths | 'all' }
  >();

  constructor(paths: readonly string[]) {
    const inner = new Map<string, string[]>();
    for (const path of paths) {
      for (let end = path.indexOf('.'); end >= 0; end = path.indexOf('.', end + 1)) {
        const head = path.slice(0, end);
        inner.set(head, [...(inner.get(head) ?? []), path.slice(end + 1)]);
      }
      inner.set(path, [...(inner.get(path) ?? []), '']);
    }
    for (const [key, rest] of inner) {
      const { hash1, hash2 } = keyHash(key);
      this.#keys.set(hash1, {
        hash2,
        inner: rest.includes('') ? 'all' : new IgnoredPaths(rest),
      });
    }
  }

  /** The exclusions within the value of a key with these hashes. */
  within(hash1: number, hash2: number): IgnoredPaths | 'all' | null {
    const found = this.#keys.get(hash1);
    return found === undefined || found.hash2 !== hash2 ? null : found.inner;
  }
}

/** Data about the levels around a value during a scan. */
export interface Levels {
  /** 1 within an object, 0 within an array. */
  readonly inObject: Uint8Array;
  /** The seed of each level's hash, and the sum of the level around it; two halves each. */
  readonly seeds: Int32Array;
  readonly sums: Int32Array;
  /** The keys of all levels so far, and the start of each level's. */
  readonly keys: KeyStack;
  readonly keysFrom: Uint32Array;
  readonly paths: (IgnoredPaths | 'all' | null)[];
}

/** Storage for this many levels. */
export function levelsUpTo(most: number): Levels {
  const count = most + 1;
  return {
    inObject: new Uint8Array(count),
    seeds: new Int32Array(count * 2),
    sums: new Int32Array(count * 2),
    keys: new KeyStack(),
    keysFrom: new Uint32Array(count),
    paths: Array.from({ length: count }, () => null),
  };
}
