// What a stream remembers of the records it has held, so that a record read again is not held
// again. Keys are kept in two generations: when the younger one is full the older one is forgotten,
// which bounds memory without ordering keys. A walk from the newest end can die before it has
// joined up with what was known; until it has, the keys it added are `unanchored`: they are
// repeats, but they do not stop a walk.

import { identityBytes } from '../../contracts/spool.ts';
import { KeyTable } from './key-table.ts';

/** Bytes of a key: the first half says who a record is, the second which version of it. */
export const keyBytes = 16;

/** Words of one identity: four of key, one of value. */
export const identityWords = identityBytes / 4;

/** Keys of one generation; a stream remembers between one and two of them. */
const generationMax = 500_000;

/** A stream's memory of records. */
export class Repeats {
  #young = new KeyTable();
  #old = new KeyTable();
  #unanchored = new KeyTable();
  /** Where identities are held that were made otherwise (see judge.ts): the ids met since. */
  #since: KeyTable | null = null;

  /** The value kept with a key, or -1 where the key is not known. */
  value(words: Uint32Array, at: number): number {
    const young = this.#young.find(words, at);
    if (young >= 0) return this.#young.value(young);
    const old = this.#old.find(words, at);
    return old >= 0 ? this.#old.value(old) : -1;
  }

  /** True for a key that a completed walk has seen. */
  isAnchored(words: Uint32Array, at: number): boolean {
    return this.value(words, at) >= 0 && !this.#unanchored.has(words, at);
  }

  /** True where a record with this id is known, with whatever content. */
  knowsId(words: Uint32Array, at: number): boolean {
    return this.#young.hasFirstHalf(words, at) || this.#old.hasFirstHalf(words, at);
  }

  /** True where all that is known with this id a completed walk has seen. */
  isIdAnchored(words: Uint32Array, at: number): boolean {
    return !this.#unanchored.hasFirstHalf(words, at);
  }

  /** Identities are held that another version or another `ignore` has made. */
  get hasOlder(): boolean {
    return this.#since !== null;
  }

  /** True where one with this id was added since those were. */
  metSince(words: Uint32Array, at: number): boolean {
    return this.#since === null || this.#since.hasFirstHalf(words, at);
  }

  /** Remembers the identity at `at`. */
  add(identities: Uint32Array, at: number, anchored: boolean): void {
    this.#since?.set(identities, at, 0);
    this.#add(identities, at, identities[at + identityWords - 1] ?? 0);
    if (!anchored) this.#unanchored.set(identities, at, 0);
  }

  #add(words: Uint32Array, at: number, value: number): void {
    if (this.#young.size >= generationMax) {
      this.#old = this.#young;
      this.#young = new KeyTable();
    }
    this.#young.set(words, at, value);
  }

  /** Remembers identities as they were appended to the spool. */
  addAll(identities: Uint32Array, anchored: boolean): void {
    for (let at = 0; at < identities.length; at += identityWords)
      this.add(identities, at, anchored);
  }

  /** Remembers identities that were made otherwise, before all others. */
  addOlder(identities: Uint32Array, anchored: boolean): void {
    this.#since = null;
    for (let at = 0; at < identities.length; at += identityWords) {
      const before = this.value(identities, at);
      // Version 0.1.0 kept one check for an id at a time, and appended each.
      if (before > 0) this.#add(checkedKey(identities, at, before), 0, 0);
      this.add(identities, at, anchored);
    }
    this.#since = new KeyTable();
  }

  /** True where version 0.1.0 kept this check over the content under a key of an id. */
  hasChecked(key: Uint32Array, value: number, check: number): boolean {
    return value === check || this.value(checkedKey(key, 0, check), 0) >= 0;
  }

  /** The walk has joined up: everything seen is anchored. */
  anchorAll(): void {
    if (this.#unanchored.size > 0) this.#unanchored = new KeyTable();
  }
}

/** Where an older check for an id is kept. */
function checkedKey(words: Uint32Array, at: number, check: number): Uint32Array {
  return Uint32Array.of(words[at] ?? 0, words[at + 1] ?? 0, check, words[at + 2] ?? 0);
}

/** Identities as held, as words. */
export function asWords(bytes: Uint8Array): Uint32Array {
  const copy = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
  return new Uint32Array(copy.buffer, copy.byteOffset, copy.byteLength / 4);
}
