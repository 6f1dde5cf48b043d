// AssemblyScript, compiled to ../scan.wasm by `npm run wasm`. The scan of ../json-scan.ts over consecutive records of a
// page. It stops at the first record that is not certain, which is left to that file: one that is malformed, that goes
// beyond the loaded bytes, or that is nested deeply. Invariant: what it finds of a record equals what ../json-scan.ts finds.

const quote: u32 = 0x22;
const comma: u32 = 0x2c;
const minus: u32 = 0x2d;
const dot: u32 = 0x2e;
const zero: u32 = 0x30;
const colon: u32 = 0x3a;
const openBracket: u32 = 0x5b;
const backslash: u32 = 0x5c;
const closeBracket: u32 = 0x5d;
const openBrace: u32 = 0x7b;
const closeBrace: u32 = 0x7d;
const unicodeEscape: u32 = 0x75;

const stringMark: u32 = 0x811c9dc5;
const wordMark: u32 = 0x01000193;
const prime1: u32 = 0x85ebca6b;
const prime2: u32 = 0xc2b2ae35;
const prime3: u32 = 0x27d4eb2f;
const objectMark: u32 = 0x4f;
const arrayMark: u32 = 0x41;
const digitsKept: usize = 15;

/** Levels and keys; a record with more is not certain. */
const levelsMax: u32 = 64;
const keysMax: u32 = 512;
const comparedMax: u32 = 64;
/** Of each level: whether it is an object, two halves of a seed, two of a sum, the number of keys before it. */
const levelBytes: usize = 24;
const levels: usize = memory.data(64 * 24 + 24);
const keys: usize = memory.data(512 * 4);
const memberName: usize = memory.data(256);

/** Flags of a record. */
const escapedKeys: u32 = 1;
const repeatedKeys: u32 = 2;
/** Words of a record's findings. */
const rowBytes: usize = 36;

let memberHash: u32 = 0;
let memberLength: usize = 0;
let inexact: bool = false;
/** Of the last token. */
let hash1: u32 = 0;
let hash2: u32 = 0;
/** Bytes that do not fill a word yet. */
let rest: u32 = 0;
let count: u32 = 0;

/** Start of the memory that is unused here. */
export function begin(): usize {
  return __heap_base;
}

/** Address for the member's name, at most 256 bytes. */
export function memberPlace(): usize {
  return memberName;
}

/** The member to look for, with the hash of its key; no length: none. */
export function lookFor(hash: u32, length: usize): void {
  memberHash = hash;
  memberLength = length;
  inexact = false;
}

/** True if a number of a record since `lookFor` may change by parsing. */
export function isInexact(): bool {
  return inexact;
}

/** Stores the findings about records from `at` on at `out`, at most `most`; returns their number. A zero byte follows `end`. */
export function scan(at: usize, end: usize, out: usize, most: u32): u32 {
  for (let done: u32 = 0; done < most; done += 1) {
    const row = out + <usize>done * rowBytes;
    const wasInexact = inexact;
    const to = value(at, row);
    const next: usize = to === 0 ? end : skipSpace(to);
    const byte = <u32>load<u8>(next);
    if (byte !== comma && byte !== closeBracket) {
      inexact = wasInexact;
      return done;
    }
    store<u32>(row, <u32>at);
    store<u32>(row, <u32>to, 4);
    if (byte === closeBracket) return done + 1;
    at = skipSpace(next + 1);
  }
  return most;
}

function value(from: usize, row: usize): usize {
  let at = from;
  let depth: u32 = 0;
  let level = levels;
  let keyCount: u32 = 0;
  let flags: u32 = 0;
  let seed1: u32 = 0;
  let seed2: u32 = 0;
  let sum1: u32 = 0;
  let sum2: u32 = 0;
  let isKey = false;
  let ofMember = false;
  store<i32>(row, -1, 16);
  store<i32>(row, 0, 20);
  store<i32>(row, 0, 24);
  store<i32>(row, 0, 28);
  for (;;) {
    const start = at;
    const first = <u32>load<u8>(at);
    let half1: u32;
    let half2: u32;
    if (first === quote) {
      half1 = seed1 ^ stringMark;
      half2 = seed2;
      at += 1;
      for (;;) {
        const word = load<u32>(at);
        const low = word ^ 0x02020202;
        const other = word ^ 0x5c5c5c5c;
        const ends = (((low - 0x21212121) & ~low) | ((other - 0x01010101) & ~other)) & 0x80808080;
        if (ends === 0) {
          half1 = (half1 ^ word) * prime1;
          half1 ^= half1 >> 15;
          half2 = (half2 + word) * prime2;
          half2 ^= half2 >> 13;
          at += 4;
          continue;
        }
        const length = ctz(ends) >> 3;
        at += length;
        if (<u32>load<u8>(at) === quote) {
          const last = (word & ~((<u32>-1) << (length * 8))) | ((length + 1) << 24);
          half1 = (half1 ^ last) * prime1;
          half1 ^= half1 >> 15;
          half2 = (half2 + last) * prime2;
          half2 ^= half2 >> 13;
          at += 1;
        } else {
          hash1 = half1;
          hash2 = half2;
          rest = word & ~((<u32>-1) << (length * 8));
          count = length;
          at = stringEnd(at);
          if (at === 0) return 0;
          half1 = hash1;
          half2 = hash2;
          if (isKey && depth === 1) flags |= escapedKeys;
        }
        break;
      }
    } else if (isKey) {
      return 0;
    } else if (first === openBrace || first === openBracket) {
      if (depth === levelsMax) return 0;
      const isObject = first === openBrace;
      const begun = isObject ? 0 : arrayMark;
      at = skipSpace(at + 1);
      if (<u32>load<u8>(at) !== (isObject ? closeBrace : closeBracket)) {
        depth += 1;
        level += levelBytes;
        store<u32>(level, isObject ? 1 : 0);
        store<u32>(level, seed1, 4);
        store<u32>(level, seed2, 8);
        store<u32>(level, sum1, 12);
        store<u32>(level, sum2, 16);
        store<u32>(level, keyCount, 20);
        sum1 = begun;
        sum2 = 0;
        seed1 = begun;
        seed2 = 0;
        isKey = isObject;
        continue;
      }
      half1 = (seed1 ^ (isObject ? objectMark : arrayMark)) * prime3 + begun;
      half2 = seed2 * prime3;
      at += 1;
    } else {
      at = plainToken(at, seed1, seed2);
      if (at === 0) return 0;
      half1 = hash1;
      half2 = hash2;
    }
    if (isKey) {
      seed1 = half1;
      seed2 = half2;
      if (keyCount === keysMax) return 0;
      store<u32>(keys + keyCount * 4, half1);
      keyCount += 1;
      const end = at;
      at = skipSpace(at);
      if (<u32>load<u8>(at) !== colon) return 0;
      at = skipSpace(at + 1);
      if (depth === 1 && half1 === memberHash && isMember(start, end)) {
        store<u32>(row, <u32>at, 16);
        ofMember = true;
      }
      isKey = false;
      continue;
    }
    for (;;) {
      half1 += (half2 ^ (half2 >> 15)) * prime1;
      half2 += (half1 ^ (half1 >> 13)) * prime2;
      half1 += (half2 ^ (half2 >> 16)) * prime3;
      if (depth === 0) {
        store<u32>(row, half1, 8);
        store<u32>(row, half2, 12);
        store<u32>(row, flags, 32);
        return at;
      }
      const isObject = load<u32>(level) !== 0;
      sum1 = isObject ? sum1 + half1 : half1;
      sum2 = isObject ? sum2 + half2 : half2;
      if (ofMember && depth === 1) {
        store<u32>(row, <u32>at, 20);
        store<u32>(row, half1, 24);
        store<u32>(row, half2, 28);
        ofMember = false;
      }
      at = skipSpace(at);
      const byte = <u32>load<u8>(at);
      if (byte === comma) {
        at = skipSpace(at + 1);
        seed1 = isObject ? 0 : sum1;
        seed2 = isObject ? 0 : sum2;
        isKey = isObject;
        break;
      }
      if (byte !== (isObject ? closeBrace : closeBracket)) return 0;
      if (isObject) {
        const before = load<u32>(level, 20);
        if (keyCount - before > comparedMax) return 0;
        if (hasTwice(before, keyCount)) flags |= repeatedKeys;
        keyCount = before;
      }
      half1 = (load<u32>(level, 4) ^ (isObject ? objectMark : arrayMark)) * prime3 + sum1;
      half2 = (load<u32>(level, 8) * prime3) ^ sum2;
      sum1 = load<u32>(level, 12);
      sum2 = load<u32>(level, 16);
      depth -= 1;
      level -= levelBytes;
      at += 1;
    }
  }
  // biome-ignore lint/correctness/noUnreachable: the compiler of AssemblyScript wants it.
  return 0;
}

function skipSpace(at: usize): usize {
  let byte = <u32>load<u8>(at);
  while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
    at += 1;
    byte = <u32>load<u8>(at);
  }
  return at;
}

function hasTwice(from: u32, to: u32): bool {
  for (let i = from + 1; i < to; i += 1) {
    const hash = load<u32>(keys + i * 4);
    for (let other = from; other < i; other += 1) {
      if (load<u32>(keys + other * 4) === hash) return true;
    }
  }
  return false;
}

function isMember(start: usize, end: usize): bool {
  if (memberLength === 0 || end - start - 2 !== memberLength) return false;
  for (let i: usize = 0; i < memberLength; i += 1) {
    if (load<u8>(memberName + i) !== load<u8>(start + 1 + i)) return false;
  }
  return true;
}

// The tokens, as in ../json-tokens.ts.

function take(word: u32): void {
  const half1 = (hash1 ^ word) * prime1;
  const half2 = (hash2 + word) * prime2;
  hash1 = half1 ^ (half1 >> 15);
  hash2 = half2 ^ (half2 >> 13);
}

function add(byte: u32): void {
  rest |= byte << (count * 8);
  count += 1;
  if (count < 4) return;
  take(rest);
  rest = 0;
  count = 0;
}

/** The rest of a string from its first byte that needs a look; 0: not certain. */
function stringEnd(from: usize): usize {
  let at = from;
  for (;;) {
    const byte = <u32>load<u8>(at);
    if (byte === quote) break;
    if (byte < 0x20) return 0;
    at += 1;
    if (byte !== backslash) {
      add(byte);
      continue;
    }
    const mark = <u32>load<u8>(at);
    at += 1;
    if (mark === unicodeEscape) {
      let unit = hexAt(at);
      if (unit < 0) return 0;
      at += 4;
      if ((unit & 0xf800) === 0xd800) {
        // A pair; a lone surrogate is not certain.
        const low = load<u16>(at) === 0x755c ? hexAt(at + 2) : -1;
        if (unit > 0xdbff || (low & 0xfc00) !== 0xdc00) return 0;
        unit = 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
        at += 6;
      }
      addPoint(unit);
    } else {
      const plain = escapeOf(mark);
      if (plain === 0) return 0;
      add(plain);
    }
  }
  take(rest | ((count + 1) << 24));
  return at + 1;
}

/** The byte that an escape stands for; 0: none. */
function escapeOf(mark: u32): u32 {
  switch (mark) {
    case 0x22:
    case 0x5c:
    case 0x2f:
      return mark;
    case 0x62:
      return 0x08;
    case 0x66:
      return 0x0c;
    case 0x6e:
      return 0x0a;
    case 0x72:
      return 0x0d;
    case 0x74:
      return 0x09;
    default:
      return 0;
  }
}

/** Adds a character in UTF-8. */
function addPoint(point: u32): void {
  if (point < 0x80) {
    add(point);
    return;
  }
  if (point < 0x800) {
    add(0xc0 | (point >> 6));
  } else {
    if (point < 0x10000) {
      add(0xe0 | (point >> 12));
    } else {
      add(0xf0 | (point >> 18));
      add(0x80 | ((point >> 12) & 0x3f));
    }
    add(0x80 | ((point >> 6) & 0x3f));
  }
  add(0x80 | (point & 0x3f));
}

/** The number of four hexadecimal digits, or -1. */
function hexAt(from: usize): i32 {
  let unit: i32 = 0;
  for (let at = from; at < from + 4; at += 1) {
    const byte = <u32>load<u8>(at);
    const lower = byte | 0x20;
    if (byte - zero <= 9) unit = unit * 16 + (byte - zero);
    else if (lower - 0x61 <= 5) unit = unit * 16 + (lower - 0x57);
    else return -1;
  }
  return unit;
}

/** A number, `true`, `false` or `null`; 0: not certain. */
function plainToken(from: usize, seed1: u32, seed2: u32): usize {
  const first = <u32>load<u8>(from);
  const end = first === minus || first - zero <= 9 ? numberEnd(from) : wordEnd(from);
  if (end === 0) return 0;
  hash1 = seed1 ^ wordMark;
  hash2 = seed2;
  let at = from;
  for (; end - at >= 4; at += 4) take(load<u32>(at));
  const length = <u32>(end - at);
  take((load<u32>(at) & ~((<u32>-1) << (length * 8))) | ((length + 1) << 24));
  return end;
}

function wordEnd(from: usize): usize {
  const four = load<u32>(from);
  if (four === 0x65757274 || four === 0x6c6c756e) return from + 4;
  return four === 0x736c6166 && load<u8>(from, 4) === 0x65 ? from + 5 : 0;
}

function numberEnd(from: usize): usize {
  let at = <u32>load<u8>(from) === minus ? from + 1 : from;
  at = <u32>load<u8>(at) === zero ? at + 1 : digitsEnd(at);
  if (at !== 0 && <u32>load<u8>(at) === dot) at = digitsEnd(at + 1);
  if (at === 0) return 0;
  const isScaled = (<u32>load<u8>(at) | 0x20) === 0x65;
  if (isScaled) {
    const sign = <u32>load<u8>(at, 1);
    at = digitsEnd(sign === minus || sign === 0x2b ? at + 2 : at + 1);
  }
  if (isScaled || at - from > digitsKept) inexact = true;
  return at;
}

/** The end of at least one digit; 0: there is none. */
function digitsEnd(from: usize): usize {
  let at = from;
  while (<u32>load<u8>(at) - zero <= 9) at += 1;
  return at === from ? 0 : at;
}
