// What a stream remembers of the records it has held, so that a record read again is not held again. Keys are kept in two
// generations: when the younger one is full the older one is forgotten, which bounds memory without ordering keys.
// A walk from the newest end can die before it has joined up with what was known; until it has, the keys it added
// are `unanchored`: they are repeats, but they do not stop a walk.

import { identityBytes } from '../contracts/spool.ts';
import { KeyTable } from './key-table.ts';

/** Words of one identity: four of key, one of check. */
export const identityWords = identityBytes / 4;

/** Keys of one generation; a stream remembers between one and two of them. */
const generationMax = 500_000;

/** A stream's memory of records. */
export class Repeats {
  #young = new KeyTable();
  #old = new KeyTable();
  #unanchored = new KeyTable();

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

  /** Remembers the identity at `at`. */
  add(identities: Uint32Array, at: number, anchored: boolean): void {
    const value = identities[at + identityWords - 1] ?? 0;
    if (this.#young.size >= generationMax) {
      this.#old = this.#young;
      this.#young = new KeyTable();
    }
    this.#young.set(identities, at, value);
    if (!anchored) this.#unanchored.set(identities, at, value);
  }

  /** Remembers identities as they were appended to the spool. */
  addAll(identities: Uint32Array, anchored: boolean): void {
    for (let at = 0; at < identities.length; at += identityWords)
      this.add(identities, at, anchored);
  }

  /** The walk has joined up: everything seen is anchored. */
  anchorAll(): void {
    if (this.#unanchored.size > 0) this.#unanchored = new KeyTable();
  }
}

/** Identities as held, as words. */
export function asWords(bytes: Uint8Array): Uint32Array {
  const copy = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
  return new Uint32Array(copy.buffer, copy.byteOffset, copy.byteLength / 4);
}
