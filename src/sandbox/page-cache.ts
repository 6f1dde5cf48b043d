// Keeps the bytes of pages that were served, so that a second reader of the same records costs a
// lookup. Records never change once they exist, so an entry is right for as long as the behaviour
// of lists is the same; changing the fault script clears it. Bounded in bytes, oldest use first out.
import type { PagedList } from './lists.ts';

/** The joined record texts of pages, by list and run of indices. */
export class PageCache {
  readonly #pages = new Map<string, Uint8Array>();
  readonly #bytesMax: number;
  #bytes = 0;

  /** `bytesMax: 0` keeps nothing. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The bytes for these records, made by `make` where they are not held. */
  joined(list: PagedList, indices: readonly number[], make: () => Uint8Array): Uint8Array {
    const key = this.#keyOf(list, indices);
    if (key === null) return make();
    const held = this.#pages.get(key);
    const bytes = held ?? make();
    // Set again, so that the map's order is the order of last use.
    this.#pages.delete(key);
    this.#pages.set(key, bytes);
    if (held === undefined) this.#bytes += bytes.byteLength;
    this.#trim();
    return bytes;
  }

  clear(): void {
    this.#pages.clear();
    this.#bytes = 0;
  }

  // Only unbroken runs are kept: two numbers then name the page. Fixed lists are not: they change.
  #keyOf(list: PagedList, indices: readonly number[]): string | null {
    const [from, second = from] = indices;
    const to = indices.at(-1);
    if (this.#bytesMax === 0 || from === undefined || to === undefined || !('grow' in list))
      return null;
    const step = (second ?? from) >= from ? 1 : -1;
    if (!indices.every((index, at) => index === from + at * step)) return null;
    return `${list.path} ${from} ${to}`;
  }

  #trim(): void {
    for (const [key, bytes] of this.#pages) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#pages.delete(key);
      this.#bytes -= bytes.byteLength;
    }
  }
}
