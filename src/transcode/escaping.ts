// Texts of JSON copied into lines, byte by byte, where they hold what needs care. What must stay
// true: what is written is what the formats write of the text (formats/cef-escape.ts,
// formats/json-text.ts); a text for which that is not certain is not written.

const backslash = 0x5c;
const equals = 0x3d;
const del = 0x7f;
/** Two bytes that begin U+0080 to U+00BF, and U+2000 to U+203F. */
const latin = 0xc2;
const general = 0xe2;

/** As a value of CEF's extension; returns where it ends, or -1. */
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
      // A quote stands for itself; a backslash and a line break are written as JSON has them.
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

/** As JSON has it; returns where it ends, or -1. `visible`: characters that cannot be seen not. */
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

/** A C1 control, or the line or paragraph separator, begins here in UTF-8. */
function isUnseen(bytes: Uint8Array, at: number): boolean {
  const byte = bytes[at] as number;
  if (byte === latin) return (bytes[at + 1] as number) < 0xa0;
  return byte === general && bytes[at + 1] === 0x80 && ((bytes[at + 2] as number) & 0xfe) === 0xa8;
}

/**
 * True where every character can be seen: no DEL, no C1 control (`C2 80` to `C2 9F`), no U+2028 or
 * U+2029 (`E2 80 A8` and `A9`). The bytes are of a page in UTF-8, without controls of ASCII.
 */
export function isPlain(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] as number;
    if (byte === 0x7f) return false;
    const next = bytes[at + 1] as number;
    if (byte === 0xc2 && next < 0xa0) return false;
    if (byte === 0xe2 && next === 0x80 && ((bytes[at + 2] as number) & 0xfe) === 0xa8) return false;
  }
  return true;
}
