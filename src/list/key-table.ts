// A set of 16-byte keys with a 32-bit value each, in one typed array: the memory of a stream's records. A million keys
// use about 40 MB here and 120 MB as strings in a Map, whose first-in-first-out deletion is also slow. Open addressing
// with linear probing. The first half of a key is the record's id, the second half its version. A slot is chosen by the
// first half, so a probe passes all versions. From `togetherMax` versions on, both halves choose the slot: an id shared
// by all records must not make each look-up as long as the list. Nothing is deleted; generations forget (repeats.ts).

const wordsPerKey = 4;
/** Words of one slot: key and value. */
const stride = wordsPerKey + 1;
const slotsMin = 16;
/** Share of used slots above which the table doubles. */
const loadMax = 0.6;
/** Versions stored at the slot of the first half. */
const togetherMax = 8;

/** Shared by all empty tables: most of many streams remember nothing. */
const nothing = new Uint32Array(stride);

/** Keys are passed as four 32-bit words at index `at` of an array. */
export class KeyTable {
  #slots: Uint32Array = nothing;
  #mask = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The slot of a key, or -1. */
  find(words: Uint32Array, at: number): number {
    const slot = this.#position(words, at);
    return this.#isFree(slot) ? -1 : slot;
  }

  has(words: Uint32Array, at: number): boolean {
    return this.find(words, at) >= 0;
  }

  /** The value of a slot returned by `find`. */
  value(slot: number): number {
    return this.#slots[slot * stride + wordsPerKey] ?? 0;
  }

  /** True if some version has the same first half. */
  hasFirstHalf(words: Uint32Array, at: number): boolean {
    const slots = this.#slots;
    const w0 = words[at] ?? 0;
    const w1 = words[at + 1] ?? 0;
    for (let slot = w0 & this.#mask; !this.#isFree(slot); slot = (slot + 1) & this.#mask) {
      if (slots[slot * stride] === w0 && slots[slot * stride + 1] === w1) return true;
    }
    return false;
  }

  /** Adds a key or sets its value. The all-zero key is ignored; no digest is zero. */
  set(words: Uint32Array, at: number, value: number): void {
    if (!(words[at] || words[at + 1] || words[at + 2] || words[at + 3])) return;
    if ((this.#size + 1) / (this.#mask + 1) > loadMax) this.#grow();
    const slots = this.#slots;
    const slot = this.#position(words, at);
    if (this.#isFree(slot)) {
      for (let i = 0; i < wordsPerKey; i += 1) slots[slot * stride + i] = words[at + i] ?? 0;
      this.#size += 1;
    }
    slots[slot * stride + wordsPerKey] = value;
  }

  /** The slot of a key, or the free slot for it. */
  #position(words: Uint32Array, at: number): number {
    const slots = this.#slots;
    const mask = this.#mask;
    const w0 = words[at] ?? 0;
    const w1 = words[at + 1] ?? 0;
    const w2 = words[at + 2] ?? 0;
    const w3 = words[at + 3] ?? 0;
    let together = 0;
    let slot = w0 & mask;
    for (;;) {
      const base = slot * stride;
      // A first half can be zero, as in a free slot.
      const isFree = slots[base] === 0 && slots[base + 1] === 0 && this.#isFree(slot);
      if (isFree) return slot;
      if (slots[base] === w0 && slots[base + 1] === w1) {
        if (slots[base + 2] === w2 && slots[base + 3] === w3) return slot;
        together += 1;
        if (together === togetherMax) {
          slot = (w0 ^ w2) & mask;
          continue;
        }
      }
      slot = (slot + 1) & mask;
    }
  }

  #isFree(slot: number): boolean {
    const slots = this.#slots;
    const base = slot * stride;
    return !(slots[base] || slots[base + 1] || slots[base + 2] || slots[base + 3]);
  }

  #grow(): void {
    const old = this.#slots;
    const count = Math.max(slotsMin, (this.#mask + 1) * 2);
    this.#slots = new Uint32Array(count * stride);
    this.#mask = count - 1;
    this.#size = 0;
    for (let base = 0; base < old.length; base += stride) {
      if (old[base] || old[base + 1] || old[base + 2] || old[base + 3]) {
        this.set(old, base, old[base + wordsPerKey] ?? 0);
      }
    }
  }
}
