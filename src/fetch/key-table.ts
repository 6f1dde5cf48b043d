// A set of 16-byte keys with a 32-bit value each, in one typed array: what a stream remembers of the records it has seen. A
// million keys take about 40 MB here and 120 MB as strings in a Map, whose first-in-first-out deletion is also slow.
// Open addressing with linear probing; keys are digests, so their first word is the hash. Nothing is ever deleted:
// forgetting is done by generations (see repeats.ts).

const wordsPerKey = 4;
/** Words of one slot: key and value. */
const stride = wordsPerKey + 1;
const slotsMin = 16;
/** Share of slots in use beyond which the table doubles. */
const loadMax = 0.6;

/** What all tables share until they hold a key: most streams of many have nothing to remember. */
const nothing = new Uint32Array(stride);

/** Keys are given as four 32-bit words at `at` of an array. */
export class KeyTable {
  #slots: Uint32Array = nothing;
  #mask = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The slot of a key, or -1. */
  find(words: Uint32Array, at: number): number {
    const slots = this.#slots;
    const w0 = words[at] ?? 0;
    const w1 = words[at + 1];
    const w2 = words[at + 2];
    const w3 = words[at + 3];
    let slot = w0 & this.#mask;
    for (;;) {
      const base = slot * stride;
      const s0 = slots[base];
      const s1 = slots[base + 1];
      const s2 = slots[base + 2];
      const s3 = slots[base + 3];
      if (s0 === 0 && s1 === 0 && s2 === 0 && s3 === 0) return -1;
      if (s0 === w0 && s1 === w1 && s2 === w2 && s3 === w3) return slot;
      slot = (slot + 1) & this.#mask;
    }
  }

  has(words: Uint32Array, at: number): boolean {
    return this.find(words, at) >= 0;
  }

  /** The value of a slot that `find` gave. */
  value(slot: number): number {
    return this.#slots[slot * stride + wordsPerKey] ?? 0;
  }

  /** Adds a key or sets its value. The all-zero key, which no digest is in practice, is not kept. */
  set(words: Uint32Array, at: number, value: number): void {
    if (!(words[at] || words[at + 1] || words[at + 2] || words[at + 3])) return;
    const known = this.find(words, at);
    if (known >= 0) {
      this.#slots[known * stride + wordsPerKey] = value;
      return;
    }
    if ((this.#size + 1) / (this.#mask + 1) > loadMax) this.#grow();
    this.#insert(words, at, value);
    this.#size += 1;
  }

  #insert(words: Uint32Array, at: number, value: number): void {
    const slots = this.#slots;
    let slot = (words[at] ?? 0) & this.#mask;
    for (;;) {
      const base = slot * stride;
      if (!(slots[base] || slots[base + 1] || slots[base + 2] || slots[base + 3])) {
        for (let i = 0; i < wordsPerKey; i += 1) slots[base + i] = words[at + i] ?? 0;
        slots[base + wordsPerKey] = value;
        return;
      }
      slot = (slot + 1) & this.#mask;
    }
  }

  #grow(): void {
    const old = this.#slots;
    const count = Math.max(slotsMin, (this.#mask + 1) * 2);
    this.#slots = new Uint32Array(count * stride);
    this.#mask = count - 1;
    for (let base = 0; base < old.length; base += stride) {
      if (old[base] || old[base + 1] || old[base + 2] || old[base + 3]) {
        this.#insert(old, base, old[base + wordsPerKey] ?? 0);
      }
    }
  }
}
