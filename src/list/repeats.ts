// The memory of a stream's stored records, so that a record read again is not stored again. Keys are kept in two
// generations: when the younger one is full, the older one is forgotten. This bounds memory without ordering keys. A
// walk from the newest end can stop before it has reached known records. Until it has, its keys are `unanchored`: they
// are repeats but do not stop a walk.

import { identityBytes } from '../contracts/index.ts';
import { KeyTable } from './key-table.ts';

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
