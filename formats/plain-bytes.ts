// Tests which records can be in a line as their own bytes: UTF-8 without a character that is
// written differently there (control characters and line separators: text.ts, json-text.ts). Most
// can, and are then copied and never converted to text. Invariant: as text, a plain record is
// unchanged by `oneLine` and `visibleJson`, and none of its bytes changes when decoded and encoded
// again.

import { isUtf8 } from 'node:buffer';

const highBits = 0x80808080;
/** Lead bytes of the relevant characters (see `hasSeparator`), in each byte of a word. */
const leadC2 = 0xc2c2c2c2;
const leadE2 = 0xe2e2e2e2;

/** Tests one record after the other, mostly of the same page. */
export class PlainBytes {
  #view: DataView = new DataView(new ArrayBuffer(0));

  /** True if a line may contain these bytes unchanged. */
  has(bytes: Uint8Array): boolean {
    if (this.#view.buffer !== bytes.buffer) this.#view = new DataView(bytes.buffer);
    const view = this.#view;
    const end = bytes.byteOffset + bytes.length;
    const lastWord = end - 4;
    let high = 0;
    let lead = false;
    let at = bytes.byteOffset;
    for (; at <= lastWord; at += 4) {
      // As in the scan of JSON (tools/json-scan.ts): bits for bytes below 0x20, and for DEL.
      const word = view.getInt32(at, true);
      const low = (word - 0x20202020) & ~word;
      if (((low | equal(word, 0x7f7f7f7f)) & highBits) !== 0) return false;
      if ((word & highBits) === 0) continue;
      high |= word;
      lead ||= ((equal(word, leadC2) | equal(word, leadE2)) & highBits) !== 0;
    }
    for (; at < end; at += 1) {
      const byte = view.getUint8(at);
      if (byte < 0x20 || byte === 0x7f) return false;
      high |= byte;
      lead ||= byte === 0xc2 || byte === 0xe2;
    }
    return (high & highBits) === 0 || (isUtf8(bytes) && !(lead && hasSeparator(bytes)));
  }
}

/** Sets a bit for a byte of the word that equals this one; `bytes` repeats it four times. */
function equal(word: number, bytes: number): number {
  const other = word ^ bytes;
  return (other - 0x01010101) & ~other;
}

/** U+0080 to U+009F, which are `C2 80` to `C2 9F`, and U+2028 and U+2029, `E2 80 A8` and `E2 80 A9`. */
function hasSeparator(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    const next = bytes[at + 1] ?? 0;
    if (byte === 0xc2 && next < 0xa0) return true;
    if (byte === 0xe2 && next === 0x80 && ((bytes[at + 2] ?? 0) & 0xfe) === 0xa8) return true;
  }
  return false;
}
