// Writes the content of a line's gaps, as ../template.ts and ../escaping.ts do. Returns its end, or
// 0 if not certain.

import {
  atCare,
  cares,
  copy,
  ends,
  fractionCare,
  highCare,
  isDigit,
  pageStamp,
  starts,
  timeMin,
} from './memory';

/** The forms of ../runs.ts that are distinguished here. */
const cefForm: u32 = 0;
const leefForm: u32 = 1;
const textForm: u32 = 2;
const visibleForm: u32 = 3;

/** `JanFebMar…`, for the clock. */
const months: usize = memory.data<u8>([
  74, 97, 110, 70, 101, 98, 77, 97, 114, 65, 112, 114, 77, 97, 121, 74, 117, 110, 74, 117, 108, 65,
  117, 103, 83, 101, 112, 79, 99, 116, 78, 111, 118, 68, 101, 99,
]);

/** A text or a number in the form of the line. */
export function value(leaf: usize, form: u32, at: usize): usize {
  const start = load<u32>(starts + leaf * 4);
  const end = load<u32>(ends + leaf * 4);
  const care = load<u32>(cares + leaf * 4) & ~(atCare | fractionCare);
  // Keys and values of pairs are written without blanks at their ends.
  if (form <= leefForm && (load<u8>(start) === 0x20 || load<u8>(end - 1) === 0x20)) return 0;
  if (care !== 0) {
    if (form === leefForm || form === textForm) return plainText(start, end, form === leefForm, at);
    if (form === cefForm && care !== highCare) return escapedCef(start, end, at);
    if (form <= visibleForm && !isPlain(start, end)) return 0;
  }
  return copy(start, end - start, at);
}

/** A C1 control, or the line or paragraph separator, starts here in UTF-8. */
function isUnseen(byte: u32, at: usize): bool {
  if (byte === 0xc2) return load<u8>(at, 1) < 0xa0;
  return byte === 0xe2 && load<u8>(at, 1) === 0x80 && (load<u8>(at, 2) & 0xfe) === 0xa8;
}

/** True if every character is visible. */
export function isPlain(start: usize, end: usize): bool {
  for (let at = start; at < end; at += 1) {
    const byte = <u32>load<u8>(at);
    if (byte < 0x7f) continue;
    if (byte === 0x7f || isUnseen(byte, at)) return false;
  }
  return true;
}

/** True if every character is visible and none is an escaped line feed. */
export function isLine(start: usize, end: usize): bool {
  for (let at = start; at < end; at += 1) {
    if (load<u8>(at) !== 0x5c) continue;
    at += 1;
    if (load<u8>(at) === 0x6e) return false;
  }
  return isPlain(start, end);
}

/** As a value of CEF's extension. */
function escapedCef(start: usize, end: usize, out: usize): usize {
  let to = out;
  for (let from = start; from < end; from += 1) {
    const byte = <u32>load<u8>(from);
    if (byte === 0x7f || isUnseen(byte, from)) return 0;
    if (byte === 0x5c) {
      from += 1;
      const mark = load<u8>(from);
      if (mark !== 0x22) {
        store<u8>(to, 0x5c);
        to += 1;
      }
      store<u8>(to, mark);
    } else {
      if (byte === 0x3d) {
        store<u8>(to, 0x5c);
        to += 1;
      }
      store<u8>(to, <u8>byte);
    }
    to += 1;
  }
  return to;
}

/** Verbatim, on one line; `isLeef`: with look-alikes. */
function plainText(start: usize, end: usize, isLeef: bool, out: usize): usize {
  let to = out;
  for (let from = start; from < end; from += 1) {
    let byte = <u32>load<u8>(from);
    if (byte === 0x7f || isUnseen(byte, from)) return 0;
    if (byte === 0x5c) {
      from += 1;
      byte = load<u8>(from);
      if (byte === 0x6e) {
        if (from === start + 1 || from === end - 1) return 0;
        byte = 0x20;
      }
    }
    if (isLeef && (byte === 0x7c || byte === 0x5e)) {
      // U+00A6 and U+02C6.
      store<u16>(to, byte === 0x7c ? 0xa6c2 : 0x86cb);
      to += 2;
    } else {
      store<u8>(to, <u8>byte);
      to += 1;
    }
  }
  return to;
}

/** Epoch milliseconds of 13 digits; longer ones are rare. */
export function milliseconds(time: f64, at: usize): usize {
  if (!(time >= timeMin && time < 1e13)) return 0;
  let left = <u64>time;
  for (let place = at + 12; place >= at; place -= 1) {
    const next = left / 10;
    store<u8>(place, 0x30 + <u8>(left - next * 10));
    left = next;
  }
  return at + 13;
}

/** Address of a time's text in RFC 3339 in UTC (guards.ts); 0 if it has another form. */
function timeText(leaf: i32): usize {
  if (leaf < 0) return pageStamp;
  const start: usize = load<u32>(starts + leaf * 4);
  return load<u8>(start, 4) === 0x2d ? start : 0;
}

/** `2026-11-23T12:34:56.789Z`. */
export function stamp(leaf: i32, at: usize): usize {
  const start = timeText(leaf);
  if (start === 0) return 0;
  copy(start, 24, at);
  let place = at + 20;
  if (load<u8>(at, 19) === 0x2e) while (place < at + 23 && isDigit(load<u8>(place))) place += 1;
  for (; place < at + 23; place += 1) store<u8>(place, 0x30);
  store<u8>(at, 0x2e, 19);
  store<u8>(at, 0x5a, 23);
  return at + 24;
}

/** `Nov  3 12:34:56`. */
export function clock(leaf: i32, at: usize): usize {
  const start = timeText(leaf);
  if (start === 0) return 0;
  const month = (load<u8>(start, 5) - 0x30) * 10 + load<u8>(start, 6) - 0x30;
  copy(months + (<usize>month - 1) * 3, 3, at);
  store<u8>(at, 0x20, 3);
  copy(start + 8, 2, at + 4);
  if (load<u8>(at, 4) === 0x30) store<u8>(at, 0x20, 4);
  store<u8>(at, 0x20, 6);
  return copy(start + 11, 8, at + 7);
}

/** Two hexadecimal digits for each of 32 bytes. */
export function hex(from: usize, to: usize): usize {
  const digits = i8x16(48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102);
  for (let half: usize = 0; half < 2; half += 1) {
    const bytes = v128.load(from + half * 16);
    const high = i8x16.swizzle(digits, i8x16.shr_u(bytes, 4));
    const low = i8x16.swizzle(digits, v128.and(bytes, i8x16.splat(15)));
    v128.store(
      to + half * 32,
      i8x16.shuffle(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
    );
    v128.store(
      to + half * 32 + 16,
      i8x16.shuffle(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31),
    );
  }
  return to + 64;
}
