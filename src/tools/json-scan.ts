// One pass over the bytes of a JSON value (RFC 8259): is it well-formed, where does it end, a digest of its content, and
// where the value of one of its members stands. Every byte that sluice reads passes here before it is held, so that
// records need not be parsed to be held; what is held is known to parse. What must stay true: a value is taken here
// exactly when `JSON.parse` takes it, nesting beyond the bound left out; and what a digest says of a content is written
// into uids, so it never changes.
//
// The digest is 64 bits that two texts share when they say the same, and else only by accident: neither white space, the order of
// keys nor how a string is escaped counts, while the order of an array does, and a number is its source text. Each
// value is hashed behind a seed: a member's is its key, an element's all before it in its array. An object is the sum
// of its members. It proves nothing against who knows how it is made: upstream's own integrity is not ours to prove.

const quote = 0x22;
const comma = 0x2c;
const minus = 0x2d;
const dot = 0x2e;
const zero = 0x30;
const colon = 0x3a;
/** `e`, as the bit that tells case from case makes of `E`, too. */
const exponent = 0x65;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** FNV-1a, 32 bit: the first half of a hash. The second is the sum of all that the first has been. */
const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;
/** Odd constants that the two halves are mixed by, those of MurmurHash3 and xxHash. */
const mixes = [0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f] as const;
/** What the digests of objects and arrays begin with, so that empty ones differ. */
const objectMark = 0x4f;
const arrayMark = 0x41;

/** Deeper than any record known, and far from where code that follows a value downwards runs out of stack. */
export const nestingMax = 200;

/** Significant digits that a double keeps of any number (IEEE 754: floor(52 * log10(2))). */
export const digitsKept = 15;

/** Thrown for a value that is nested more than `nestingMax` levels deep. */
export class TooDeep extends Error {}

/** Passes over values within one body. */
export class JsonScan {
  /** The digest of the value passed over last, two halves of 32 bits. */
  digest1 = 0;
  digest2 = 0;
  /** Where the member's value stands in the value passed over last; `start` is -1 where it has none. */
  memberStart = -1;
  memberEnd = -1;
  /** The digest of the member's value. */
  member1 = 0;
  member2 = 0;
  /** No number passed over so far is so long, or has an exponent, that parsing might change it. */
  exact = true;
  /** The value passed over last has keys written with escapes, among which the member may be. */
  escapedKeys = false;
  /** One of its objects has a key twice: which of its values counts is told by their order, and the digest has none. */
  repeatedKeys = false;
  /** Something of it was left out of the digest. */
  ignored = false;
  readonly #bytes: Uint8Array;
  readonly #member: Uint8Array | null;
  readonly #memberHash: number;
  readonly #ignore: IgnoredPaths | null;
  readonly #levels: Levels;

  /**
   * `member`: the name to look out for among the keys of the values themselves, not of what is within them. `ignore`: what
   * is left out of their digests.
   */
  constructor(bytes: Uint8Array, member: string | null, ignore: IgnoredPaths | null = null) {
    this.#bytes = bytes;
    this.#member = member === null ? null : Buffer.from(member);
    this.#memberHash = this.#member === null ? 0 : hashesOf(this.#member).hash1;
    this.#ignore = ignore;
    levels ??= newLevels();
    this.#levels = levels;
  }

  /**
   * Passes over the value that starts at `from`, where no white space may stand, and returns where it ends. Throws a
   * SyntaxError where it is not well-formed and TooDeep where it is nested too deeply.
   */
  value(from: number): number {
    const bytes = this.#bytes;
    const { inObject, seeds, sums, keys, paths } = this.#levels;
    this.memberStart = -1;
    this.escapedKeys = false;
    this.repeatedKeys = false;
    this.ignored = false;
    let depth = 0;
    /** What the next value is hashed behind. */
    let seed1 = 0;
    let seed2 = 0;
    /** Of the level: the sum of an object's members, or an array's elements so far. */
    let sum1 = 0;
    let sum2 = 0;
    /** What is ignored within the next value: all of it, some paths, or nothing. */
    let path: IgnoredPaths | 'all' | null = this.#ignore;
    /** True while the value passed over is the member's. */
    let ofMember = false;
    let at = from;
    for (;;) {
      const first = bytes[at];
      let opened = false;
      if (first === openBrace || first === openBracket) {
        if (depth === nestingMax) throw new TooDeep(`nested more than ${nestingMax} levels deep`);
        depth += 1;
        const isObject = first === openBrace;
        inObject[depth] = isObject ? 1 : 0;
        seeds[depth * 2] = seed1;
        seeds[depth * 2 + 1] = seed2;
        sums[depth * 2] = sum1;
        sums[depth * 2 + 1] = sum2;
        sum1 = isObject ? 0 : arrayMark;
        sum2 = 0;
        paths[depth] = path;
        if (isObject) keys[depth]?.clear();
        seed1 = sum1;
        seed2 = sum2;
        opened = true;
        at += 1;
      } else {
        at = first === quote ? this.#string(at + 1, seed1, seed2) : this.#word(at, seed1, seed2);
        this.#mix(this.#hash1, this.#hash2);
      }
      // What follows a value: ends of what is around it, then a comma, or the first member of what was opened.
      for (;;) {
        if (!opened) {
          if (ofMember && depth === 1) {
            this.memberEnd = at;
            this.member1 = this.#mixed1;
            this.member2 = this.#mixed2;
            ofMember = false;
          }
          if (depth === 0) {
            this.digest1 = this.#mixed1;
            this.digest2 = this.#mixed2;
            return at;
          }
          if (inObject[depth] === 0) {
            sum1 = this.#mixed1;
            sum2 = this.#mixed2;
          } else if (path !== 'all') {
            sum1 = (sum1 + this.#mixed1) | 0;
            sum2 = (sum2 + this.#mixed2) | 0;
          }
        }
        at = skipSpace(bytes, at);
        const byte = bytes[at];
        const object = inObject[depth] === 1;
        if (byte === (object ? closeBrace : closeBracket)) {
          const mark = object ? objectMark : arrayMark;
          const begin = Math.imul((seeds[depth * 2] ?? 0) ^ mark, fnvPrime);
          this.#mix((begin + sum1) | 0, Math.imul(seeds[depth * 2 + 1] ?? 0, fnvPrime) ^ sum2);
          sum1 = sums[depth * 2] ?? 0;
          sum2 = sums[depth * 2 + 1] ?? 0;
          path = paths[depth] ?? null;
          depth -= 1;
          at += 1;
          opened = false;
          continue;
        }
        if (!opened) {
          if (byte !== comma) throw malformed(at);
          at = skipSpace(bytes, at + 1);
        }
        if (!object) {
          seed1 = sum1;
          seed2 = sum2;
          break;
        }
        if (bytes[at] !== quote) throw malformed(at);
        const start = at;
        at = this.#string(at + 1, 0, 0);
        seed1 = this.#hash1;
        seed2 = this.#hash2;
        if (keys[depth]?.add(seed1) === false) this.repeatedKeys = true;
        const around = paths[depth];
        if (around !== null) {
          path = around === 'all' ? 'all' : (around?.within(seed1, seed2) ?? null);
          if (path === 'all') this.ignored = true;
        }
        const end = at;
        at = skipSpace(bytes, at);
        if (bytes[at] !== colon) throw malformed(at);
        at = skipSpace(bytes, at + 1);
        if (depth === 1 && this.#isMember(start, end)) {
          this.memberStart = at;
          ofMember = true;
        }
        break;
      }
    }
  }

  /** The hash of the token passed over last, and that of a value mixed. */
  #hash1 = 0;
  #hash2 = 0;
  #mixed1 = 0;
  #mixed2 = 0;
  #escaped = false;

  /** Mixes two halves so that each bit of either tells on all of both; different ones stay different. */
  #mix(half1: number, half2: number): void {
    let one = (half1 + Math.imul(half2 ^ (half2 >>> 15), mixes[0])) | 0;
    const two = (half2 + Math.imul(one ^ (one >>> 13), mixes[1])) | 0;
    one = (one + Math.imul(two ^ (two >>> 16), mixes[2])) | 0;
    this.#mixed1 = one;
    this.#mixed2 = two;
  }

  /** Passes over a string's text and closing quote. */
  #string(from: number, seed1: number, seed2: number): number {
    const bytes = this.#bytes;
    let hash = Math.imul(seed1 ^ fnvOffset ^ quote, fnvPrime);
    let all = seed2;
    let at = from;
    for (;;) {
      const byte = bytes[at] ?? 0;
      if (byte === quote) break;
      if (byte < 0x20) throw malformed(at);
      if (byte === backslash) return this.#escapedString(at, hash, all);
      hash = Math.imul(hash ^ byte, fnvPrime);
      all = (all + hash) | 0;
      at += 1;
    }
    this.#escaped = false;
    this.#hash1 = hash;
    this.#hash2 = all;
    return at + 1;
  }

  /** As `#string`, from its first backslash on: hashed is what the escapes stand for. */
  #escapedString(from: number, hash: number, all: number): number {
    const bytes = this.#bytes;
    this.#escaped = true;
    this.#hash1 = hash;
    this.#hash2 = all;
    let at = from;
    for (;;) {
      const byte = bytes[at] ?? 0;
      if (byte === quote) return at + 1;
      if (byte < 0x20) throw malformed(at);
      if (byte === backslash) at = this.#escape(at + 1);
      else {
        this.#hash(byte);
        at += 1;
      }
    }
  }

  /** Passes over what stands behind a backslash. */
  #escape(at: number): number {
    const bytes = this.#bytes;
    const mark = bytes[at] ?? 0;
    if (mark !== unicodeEscape) {
      const byte = escapes.get(mark);
      if (byte === undefined) throw malformed(at);
      this.#hash(byte);
      return at + 1;
    }
    const unit = hexAt(bytes, at + 1);
    if (unit < 0) throw malformed(at);
    const isPair = isHighSurrogate(unit) && bytes[at + 5] === backslash && bytes[at + 6] === mark;
    const second = isPair ? hexAt(bytes, at + 7) : -1;
    const text = isLowSurrogate(second)
      ? String.fromCharCode(unit, second)
      : String.fromCharCode(unit);
    // Half a pair has no bytes: beyond all bytes is what nothing else is hashed as.
    if (!text.isWellFormed()) this.#hash(0x10000 | unit);
    else for (const byte of Buffer.from(text)) this.#hash(byte);
    return at + (text.length === 2 ? 11 : 5);
  }

  #hash(byte: number): void {
    this.#hash1 = Math.imul(this.#hash1 ^ byte, fnvPrime);
    this.#hash2 = (this.#hash2 + this.#hash1) | 0;
  }

  /** Passes over a number, `true`, `false` or `null`. */
  #word(from: number, seed1: number, seed2: number): number {
    const bytes = this.#bytes;
    const end = wordEnd(bytes, from);
    let hash = seed1 ^ fnvOffset;
    let all = seed2;
    let scaled = false;
    for (let at = from; at < end; at += 1) {
      const byte = bytes[at] ?? 0;
      if ((byte | 0x20) === exponent) scaled = true;
      hash = Math.imul(hash ^ byte, fnvPrime);
      all = (all + hash) | 0;
    }
    if (scaled ? isNumber(bytes[from] ?? 0) : end - from > digitsKept) this.exact = false;
    this.#hash1 = hash;
    this.#hash2 = all;
    return end;
  }

  /** True where the key passed over last, which stands at `start` with its quotes, is the member's. */
  #isMember(start: number, end: number): boolean {
    if (this.#escaped) this.escapedKeys = true;
    if (this.#hash1 !== this.#memberHash) return false;
    const name = this.#member;
    if (name === null || name.length !== end - start - 2) return false;
    for (let i = 0; i < name.length; i += 1) {
      if (name[i] !== this.#bytes[start + 1 + i]) return false;
    }
    return true;
  }
}

/** What is kept of the levels around a value while it is passed over; one for all scans, since none waits. */
interface Levels {
  /** 1 within an object, 0 within an array. */
  readonly inObject: Uint8Array;
  /** What the level itself is hashed behind, and the sum of the level around it; two halves each. */
  readonly seeds: Int32Array;
  readonly sums: Int32Array;
  /** The keys of the object so far. */
  readonly keys: readonly KeySet[];
  readonly paths: (IgnoredPaths | 'all' | null)[];
}

let levels: Levels | null = null;

function newLevels(): Levels {
  const count = nestingMax + 1;
  return {
    inObject: new Uint8Array(count),
    seeds: new Int32Array(count * 2),
    sums: new Int32Array(count * 2),
    keys: Array.from({ length: count }, () => new KeySet()),
    paths: Array.from({ length: count }, () => null),
  };
}

/** Hashes of one object's keys. Those of objects before it are told by their number, so that none is ever cleared. */
class KeySet {
  #slots = new Int32Array(32);
  #number = 0;
  #size = 0;

  clear(): void {
    this.#number = (this.#number + 1) | 0;
    this.#size = 0;
    // The numbers have begun anew.
    if (this.#number === 0) {
      this.#slots.fill(0);
      this.#number = 1;
    }
  }

  /** Adds a hash; false where it is there. */
  add(hash: number): boolean {
    if (this.#size * 4 > this.#slots.length) this.#grow();
    const slots = this.#slots;
    const mask = slots.length - 2;
    let slot = (hash ^ (hash >>> 15)) << 1;
    for (;;) {
      slot &= mask;
      if (slots[slot + 1] !== this.#number) break;
      if (slots[slot] === hash) return false;
      slot += 2;
    }
    slots[slot] = hash;
    slots[slot + 1] = this.#number;
    this.#size += 1;
    return true;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Int32Array(old.length * 2);
    const number = this.#number;
    this.clear();
    for (let slot = 0; slot < old.length; slot += 2) {
      if (old[slot + 1] === number) this.add(old[slot] ?? 0);
    }
  }
}

/** Dotted paths that are left out of a digest. An array's elements have the array's path; a key may hold dots itself. */
export class IgnoredPaths {
  readonly #keys = new Map<
    number,
    { readonly hash2: number; readonly inner: IgnoredPaths | 'all' }
  >();

  constructor(paths: readonly string[]) {
    const inner = new Map<string, string[]>();
    for (const path of paths) {
      for (let end = path.indexOf('.'); end >= 0; end = path.indexOf('.', end + 1)) {
        const head = path.slice(0, end);
        inner.set(head, [...(inner.get(head) ?? []), path.slice(end + 1)]);
      }
      inner.set(path, [...(inner.get(path) ?? []), '']);
    }
    for (const [key, rest] of inner) {
      const { hash1, hash2 } = hashesOf(Buffer.from(key));
      this.#keys.set(hash1, {
        hash2,
        inner: rest.includes('') ? 'all' : new IgnoredPaths(rest),
      });
    }
  }

  /** What is left out of the value of a key with these hashes. */
  within(hash1: number, hash2: number): IgnoredPaths | 'all' | null {
    const found = this.#keys.get(hash1);
    return found === undefined || found.hash2 !== hash2 ? null : found.inner;
  }
}

/** The index of the first byte from `from` on that is not white space. */
export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/** The hashes of a key. */
function hashesOf(name: Uint8Array): { readonly hash1: number; readonly hash2: number } {
  let hash1 = Math.imul(fnvOffset ^ quote, fnvPrime);
  let hash2 = 0;
  for (const byte of name) {
    hash1 = Math.imul(hash1 ^ byte, fnvPrime);
    hash2 = (hash2 + hash1) | 0;
  }
  return { hash1, hash2 };
}

/** What stands behind a backslash, and the byte that it stands for. */
const escapes: ReadonlyMap<number, number> = new Map(
  [...'"\\/bfnrt'].map((mark, at) => [mark.charCodeAt(0), '"\\/\b\f\n\r\t'.charCodeAt(at)]),
);
const unicodeEscape = 0x75;

/** The number that four hexadecimal digits are, or -1. */
function hexAt(bytes: Uint8Array, from: number): number {
  let unit = 0;
  for (let at = from; at < from + 4; at += 1) {
    const byte = bytes[at] ?? 0;
    const lower = byte | 0x20;
    if (isDigit(byte)) unit = unit * 16 + byte - zero;
    else if (lower >= 0x61 && lower <= 0x66) unit = unit * 16 + lower - 0x57;
    else return -1;
  }
  return unit;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function isDigit(byte: number): boolean {
  return byte >= zero && byte <= 0x39;
}

/** True where a number begins. */
function isNumber(first: number): boolean {
  return first === minus || isDigit(first);
}

const words = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')];

function wordEnd(bytes: Uint8Array, from: number): number {
  const first = bytes[from] ?? 0;
  if (isNumber(first)) return numberEnd(bytes, from);
  for (const word of words) {
    if (word[0] !== first) continue;
    for (let i = 1; i < word.length; i += 1) {
      if (bytes[from + i] !== word[i]) throw malformed(from + i);
    }
    return from + word.length;
  }
  throw malformed(from);
}

/** `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?` */
function numberEnd(bytes: Uint8Array, from: number): number {
  let at = bytes[from] === minus ? from + 1 : from;
  at = bytes[at] === zero ? at + 1 : digitsEnd(bytes, at);
  if (bytes[at] === dot) at = digitsEnd(bytes, at + 1);
  if (((bytes[at] ?? 0) | 0x20) === exponent) {
    const sign = bytes[at + 1];
    at = digitsEnd(bytes, sign === minus || sign === 0x2b ? at + 2 : at + 1);
  }
  return at;
}

/** The end of at least one digit. */
function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isDigit(bytes[at] ?? 0)) at += 1;
  if (at === from) throw malformed(at);
  return at;
}

function malformed(at: number): SyntaxError {
  return new SyntaxError(`not JSON at byte ${at}`);
}
