// Stray objects: objects in the location of an archive that no entry names, planted or left by a crash. They are no
// evidence and do not affect any proof; the report lists their names. Invariants: memory is a few bytes per name, for
// any number of objects; after a lost entry no object counts as a stray.

import { hash } from 'node:crypto';
import { lakePrefix } from '../lake-cuts.ts';
import { checkpointPath, checkpointSizeOf, manifestPath, writerPath } from '../layout.ts';
import type { ArchiveReader } from '../reader.ts';
import { prunePath } from '../retention.ts';
import { parseTilePath } from '../tiles.ts';

const straysMax = 1_000;
const ownNames: ReadonlySet<string> = new Set([
  manifestPath,
  checkpointPath,
  writerPath,
  prunePath,
]);
/** Requests and holds, which are no evidence; and archives of other shards. */
const wishes = /^(holds\/[^/]+\.json|erase\/[0-9a-f]{64}\.json|\d+\/.*)$/;
const segmentPattern = /^segments\/\d{4}\/\d\d\/\d\d\/(\d{20})\.zst$/;
/** Kept bytes of a name's hash: with a million names, two collide once in 10^8 archives. */
const keyBytes = 6;

/** Names with an entry, and names without. */
export class Strays {
  #keys = new Float64Array(1_024);
  #count = 0;
  #isSorted = true;
  #isWhole = true;
  readonly #found: string[] = [];
  #omitted = 0;

  /** An entry names this object. */
  add(name: string): void {
    if (this.#count === this.#keys.length) {
      const more = new Float64Array(2 * this.#count);
      more.set(this.#keys);
      this.#keys = more;
    }
    this.#keys[this.#count] = keyOf(name);
    this.#count += 1;
    this.#isSorted = false;
  }

  /** An unreadable entry: the object that it names is unknown. */
  lose(): void {
    this.#isWhole = false;
  }

  /** Another check found that no entry names it. */
  found(name: string): void {
    if (this.#found.length < straysMax) this.#found.push(name);
    else this.#omitted += 1;
  }

  /** The names in the order of the store, at most a thousand; `omitted`: the number of further ones. */
  async finish(reader: ArchiveReader, size: number) {
    if (this.#isWhole) {
      for await (const { name } of reader.store.list('')) {
        if (!this.#isExpected(name, size)) this.found(name);
      }
    }
    return { names: this.#found, omitted: this.#omitted };
  }

  #isExpected(name: string, size: number): boolean {
    if (ownNames.has(name) || wishes.test(name) || name.startsWith(lakePrefix)) return true;
    if (name.startsWith('tile/')) return parseTilePath(name) !== null;
    // Objects beyond the checkpoint belong to a commit under way or an interrupted one.
    const [, index] = segmentPattern.exec(name) ?? [];
    if (index !== undefined && Number(index) >= size) return true;
    const kept = checkpointSizeOf(name);
    if (kept !== null && (kept >= size || !name.endsWith('.note'))) return true;
    return this.#has(name);
  }

  #has(name: string): boolean {
    if (!this.#isSorted) {
      this.#keys = this.#keys.slice(0, this.#count).sort();
      this.#isSorted = true;
    }
    const key = keyOf(name);
    let [low, high] = [0, this.#count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#keys[middle] ?? 0) < key) low = middle + 1;
      else high = middle;
    }
    return this.#keys[low] === key;
  }
}

function keyOf(name: string): number {
  return hash('sha256', name, 'buffer').readUIntBE(0, keyBytes);
}
