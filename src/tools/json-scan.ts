// One pass over the bytes of a JSON value (RFC 8259): is it well-formed, where does it end, a
// digest of its content, and where the value of one of its members stands. Every byte that sluice
// reads passes here before it is held, so that records need not be parsed to be held; what is held
// is known to parse. What must stay true: a value is taken here exactly when `JSON.parse` takes it,
// nesting beyond the bound left out; and what a digest says of a content is written into uids, so
// it never changes.
//
// The digest is 64 bits that two texts share when they say the same, and else only by accident:
// neither white space, the order of keys nor how a string is escaped counts, while the order of an
// array does, and a number is its source text. Each value is hashed behind a seed: a member's is
// its key, an element's all before it in its array. An object is the sum of its members. It proves
// nothing against who knows how it is made: upstream's own integrity is not ours to prove.

import { type IgnoredPaths, type Levels, levelsUpTo } from './json-keys.ts';
import { keyHash, malformed, skipSpace, stringMark, TokenScan } from './json-tokens.ts';

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Odd constants that halves of hashes are multiplied by: those of MurmurHash3 and xxHash. */
const prime1 = 0x85ebca6b;
const prime2 = 0xc2b2ae35;
const prime3 = 0x27d4eb2f;
/** What the digests of objects and arrays begin with, so that empty ones differ. */
const objectMark = 0x4f;
const arrayMark = 0x41;

/** Deeper than any record known, and far from where recursion runs out of stack. */
export const nestingMax = 200;

/** What sluice makes of a record, and holds, has a few levels more: the record stands within it. */
export const heldNestingMax: number = nestingMax + 8;

/** Thrown for a value that is nested too many levels deep. */
export class TooDeep extends Error {}

/** One for all scans, since none waits. */
let levels: Levels | null = null;

/** Passes over values within one body. */
export class JsonScan {
  /** The digest of the value passed over last, two halves of 32 bits. */
  digest1 = 0;
  digest2 = 0;
  /** Where the value of the member passed over last stands; `start` -1: it has none. */
  memberStart = -1;
  memberEnd = -1;
  /** The digest of the member's value. */
  member1 = 0;
  member2 = 0;
  /** The value passed over last has keys written with escapes, among which the member may be. */
  escapedKeys = false;
  /** An object has a key twice: its values count by their order, which the digest lacks. */
  repeatedKeys = false;
  /** Something of it was left out of the digest. */
  ignored = false;
  /** Levels that a value may have, at most `heldNestingMax`. */
  levelsMax: number = nestingMax;
  /** Passes over what is no plain string. */
  readonly tokens: TokenScan;
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  readonly #member: Uint8Array | null;
  readonly #memberHash: number;
  readonly #ignore: IgnoredPaths | null;
  readonly #levels: Levels;

  /**
   * `member`: the name to look out for among the keys of the values themselves, not of what is
   * within them. `ignore`: what is left out of their digests.
   */
  constructor(bytes: Uint8Array, member: string | null, ignore: IgnoredPaths | null = null) {
    this.tokens = new TokenScan(bytes);
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#member = member === null ? null : Buffer.from(member);
    this.#memberHash = member === null ? 0 : keyHash(member).hash1;
    this.#ignore = ignore;
    levels ??= levelsUpTo(heldNestingMax);
    this.#levels = levels;
  }

  /**
   * Passes over the value that starts at `from`, where no white space may stand, and returns where
   * it ends. Throws a SyntaxError where it is not well-formed and TooDeep where it is nested too
   * deeply. Strings are passed over here and not in a function of their own, which would cost as
   * much as the strings.
   */
  value(from: number): number {
    const bytes = this.bytes;
    const view = this.#view;
    const lastWord = bytes.length - 4;
    const tokens = this.tokens;
    const { levelsMax } = this;
    const memberHash = this.#memberHash;
    const { inObject, seeds, sums, keys, keysFrom, paths } = this.#levels;
    this.memberStart = -1;
    this.escapedKeys = false;
    this.repeatedKeys = false;
    this.ignored = false;
    let depth = 0;
    keys.count = 0;
    /** What the next token is hashed behind. */
    let seed1 = 0;
    let seed2 = 0;
    /** Of the level: the sum of an object's members, or an array's elements so far. */
    let sum1 = 0;
    let sum2 = 0;
    /** What is ignored within the next value: all of it, some paths, or nothing. */
    let path: IgnoredPaths | 'all' | null = this.#ignore;
    /** The next token is a key. */
    let isKey = false;
    /** True while the value passed over is the member's. */
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
          // first of them ("Bit Twiddling Hacks": whether a word has a byte less than n, or equal
          // to n).
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
      // A value has ended, and with it perhaps what is around it.
      for (;;) {
        // Each bit of either half tells on all of both; different ones stay different.
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

  /** True where the key in `[start, end)`, with its quotes, is the member's. */
  #isMember(start: number, end: number): boolean {
    const name = this.#member;
    if (name === null || name.length !== end - start - 2) return false;
    for (let i = 0; i < name.length; i += 1) {
      if (name[i] !== this.bytes[start + 1 + i]) return false;
    }
    return true;
  }
}
