// The memory of a stream's stored records, so that a record read again is not stored again. Keys are kept in two
// generations: when the younger one is full, the older one is forgotten. This bounds memory without ordering keys. A
// walk from the newest end can stop before it has reached known records. Until it has, its keys are `unanchored`: they
// are repeats but do not stop a walk.

import { identityBytes } from '../contracts/index.ts';

/** Bytes of a key: the first half is the record's id, the second half its version. */
export const keyBytes = 16;

/** Words of one identity: four of key, one of value. */
export const identityWords = identityBytes / 4;

/** Keys of one generation; a stream remembers between one and two generations. */
const generationMax = 500_000;

/** A stream's memory of records. */
export class Repeats {
  #young = new KeyTable();
  /** Null: empty, as in most of many streams. */
  #old: KeyTable | null = null;
  #unanchored: KeyTable | null = null;
  /** If identities of older rules are stored (judge.ts): the ids seen since then. */
  #since: KeyTable | null = null;

  /** The value of a key, or -1 if the key is not known. */
  value(words: Uint32Array, at: number): number {
    const young = this.#young.find(words, at);
    if (young >= 0) return this.#young.value(young);
    if (this.#old === null) return -1;
    const old = this.#old.find(words, at);
    return old >= 0 ? this.#old.value(old) : -1;
  }

  /** True for a key that a finished walk has seen. */
  isAnchored(words: Uint32Array, at: number): boolean {
    return this.value(words, at) >= 0 && this.#unanchored?.has(words, at) !== true;
  }

  /** True if a record with this id is known, with any content. */
  knowsId(words: Uint32Array, at: number): boolean {
    return this.#young.hasFirstHalf(words, at) || this.#old?.hasFirstHalf(words, at) === true;
  }

  /** True if a finished walk has seen every known record with this id. */
  isIdAnchored(words: Uint32Array, at: number): boolean {
    return this.#unanchored?.hasFirstHalf(words, at) !== true;
  }

  /** Identities of another version or another `ignore` are stored. */
  get hasOlder(): boolean {
    return this.#since !== null;
  }

  /** How many of a key's records count under a later key (idless.ts). */
  passedOn(words: Uint32Array, at: number): number {
    return Math.max(0, this.value(passedOnKey(words, at), 0));
  }

  /** True if an identity with this id was added after those of older rules. */
  seenSince(words: Uint32Array, at: number): boolean {
    return this.#since === null || this.#since.hasFirstHalf(words, at);
  }

  /** Remembers the identity at index `at`. */
  add(identities: Uint32Array, at: number, anchored: boolean): void {
    this.#since?.set(identities, at, 0);
    this.#add(identities, at, identities[at + identityWords - 1] ?? 0);
    if (anchored) return;
    this.#unanchored ??= new KeyTable();
    this.#unanchored.set(identities, at, 0);
  }

  #add(words: Uint32Array, at: number, value: number): void {
    if (this.#young.size >= generationMax) {
      this.#old = this.#young;
      this.#young = new KeyTable();
    }
    this.#young.set(words, at, value);
  }

  /** Remembers identities in the form that was appended to the spool. */
  addAll(identities: Uint32Array, anchored: boolean): void {
    for (let at = 0; at < identities.length; at += identityWords)
      this.add(identities, at, anchored);
  }

  /** Remembers identities of older rules, before all others. */
  addOlder(identities: Uint32Array, anchored: boolean): void {
    this.#since = null;
    for (let at = 0; at < identities.length; at += identityWords) {
      const before = this.value(identities, at);
      // Version 0.1.0 kept one checksum per id at a time, and appended each.
      if (before > 0) this.#add(checkedKey(identities, at, before), 0, 0);
      this.add(identities, at, anchored);
    }
    this.#since = new KeyTable();
  }

  /** True if version 0.1.0 stored this checksum of the content under an id's key. */
  hasChecked(key: Uint32Array, value: number, check: number): boolean {
    return value === check || this.value(checkedKey(key, 0, check), 0) >= 0;
  }

  /** The walk has reached known records: all keys are anchored. */
  anchorAll(): void {
    this.#unanchored = null;
  }
}

/** The key under which an older checksum of an id is kept. */
function checkedKey(words: Uint32Array, at: number, check: number): Uint32Array {
  return Uint32Array.of(words[at] ?? 0, words[at + 1] ?? 0, check, words[at + 2] ?? 0);
}

/** The key under which is stored how many of a key's records count under a later key. */
export function passedOnKey(words: Uint32Array, at: number): Uint32Array {
  return Uint32Array.of(
    ...[words[at] ?? 0, words[at + 1] ?? 0, words[at + 2] ?? 0, ~(words[at + 3] ?? 0)],
  );
}

/** Stored identities as words. */
export function asWords(bytes: Uint8Array): Uint32Array {
  const copy = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
  return new Uint32Array(copy.buffer, copy.byteOffset, copy.byteLength / 4);
}

// A set of 16-byte keys with a 32-bit value each, in one typed array: the memory of a stream's records. A million keys
// use about 40 MB here and 120 MB as strings in a Map, whose first-in-first-out deletion is also slow. Open addressing
// with linear probing. The first half of a key is the record's id, the second half its version. A slot is chosen by the
// first half, so a probe passes all versions. From `togetherMax` versions on, both halves choose the slot: an id shared
// by all records must not make each look-up as long as the list. Nothing is deleted; generations forget.

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
