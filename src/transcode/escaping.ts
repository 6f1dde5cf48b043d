// Copies JSON texts into lines, byte by byte, if they contain bytes that need care. Invariants: the
// output equals the output of the formats (formats/cef-escape.ts, formats/dialect.ts,
// formats/json-text.ts, formats/text.ts); a text for which that is not certain is not written.

const backslash = 0x5c;
const equals = 0x3d;
const del = 0x7f;
const blank = 0x20;
/** The `n` of an escaped line feed. */
const lineFeedMark = 0x6e;
const lineFeed = 0x0a;
/** `|` and `^`, each with the UTF-8 of its replacement. */
const lookAlikes: ReadonlyMap<number, number> = new Map([
  [0x7c, 0xc2a6],
  [0x5e, 0xcb86],
]);
/** Lead bytes of U+0080 to U+00BF, and of U+2000 to U+203F. */
const latin = 0xc2;
const general = 0xe2;

/** As a value of CEF's extension; returns its end, or -1. */
export function escapedCef(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: DataView,
  at: number,
): number {
  let to = at;
  for (let from = start; from < end; from += 1) {
    const byte = bytes[from] as number;
    if (byte === del || isUnseen(bytes, from)) return -1;
    if (byte === backslash) {
      from += 1;
      // A quote is written unescaped; a backslash and a line break as in JSON.
      const mark = bytes[from] as number;
      if (mark !== 0x22) {
        out.setUint8(to, backslash);
        to += 1;
      }
      out.setUint8(to, mark);
    } else {
      if (byte === equals) {
        out.setUint8(to, backslash);
        to += 1;
      }
      out.setUint8(to, byte);
    }
    to += 1;
  }
  return to;
}

/**
 * Verbatim, on one line; `look-alikes`: with LEEF's replacements for characters that would end a
 * pair. Returns its end, or -1.
 */
export function writePlainText(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: DataView,
  at: number,
  how: 'as it is' | 'look-alikes',
): number {
  let to = at;
  for (let from = start; from < end; from += 1) {
    let byte = bytes[from] as number;
    if (byte === del || isUnseen(bytes, from)) return -1;
    if (byte === backslash) {
      from += 1;
      byte = bytes[from] as number;
      if (byte === lineFeedMark) {
        // At an end, the format may trim the blank that replaces it.
        if (from === start + 1 || from === end - 1) return -1;
        byte = blank;
      }
    }
    const alike = how === 'look-alikes' ? lookAlikes.get(byte) : undefined;
    if (alike === undefined) {
      out.setUint8(to, byte);
      to += 1;
    } else {
      out.setUint16(to, alike);
      to += 2;
    }
  }
  return to;
}

/** Number of escapes. */
export function escapesIn(bytes: Uint8Array, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at += 1) {
    if (bytes[at] !== backslash) continue;
    at += 1;
    count += 1;
  }
  return count;
}

/** The text itself; returns its end. */
export function unescaped(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: DataView,
  at: number,
): number {
  let to = at;
  for (let from = start; from < end; from += 1) {
    let byte = bytes[from] as number;
    if (byte === backslash) {
      from += 1;
      byte = bytes[from] as number;
      if (byte === lineFeedMark) byte = lineFeed;
    }
    out.setUint8(to, byte);
    to += 1;
  }
  return to;
}

/** As in JSON; returns its end, or -1. `visible`: without invisible characters. */
export function escapedJson(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: DataView,
  at: number,
  visible: boolean,
): number {
  for (let from = start; from < end; from += 1) {
    if (visible && (bytes[from] === del || isUnseen(bytes, from))) return -1;
    out.setUint8(at + from - start, bytes[from] as number);
  }
  return at + end - start;
}

/** A C1 control, or the line or paragraph separator, starts here in UTF-8. */
function isUnseen(bytes: Uint8Array, at: number): boolean {
  const byte = bytes[at] as number;
  if (byte === latin) return (bytes[at + 1] as number) < 0xa0;
  return byte === general && bytes[at + 1] === 0x80 && ((bytes[at + 2] as number) & 0xfe) === 0xa8;
}

/**
 * True if every character is visible: no DEL, no C1 control (`C2 80` to `C2 9F`), no U+2028 or
 * U+2029 (`E2 80 A8` and `A9`). The bytes are of a UTF-8 page, without ASCII controls.
 */
export function isPlain(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    if (bytes[at] === del || isUnseen(bytes, at)) return false;
  }
  return true;
}

/** True if a character would be replaced by another (`plainText`). */
export function hasAlikes(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    if (lookAlikes.has(bytes[at] as number)) return true;
    if (bytes[at] !== backslash) continue;
    at += 1;
    if (bytes[at] === lineFeedMark) return true;
  }
  return false;
}

/** True if every character is visible and none is an escaped line feed. */
export function isLine(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    if (bytes[at] !== backslash) continue;
    at += 1;
    if (bytes[at] === lineFeedMark) return false;
  }
  return isPlain(bytes, start, end);
}
