// Objects in the place of an archive that no entry names: somebody has put them there, or a crash has left them. They
// are no evidence of anything, and change nothing of what is proven; a reader gets their names. What must stay true:
// memory is a few bytes a name, however many objects there are; where an entry was lost nothing is called a stray.

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
/** Wishes, which are no evidence; and archives of other shards. */
const wishes = /^(holds\/[^/]+\.json|erase\/[0-9a-f]{64}\.json|\d+\/.*)$/;
const segmentPattern = /^segments\/\d{4}\/\d\d\/\d\d\/(\d{20})\.zst$/;
/** So many bytes of a name's hash are kept: with a million names two are alike once in 10^8 archives. */
const keyBytes = 6;

/** Names that entries name, and those that none does. */
export class Strays {
  #keys = new Float64Array(1_024);
  #count = 0;
  #isSorted = true;
  #isWhole = true;
  readonly #found: string[] = [];
  #omitted = 0;

  /** An entry names it. */
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

  /** An entry cannot be read: what it names is not known. */
  lose(): void {
    this.#isWhole = false;
  }

  /** No entry names it, as another check has found. */
  found(name: string): void {
    if (this.#found.length < straysMax) this.#found.push(name);
    else this.#omitted += 1;
  }

  /** The names, in the order of the store, at most a thousand; `omitted`: how many more there are. */
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
    // What no checkpoint covers yet is of a commit under way, or of one that was broken off.
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
