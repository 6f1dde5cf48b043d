// The tokens of JSON (RFC 8259) in bytes: the end of a string, a number or a word, and a hash of its
// content. Invariants: a token is accepted exactly if `JSON.parse` accepts it; hashes never change,
// because they are part of uids.
//
// A hash is two halves of 32 bits that are computed differently. A token's bytes are added four at a
// time, the remaining ones with their number. A string is hashed as UTF-8, whatever its escapes; a
// lone surrogate, which has no UTF-8, as four bytes that no text has. Strings without escapes are
// hashed inline in the same way (json-scan.ts).

const quote = 0x22;
const backslash = 0x5c;
const minus = 0x2d;
const dot = 0x2e;
const zero = 0x30;
/** `e`, as the bit that distinguishes case turns `E` into it too. */
const exponent = 0x65;
const unicodeEscape = 0x75;

/** Start values of the hashes of strings and of other tokens, so that `"1"` is not `1`. */
export const stringMark = 0x811c9dc5;
const wordMark = 0x01000193;
/** Odd multipliers for the two halves: those of MurmurHash3. */
const prime1 = 0x85ebca6b;
const prime2 = 0xc2b2ae35;

/** Significant digits that a double keeps of any number (IEEE 754: floor(52 * log10(2))). */
export const digitsKept = 15;

/** Scans tokens within one body, each with two halves of a seed. */
export class TokenScan {
  /** The hash of the last token. */
  hash1 = 0;
  hash2 = 0;
  /** The last string has escapes. */
  escaped = false;
  /** No number so far is so long, or has an exponent, that parsing might change it. */
  exact = true;
  /** Byte ranges of the numbers that parsing might change, if requested. */
  inexact: number[] | null = null;
  readonly #bytes: Uint8Array;
  /** The bytes of a token that do not fill a word of four yet, and their number. */
  #rest = 0;
  #count = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Scans a string's text and closing quote. */
  string(from: number, seed1: number, seed2: number): number {
    const bytes = this.#bytes;
    this.#begin(seed1 ^ stringMark, seed2);
    this.escaped = false;
    let at = from;
    for (;;) {
      const byte = bytes[at] ?? 0;
      if (byte === quote) break;
      if (byte < 0x20) throw malformed(at);
      if (byte === backslash) {
        this.escaped = true;
        at = this.#escape(at + 1);
      } else {
        this.#add(byte);
        at += 1;
      }
    }
    this.#end();
    return at + 1;
  }

  /** Scans the characters after a backslash. */
  #escape(at: number): number {
    const bytes = this.#bytes;
    const mark = bytes[at] ?? 0;
    if (mark !== unicodeEscape) {
      const byte = escapes.get(mark);
      if (byte === undefined) throw malformed(at);
      this.#add(byte);
      return at + 1;
    }
    const unit = hexAt(bytes, at + 1);
    if (unit < 0) throw malformed(at);
    const isPaired = bytes[at + 5] === backslash && bytes[at + 6] === mark;
    const both = String.fromCharCode(unit, isPaired ? hexAt(bytes, at + 7) : 0);
    const text = String.fromCodePoint(both.codePointAt(0) ?? 0);
    if (text.isWellFormed()) for (const byte of Buffer.from(text)) this.#add(byte);
    else this.#take((0x80 << 24) | (this.#count << 16) | unit);
    return at + (text.length === 2 ? 11 : 5);
  }

  /** Scans a number, `true`, `false` or `null`. */
  word(from: number, seed1: number, seed2: number): number {
    const bytes = this.#bytes;
    const first = bytes[from] ?? 0;
    const isNumber = first === minus || isDigit(first);
    const end = isNumber ? this.#numberEnd(from) : wordEnd(bytes, from);
    this.#begin(seed1 ^ wordMark, seed2);
    let at = from;
    for (; end - at >= 4; at += 4) this.#take(wordOf(bytes, at, 4));
    this.#take(wordOf(bytes, at, end - at) | ((end - at + 1) << 24));
    return end;
  }

  #begin(half1: number, half2: number): void {
    this.hash1 = half1;
    this.hash2 = half2;
    this.#rest = 0;
    this.#count = 0;
  }

  #add(byte: number): void {
    this.#rest |= byte << (this.#count * 8);
    this.#count += 1;
    if (this.#count < 4) return;
    this.#take(this.#rest);
    this.#rest = 0;
    this.#count = 0;
  }

  #end(): void {
    this.#take(this.#rest | ((this.#count + 1) << 24));
  }

  #take(word: number): void {
    const half1 = Math.imul(this.hash1 ^ word, prime1);
    const half2 = Math.imul((this.hash2 + word) | 0, prime2);
    this.hash1 = half1 ^ (half1 >>> 15);
    this.hash2 = half2 ^ (half2 >>> 13);
  }

  /** `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?` */
  #numberEnd(from: number): number {
    const bytes = this.#bytes;
    let at = bytes[from] === minus ? from + 1 : from;
    at = bytes[at] === zero ? at + 1 : digitsEnd(bytes, at);
    if (bytes[at] === dot) at = digitsEnd(bytes, at + 1);
    const isScaled = ((bytes[at] ?? 0) | 0x20) === exponent;
    if (isScaled) {
      const sign = bytes[at + 1];
      at = digitsEnd(bytes, sign === minus || sign === 0x2b ? at + 2 : at + 1);
    }
    if (isScaled || at - from > digitsKept) {
      this.exact = false;
      this.inexact?.push(from, at);
    }
    return at;
  }
}

/** Up to four bytes as a number. */
function wordOf(bytes: Uint8Array, from: number, count: number): number {
  let word = 0;
  for (let i = 0; i < count; i += 1) word |= (bytes[from + i] ?? 0) << (i * 8);
  return word;
}

/** The hash of a key. */
export function keyHash(key: string): { readonly hash1: number; readonly hash2: number } {
  const tokens = new TokenScan(Buffer.from(JSON.stringify(key)));
  tokens.string(1, 0, 0);
  return tokens;
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

/** The character after a backslash, and the byte that it stands for. */
const escapes: ReadonlyMap<number, number> = new Map(
  [...'"\\/bfnrt'].map((mark, at) => [mark.charCodeAt(0), '"\\/\b\f\n\r\t'.charCodeAt(at)]),
);

/** The number of four hexadecimal digits, or -1. */
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

function isDigit(byte: number): boolean {
  return byte >= zero && byte <= 0x39;
}

const words = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')];

function wordEnd(bytes: Uint8Array, from: number): number {
  const first = bytes[from] ?? 0;
  for (const word of words) {
    if (word[0] !== first) continue;
    for (let i = 1; i < word.length; i += 1) {
      if (bytes[from + i] !== word[i]) throw malformed(from + i);
    }
    return from + word.length;
  }
  throw malformed(from);
}

/** The end of at least one digit. */
function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isDigit(bytes[at] ?? 0)) at += 1;
  if (at === from) throw malformed(at);
  return at;
}

/** The error for bytes that are not JSON. */
export function malformed(at: number): SyntaxError {
  return new SyntaxError(`not JSON at byte ${at}`);
}
