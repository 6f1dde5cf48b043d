// The identity (uid) of a record. With an id: SHA-256 over source, company, stream and the record's key. The key is 8
// bytes of the id's digest, so versions of a record are found together, and 8 bytes of the content's digest, because
// upstream may reuse an id for other content (tools/json-scan.ts). `"00123"`, `123` and integers beyond 2^53 stay
// distinct. Without an id (absent or empty): SHA-256 over the record's bytes, or over its content if `ignore` is set,
// and the number of equal records before it, so true twins stay two.
// Invariants: equal content has an equal uid in any order and at any repetition; neither upstream nor the config can
// make two contents share a uid. Identities made by older rules: see `older`.

import { hash } from 'node:crypto';
import { identityBytes } from '../contracts/index.ts';
import { contentWithout, IgnoredPaths, type RecordList } from '../tools/index.ts';
import { asWords, identityWords, keyBytes } from './repeats.ts';

const quote = 0x22;

/** The inputs of a stream's identities. */
export interface IdentitySettings {
  readonly source: string;
  readonly company: string;
  readonly stream: string;
}

/** The records of one page with their keys. */
export interface Identified {
  readonly count: number;
  /** `identityWords` words for each record: the key; the last word is 0. */
  readonly words: Uint32Array;
  /** 1 where the record has an id. */
  readonly named: Uint8Array;
  /** For a record without id, the digest for its uid. */
  readonly digests: readonly (Buffer | undefined)[];
  readonly records: RecordList;
}

/** A key under which another `ignore` has stored a record without id. */
export interface OlderKey {
  readonly key: Uint32Array;
  /** It compares all that the present key compares, and more. */
  readonly isFiner: boolean;
  /** Records that happened later may not be stored under it, epoch milliseconds; null: unknown. */
  readonly upTo: number | null;
}

/** An earlier setting of `ignore`. `upTo`: records that may still be late happened after this time, epoch milliseconds. */
export interface EarlierIgnore {
  readonly paths: readonly string[];
  readonly upTo: number | null;
}

/** Makes identities for one stream. */
export class Identifier {
  /** As JSON, because a name could contain any separator. */
  readonly #prefix: string;
  /** Hash input of a record with an id; its key is written at the end. Null: no record had an id so far. */
  #named: Buffer | null = null;
  /** Prefix of the hash input of a record without id; null: each record had an id so far. */
  #unnamed: Buffer | null = null;
  /** Earlier settings of `ignore`; `ignored` null: none, so the bytes count. */
  #earlier: readonly (Omit<OlderKey, 'key'> & { readonly ignored: IgnoredPaths | null })[] = [];

  constructor({ source, company, stream }: IdentitySettings) {
    this.#prefix = JSON.stringify([source, company, stream]);
  }

  /** Identifies a page's records. */
  identify(records: RecordList): Identified {
    const count = records.length;
    const words = new Uint32Array(count * identityWords);
    const named = new Uint8Array(count);
    const digests: (Buffer | undefined)[] = [];
    for (let i = 0; i < count; i += 1) {
      const at = i * identityWords;
      if (records.digestId(i, words, at)) {
        named[i] = 1;
        words[at + 2] = records.contents[i * 2] ?? 0;
        words[at + 3] = records.contents[i * 2 + 1] ?? 0;
      } else {
        const digest = this.#unnamedDigest(records, i);
        digests[i] = digest;
        words.set(keyOf(digest), at);
      }
    }
    return { count, words, named, digests, records };
  }

  /** The uid of a record with an id, as a Latin-1 string of 32 characters: the cheapest form. */
  uid({ words }: Identified, index: number): string {
    this.#named ??= Buffer.from(`${this.#prefix}c\0${'k'.repeat(keyBytes)}`);
    const hashed = this.#named;
    const at = index * identityWords;
    for (let word = 0; word < keyBytes / 4; word += 1) {
      hashed.writeUInt32LE(words[at + word] ?? 0, hashed.length - keyBytes + word * 4);
    }
    return hash('sha256', hashed, 'latin1');
  }

  /** The uid of the n-th equal record without id, in the form of `uid`. */
  twinUid({ digests }: Identified, index: number, n: number): string {
    const digest = digests[index] ?? Buffer.alloc(0);
    return hash('sha256', Buffer.concat([digest, Buffer.from(`twin\0${n}`)]), 'latin1');
  }

  /** The key that version 0.1.0 gave this record with an id: from the id alone. */
  older({ records }: Identified, index: number): Uint32Array {
    return keyOf(hash('sha256', `${this.#prefix}${idOf(records.idText(index))}`, 'buffer'));
  }

  /** Records without ids may be stored by the keys of these earlier settings of `ignore`. */
  setEarlier(earlier: readonly EarlierIgnore[], present: readonly string[]): void {
    const all = [{ paths: [], upTo: null }, ...earlier].map(({ paths, upTo }) => ({
      ignored: paths.length === 0 ? null : new IgnoredPaths(paths),
      isFiner: paths.every((path) => present.includes(path)),
      upTo,
    }));
    // Two of them may give a record the same key: the one with the strictest rule counts, and the newest of these.
    this.#earlier = all.toReversed().sort((a, b) => Number(a.isFiner) - Number(b.isFiner));
  }

  /** The other keys that this record without id may have had, each once. */
  olderKeys({ records, words }: Identified, index: number): readonly OlderKey[] {
    const at = index * identityWords;
    const seen = [words.subarray(at, at + identityWords - 1)];
    return this.#earlier.flatMap(({ ignored, isFiner, upTo }) => {
      const content = ignored && contentWithout(records.raw(index), ignored);
      const digest = content ? this.#contentDigest(content) : this.#bytesDigest(records, index);
      const key = keyOf(digest);
      if (seen.some((other) => key.every((word, i) => word === other[i]))) return [];
      seen.push(key);
      return [{ key, isFiner: isFiner || content === null, upTo }];
    });
  }

  /** The uid of a condition or change of this stream, from the parts that distinguish it. */
  ownUid(parts: readonly (string | number)[]): Buffer {
    return hash('sha256', `${this.#prefix}o\0${JSON.stringify(parts)}`, 'buffer');
  }

  #unnamedDigest(records: RecordList, index: number): Buffer {
    if (records.reduced[index] !== 1) return this.#bytesDigest(records, index);
    const { contents } = records;
    return this.#contentDigest([contents[index * 2] ?? 0, contents[index * 2 + 1] ?? 0]);
  }

  #contentDigest([first, second]: readonly [number, number]): Buffer {
    return hash('sha256', `${this.#prefix}d\0${first}.${second}.`, 'buffer');
  }

  #bytesDigest(records: RecordList, index: number): Buffer {
    this.#unnamed ??= Buffer.from(`${this.#prefix}r\0`);
    return hash('sha256', Buffer.concat([this.#unnamed, records.raw(index)]), 'buffer');
  }
}

/** The first 16 bytes of a digest. */
function keyOf(digest: Buffer): Uint32Array {
  return new Uint32Array(digest.buffer.slice(digest.byteOffset, digest.byteOffset + keyBytes));
}

/**
 * The id from its source text, marked as string text or as JSON. A number and a malformed string keep their source
 * text: parsing would drop digits, and encoding would make different strings equal.
 */
function idOf(source: string | null): string {
  if (source === null || source.charCodeAt(0) !== quote) return `j\0${source}`;
  if (!source.includes('\\')) return `i\0${source.slice(1, -1)}`;
  const text = JSON.parse(source) as string;
  return text.isWellFormed() ? `i\0${text}` : `j\0${JSON.stringify(text)}`;
}

// Keys as a checkpoint stores them, and the search for rows of an earlier reading on a page.

/** The keys of a page's records, or of a range of them. */
export function keysOf({ words, count }: Identified, from = 0, to = count): Buffer {
  const all = Buffer.from(words.buffer, words.byteOffset, words.byteLength);
  const end = Math.min(to, count);
  const keys = Buffer.allocUnsafe(Math.max(0, end - from) * keyBytes);
  for (let i = from; i < end; i += 1) {
    const at = i * identityBytes;
    all.copy(keys, (i - from) * keyBytes, at, at + keyBytes);
  }
  return keys;
}

/**
 * Index after the rows `expected` within a page, or -1 if they are not on it. They are at the start of the page,
 * further down if rows were inserted before them, or reduced to the last of them at the start if rows were removed.
 * Rows with changed content are matched by id. `at`: the index to try first.
 */
export function overlapEnd(
  identified: Identified,
  expected: Uint8Array,
  at: number = expected.length / keyBytes,
): number {
  const end = sameEnd(identified, expected, keyBytes, at);
  return end < 0 ? sameEnd(identified, expected, keyBytes / 2, at) : end;
}

/** As `overlapEnd`, but a changed row counts as another row. `bytes`: the part of a key that is compared. */
export function sameEnd(
  { words, count }: Identified,
  expected: Uint8Array,
  bytes = keyBytes,
  at: number = expected.length / keyBytes,
): number {
  const rows = asWords(expected);
  const length = expected.length / keyBytes;
  const isSame = (index: number, row: number) => {
    for (let word = 0; word < bytes / 4; word += 1) {
      const given = words[index * identityWords + word];
      if (given !== rows[(row * keyBytes) / 4 + word]) return false;
    }
    return true;
  };
  const endsAt = (end: number) => {
    for (let back = 1; back <= Math.min(end, length); back += 1) {
      if (!isSame(end - back, length - back)) return false;
    }
    return true;
  };
  if (at <= count && at > 0 && endsAt(at)) return at;
  for (let end = 1; end <= count; end += 1) if (endsAt(end)) return end;
  return -1;
}

// Version 0.1.0's checksum over the content of a record with an id: 32 bits, the sum of the hashes of all its strings,
// numbers and words, each hashed with its key. Computed only for an identity of that version, so that an upgrade
// delivers nothing twice.

/** FNV-1a, 32 bit. */
const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

/** Tokens of well-formed JSON; bytes read as Latin-1. */
const tokens = /"(?:[^"\\]|\\.)*"|[-\d][-+.\deE]*|true|false|null|[{}[\],]/g;

/** The checksum of a record's bytes, which must be well-formed JSON. */
export function olderCheck(record: Uint8Array): number {
  const text = Buffer.from(record.buffer, record.byteOffset, record.byteLength).toString('latin1');
  const inObject: boolean[] = [];
  let isKey = false;
  let key = 0;
  let sum = 0;
  for (const [token] of text.matchAll(tokens)) {
    if (token === '{' || token === '[') {
      isKey = token === '{';
      inObject.push(isKey);
    } else if (token === '}' || token === ']') {
      inObject.pop();
      isKey = false;
    } else if (token === ',') {
      isKey = inObject.at(-1) === true;
      if (!isKey) key = 0;
    } else {
      const hash = hashOf(token, isKey ? 0 : key);
      sum = (sum + (hash ^ (hash >>> 15))) | 0;
      if (isKey) key = hash;
      isKey = false;
    }
  }
  return sum >>> 0 || 1;
}

function hashOf(token: string, key: number): number {
  const isString = token.charCodeAt(0) === quote;
  let hash = key ^ fnvOffset;
  if (isString) hash = Math.imul(hash ^ quote, fnvPrime);
  const end = isString ? token.length - 1 : token.length;
  for (let at = isString ? 1 : 0; at < end; at += 1) {
    hash = Math.imul(hash ^ token.charCodeAt(at), fnvPrime);
  }
  return hash;
}
