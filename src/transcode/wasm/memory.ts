// Memory that the modules here share, and operations on its bytes. Reads and writes may extend up
// to 16 bytes past the end of a value.

/** Kinds of care for a text, as in ../shape-tree.ts. */
export const escapeCare: u32 = 2;
export const highCare: u32 = 4;
export const markCare: u32 = 8;
export const atCare: u32 = 16;
export const rareEscapeCare: u32 = 32;
export const fractionCare: u32 = 64;

export const digitsMax: usize = 15;
export const timeMin: f64 = 1e12;

/** Of the last found record: start and end of each value, its care, its time. */
export const starts: usize = memory.data(256 * 4);
export const ends: usize = memory.data(256 * 4);
export const cares: usize = memory.data(256 * 4);
export const times: usize = memory.data(256 * 8, 16);
/** The page's read time as text. */
export const pageStamp: usize = memory.data(24 + 16);
/** 16 bytes of which the first n are 0xff, for each n up to 16. */
const masks: usize = memory.data(17 * 16, 16);

/** To be called once, first. */
export function prepare(): void {
  for (let n = 0; n <= 16; n += 1) memory.fill(masks + n * 16, 0xff, n);
}

/** True if two ranges of `length` bytes are equal. */
export function same(one: usize, two: usize, length: usize): bool {
  let done: usize = 0;
  for (; done + 16 <= length; done += 16) {
    if (v128.any_true(v128.xor(v128.load(one + done), v128.load(two + done)))) return false;
  }
  const rest = v128.xor(v128.load(one + done), v128.load(two + done));
  return !v128.any_true(v128.and(rest, v128.load(masks + (length - done) * 16)));
}

/** Copies `length` bytes and returns their end. */
export function copy(from: usize, length: usize, to: usize): usize {
  for (let done: usize = 0; done < length; done += 16) {
    v128.store(to + done, v128.load(from + done));
  }
  return to + length;
}

/** True for `0` to `9`. */
export function isDigit(byte: u8): bool {
  return <u32>byte - 0x30 <= 9;
}
