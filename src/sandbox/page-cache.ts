// Caches the bytes of served pages, so a second reader of the same records costs a look-up. Records never change once
// they exist, so an entry is valid while the behaviour of lists stays; a new fault script clears the cache. Bounded in
// bytes, least recently used first out.
import type { PagedList } from './lists.ts';

/** The joined record texts of pages, by list and range of indices. */
export class PageCache {
  readonly #pages = new Map<string, Uint8Array>();
  readonly #bytesMax: number;
  #bytes = 0;

  /** `bytesMax: 0` caches nothing. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The bytes of these records; `make` computes them if they are not cached. */
  joined(list: PagedList, indices: readonly number[], make: () => Uint8Array): Uint8Array {
    const key = this.#keyOf(list, indices);
    if (key === null) return make();
    const held = this.#pages.get(key);
    const bytes = held ?? make();
    // Set again, so the map's order is the order of last use.
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

  // Only unbroken ranges are cached: two numbers identify them. Fixed lists are not cached: they change.
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
