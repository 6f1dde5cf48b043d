// One pass over the bytes of a JSON value (RFC 8259): whether it is well-formed, its end, a digest of
// its content, and the byte range of one member's value. Every byte that sluice reads is scanned here
// before it is stored, so that records need not be parsed to be stored; stored records are known to
// parse. Invariants: a value is accepted exactly if `JSON.parse` accepts it, except nesting beyond the
// bound; the digest of a content is part of uids, so it never changes.
//
// The digest is 64 bits that are equal for texts with the same content, and otherwise equal only by
// coincidence: white space, the order of keys and the escaping of strings do not count, while the
// order of an array does, and a number is its source text. Each value is hashed with a seed: for a
// member its key, for an element the hash of everything before it in its array. An object is the sum
// of its members. It is no protection against a party that knows the algorithm: upstream's own
// integrity is out of scope.

import { type IgnoredPaths, type Levels, levelsUpTo } from './json-keys.ts';
import { keyHash, malformed, skipSpace, stringMark, TokenScan } from './json-tokens.ts';

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Odd multipliers for the halves of hashes: those of MurmurHash3 and xxHash. */
const prime1 = 0x85ebca6b;
const prime2 = 0xc2b2ae35;
const prime3 = 0x27d4eb2f;
/** Start values of the digests of objects and arrays, so that empty ones differ. */
const objectMark = 0x4f;
const arrayMark = 0x41;

/** Deeper than any known record, and far from a stack overflow of recursive code. */
export const nestingMax = 200;

/** Records created by sluice contain the original record, so they have a few levels more. */
export const heldNestingMax: number = nestingMax + 8;

/** Thrown for a value that is nested too many levels deep. */
export class TooDeep extends Error {}

/** One for all scans, because a scan never awaits. */
let levels: Levels | null = null;

/** Scans values within one body. */
export class JsonScan {
  /** The digest of the last scanned value, two halves of 32 bits. */
  digest1 = 0;
  digest2 = 0;
  /** Byte range of the member's value in the last scanned value; `start` -1: no such member. */
  memberStart = -1;
  memberEnd = -1;
  /** The digest of the member's value. */
  member1 = 0;
  member2 = 0;
  /** The last scanned value has keys with escapes, one of which may be the member. */
  escapedKeys = false;
  /** An object has a repeated key: its values count by their order, which the digest lacks. */
  repeatedKeys = false;
  /** A part of the value was excluded from the digest. */
  ignored = false;
  /** Maximum levels of a value, at most `heldNestingMax`. */
  levelsMax: number = nestingMax;
  /** Scans all tokens except plain strings. */
  readonly tokens: TokenScan;
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  /** The member's name, and the hash of its key. */
  readonly member: Uint8Array | null;
  readonly memberHash: number;
  readonly #ignore: IgnoredPaths | null;
  readonly #levels: Levels;

  /**
   * `member`: the name to look for among the keys of the values themselves, not deeper. `ignore`:
   * paths excluded from their digests.
   */
  constructor(bytes: Uint8Array, member: string | null, ignore: IgnoredPaths | null = null) {
    this.tokens = new TokenScan(bytes);
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.member = member === null ? null : Buffer.from(member);
    this.memberHash = member === null ? 0 : keyHash(member).hash1;
    this.#ignore = ignore;
    levels ??= levelsUpTo(heldNestingMax);
    this.#levels = levels;
  }

  /** True if parts of values are excluded from their digests. */
  get ignores(): boolean {
    return this.#ignore !== null;
  }

  /**
   * Scans the value that starts at `from`, without white space before it, and returns its end.
   * Throws a SyntaxError if it is not well-formed and TooDeep if it is nested too deeply. Strings
   * are scanned inline: a function call would cost as much as the strings.
   */
  value(from: number): number {
    const bytes = this.bytes;
    const view = this.#view;
    const lastWord = bytes.length - 4;
    const tokens = this.tokens;
    const { levelsMax, memberHash } = this;
    const { inObject, seeds, sums, keys, keysFrom, paths } = this.#levels;
    this.memberStart = -1;
    this.escapedKeys = false;
    this.repeatedKeys = false;
    this.ignored = false;
    let depth = 0;
    keys.count = 0;
    /** The seed of the next token. */
    let seed1 = 0;
    let seed2 = 0;
    /** Of the level: the sum of an object's members, or an array's elements so far. */
    let sum1 = 0;
    let sum2 = 0;
    /** Exclusions within the next value: everything, some paths, or none. */
    let path: IgnoredPaths | 'all' | null = this.#ignore;
    /** The next token is a key. */
    let isKey = false;
    /** True while the scanned value is the member's. */
    let ofMember = false;
    let at = from;
    for (;;) {
      const start = at;
      const first = bytes[at];
      /** The hash of the token or the level. */
      let hash1 = 0;
      let hash2 = 0;
      if (first === quote) {
        hash1 = seed1 ^ stringMark;
        hash2 = seed2 | 0;
        at += 1;
        for (;;) {
          const word = at <= lastWord ? view.getInt32(at, true) : 0;
          // Bits are set for a byte below 0x20, a quote and a backslash, the lowest one for the
          // first of them ("Bit Twiddling Hacks": determine if a word has a byte less than n, or
          // equal to n).
          const low = word ^ 0x02020202;
          const other = word ^ 0x5c5c5c5c;
          const ends = (((low - 0x21212121) & ~low) | ((other - 0x01010101) & ~other)) & 0x80808080;
          if (ends === 0) {
            hash1 = Math.imul(hash1 ^ word, prime1);
            hash1 ^= hash1 >>> 15;
            hash2 = Math.imul((hash2 + word) | 0, prime2);
            hash2 ^= hash2 >>> 13;
            at += 4;
            continue;
          }
          const count = (31 - Math.clz32(ends & -ends)) >>> 3;
          at += count;
          if (bytes[at] === quote) {
            const last = (word & ~(-1 << (count * 8))) | ((count + 1) << 24);
            hash1 = Math.imul(hash1 ^ last, prime1);
            hash1 ^= hash1 >>> 15;
            hash2 = Math.imul((hash2 + last) | 0, prime2);
            hash2 ^= hash2 >>> 13;
            at += 1;
          } else {
            at = tokens.string(start + 1, seed1, seed2);
            hash1 = tokens.hash1;
            hash2 = tokens.hash2;
            if (isKey && depth === 1 && tokens.escaped) this.escapedKeys = true;
          }
          break;
        }
      } else if (isKey) {
        throw malformed(at);
      } else if (first === openBrace || first === openBracket) {
        if (depth === levelsMax) throw new TooDeep(`nested more than ${levelsMax} levels deep`);
        const isObject = first === openBrace;
        const begun = isObject ? 0 : arrayMark;
        at = skipSpace(bytes, at + 1);
        if (bytes[at] !== (isObject ? closeBrace : closeBracket)) {
          depth += 1;
          inObject[depth] = isObject ? 1 : 0;
          seeds[depth * 2] = seed1;
          seeds[depth * 2 + 1] = seed2;
          sums[depth * 2] = sum1;
          sums[depth * 2 + 1] = sum2;
          paths[depth] = path;
          keysFrom[depth] = keys.count;
          sum1 = begun;
          sum2 = 0;
          seed1 = sum1;
          seed2 = 0;
          isKey = isObject;
          continue;
        }
        hash1 = (Math.imul(seed1 ^ (isObject ? objectMark : arrayMark), prime3) + begun) | 0;
        hash2 = Math.imul(seed2, prime3);
        at += 1;
      } else {
        at = tokens.word(at, seed1, seed2);
        hash1 = tokens.hash1;
        hash2 = tokens.hash2;
      }
      if (isKey) {
        seed1 = hash1;
        seed2 = hash2;
        keys.add(hash1);
        const configEnv = paths[depth];
        if (configEnv !== null) {
          path = configEnv === 'all' ? 'all' : (configEnv?.within(hash1, hash2) ?? null);
          if (path === 'all') this.ignored = true;
        }
        const end = at;
        at = skipSpace(bytes, at);
        if (bytes[at] !== colon) throw malformed(at);
        at = skipSpace(bytes, at + 1);
        if (depth === 1 && hash1 === memberHash && this.#isMember(start, end)) {
          this.memberStart = at;
          ofMember = true;
        }
        isKey = false;
        continue;
      }
      // A value has ended, and possibly the levels around it.
      for (;;) {
        // Each bit of either half affects all bits of both; different inputs stay different.
        hash1 = (hash1 + Math.imul(hash2 ^ (hash2 >>> 15), prime1)) | 0;
        hash2 = (hash2 + Math.imul(hash1 ^ (hash1 >>> 13), prime2)) | 0;
        hash1 = (hash1 + Math.imul(hash2 ^ (hash2 >>> 16), prime3)) | 0;
        if (depth === 0) {
          this.digest1 = hash1;
          this.digest2 = hash2;
          return at;
        }
        const object = inObject[depth] === 1;
        if (!object) {
          sum1 = hash1;
          sum2 = hash2;
        } else if (path !== 'all') {
          sum1 = (sum1 + hash1) | 0;
          sum2 = (sum2 + hash2) | 0;
        }
        if (ofMember && depth === 1) {
          this.memberEnd = at;
          this.member1 = hash1;
          this.member2 = hash2;
          ofMember = false;
        }
        at = skipSpace(bytes, at);
        const byte = bytes[at];
        if (byte === comma) {
          at = skipSpace(bytes, at + 1);
          seed1 = object ? 0 : sum1;
          seed2 = object ? 0 : sum2;
          isKey = object;
          break;
        }
        if (byte !== (object ? closeBrace : closeBracket)) throw malformed(at);
        if (object && keys.hasTwice(keysFrom[depth] ?? 0)) this.repeatedKeys = true;
        const seed = seeds[depth * 2] ?? 0;
        hash1 = (Math.imul(seed ^ (object ? objectMark : arrayMark), prime3) + sum1) | 0;
        hash2 = Math.imul(seeds[depth * 2 + 1] ?? 0, prime3) ^ sum2;
        sum1 = sums[depth * 2] ?? 0;
        sum2 = sums[depth * 2 + 1] ?? 0;
        path = paths[depth] ?? null;
        depth -= 1;
        at += 1;
      }
    }
  }

  /** True if the key in `[start, end)`, with its quotes, is the member's. */
  #isMember(start: number, end: number): boolean {
    const name = this.member;
    if (name === null || name.length !== end - start - 2) return false;
    for (let i = 0; i < name.length; i += 1) {
      if (name[i] !== this.bytes[start + 1 + i]) return false;
    }
    return true;
  }
}
