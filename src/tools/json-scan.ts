// One pass over the bytes of a JSON value (RFC 8259): is it well-formed, where does it end, a check over its content, and
// where the value of one of its members stands. Every byte that sluice reads passes here before it is held, so that
// records need not be parsed to be held; what is held is known to parse. What must stay true: a value is taken here
// exactly when `JSON.parse` takes it, nesting beyond the bound left out.
//
// The check is 32 bits that depend neither on the order of keys nor on white space, so that a server that prints a record
// differently does not look like one that has changed it. It is a sum over the hashes of the value's strings, numbers
// and words, each hashed together with its key. It shows a change with near certainty and proves nothing: upstream's
// own integrity is not ours to prove.

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

/** FNV-1a, 32 bit. */
const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

/** Deeper than any record known, and far from where code that follows a value downwards runs out of stack. */
export const nestingMax = 200;

/** Significant digits that a double keeps of any number (IEEE 754: floor(52 * log10(2))). */
export const digitsKept = 15;

/** Thrown for a value that is nested more than `nestingMax` levels deep. */
export class TooDeep extends Error {}

/** Passes over values within one body. */
export class JsonScan {
  /** The check of the value passed over last; never 0. */
  check = 0;
  /** Where the member's value stands in the value passed over last; `start` is -1 where it has none. */
  memberStart = -1;
  memberEnd = -1;
  /** No number passed over so far is so long, or has an exponent, that parsing might change it. */
  exact = true;
  /** The value passed over last has keys written with escapes, among which the member may be. */
  escapedKeys = false;
  readonly #bytes: Uint8Array;
  readonly #member: Uint8Array | null;
  readonly #memberHash: number;
  /** For each level: 1 within an object, 0 within an array. */
  readonly #inObject = new Uint8Array(nestingMax + 1);

  /** `member`: the name to look out for among the keys of the values themselves, not of what is within them. */
  constructor(bytes: Uint8Array, member: string | null) {
    this.#bytes = bytes;
    this.#member = member === null ? null : Buffer.from(member);
    this.#memberHash = this.#member === null ? 0 : hashOf(this.#member);
  }

  /**
   * Passes over the value that starts at `from`, where no white space may stand, and returns where it ends. Throws a
   * SyntaxError where it is not well-formed and TooDeep where it is nested too deeply.
   */
  value(from: number): number {
    const bytes = this.#bytes;
    const inObject = this.#inObject;
    this.memberStart = -1;
    this.escapedKeys = false;
    let depth = 0;
    let sum = 0;
    /** The hash of the key that the next values belong to. */
    let key = 0;
    /** True while the value passed over is the member's. */
    let ofMember = false;
    let at = from;
    for (;;) {
      const first = bytes[at];
      let opened = false;
      if (first === quote) {
        at = this.#string(at + 1, key);
        sum = (sum + this.#token) | 0;
      } else if (first === openBrace || first === openBracket) {
        if (depth === nestingMax) throw new TooDeep(`nested more than ${nestingMax} levels deep`);
        depth += 1;
        inObject[depth] = first === openBrace ? 1 : 0;
        opened = true;
        at += 1;
      } else {
        at = this.#word(at, key);
        sum = (sum + this.#token) | 0;
      }
      // What follows a value: ends of what is around it, then a comma, or the first member of what was opened.
      for (;;) {
        if (ofMember && depth === 1) {
          this.memberEnd = at;
          ofMember = false;
        }
        if (depth === 0) {
          this.check = sum >>> 0 || 1;
          return at;
        }
        at = skipSpace(bytes, at);
        const byte = bytes[at];
        const object = inObject[depth] === 1;
        if (byte === (object ? closeBrace : closeBracket)) {
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
          if (!opened) key = 0;
          break;
        }
        if (bytes[at] !== quote) throw malformed(at);
        const start = at;
        at = this.#string(at + 1, 0);
        key = this.#hash;
        sum = (sum + this.#token) | 0;
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

  /** The hash of the token passed over last, and what it adds to the check. */
  #hash = 0;
  #token = 0;
  #escaped = false;

  /** Passes over a string's text and closing quote. */
  #string(from: number, key: number): number {
    const bytes = this.#bytes;
    let hash = Math.imul(key ^ fnvOffset ^ quote, fnvPrime);
    let at = from;
    let escaped = false;
    for (;;) {
      const byte = bytes[at] ?? 0;
      if (byte === quote) break;
      if (byte < 0x20) throw malformed(at);
      hash = Math.imul(hash ^ byte, fnvPrime);
      at += 1;
      if (byte !== backslash) continue;
      if (!isEscape(bytes, at)) throw malformed(at);
      escaped = true;
      hash = Math.imul(hash ^ (bytes[at] ?? 0), fnvPrime);
      at += 1;
    }
    this.#escaped = escaped;
    this.#hash = hash;
    this.#token = hash ^ (hash >>> 15);
    return at + 1;
  }

  /** Passes over a number, `true`, `false` or `null`. */
  #word(from: number, key: number): number {
    const bytes = this.#bytes;
    const end = wordEnd(bytes, from);
    let hash = key ^ fnvOffset;
    let scaled = false;
    for (let at = from; at < end; at += 1) {
      const byte = bytes[at] ?? 0;
      if ((byte | 0x20) === exponent) scaled = true;
      hash = Math.imul(hash ^ byte, fnvPrime);
    }
    if (scaled ? isNumber(bytes[from] ?? 0) : end - from > digitsKept) this.exact = false;
    this.#hash = hash;
    this.#token = hash ^ (hash >>> 15);
    return end;
  }

  /** True where the key passed over last, which stands at `start` with its quotes, is the member's. */
  #isMember(start: number, end: number): boolean {
    if (this.#escaped) this.escapedKeys = true;
    if (this.#hash !== this.#memberHash) return false;
    const name = this.#member;
    if (name === null || name.length !== end - start - 2) return false;
    for (let i = 0; i < name.length; i += 1) {
      if (name[i] !== this.#bytes[start + 1 + i]) return false;
    }
    return true;
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

function hashOf(name: Uint8Array): number {
  let hash = Math.imul(fnvOffset ^ quote, fnvPrime);
  for (const byte of name) hash = Math.imul(hash ^ byte, fnvPrime);
  return hash;
}

const escapes: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));
const unicodeEscape = 0x75;

/** True where what stands behind a backslash is an escape. */
function isEscape(bytes: Uint8Array, at: number): boolean {
  const mark = bytes[at] ?? 0;
  if (mark !== unicodeEscape) return escapes.has(mark);
  for (let i = at + 1; i <= at + 4; i += 1) if (!isHex(bytes[i] ?? 0)) return false;
  return true;
}

function isHex(byte: number): boolean {
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
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
