// Finds the shape of a record among the known ones, and in the same pass the byte ranges of its
// values and the bytes that need care. Shapes share their beginnings, as a tree: each byte of a
// record is compared with its shape once, four at a time. Invariant: a shape is found exactly if
// the record consists of its bytes with a non-empty value of the right type in each gap; a number
// counts only if JSON would write it again unchanged.

import { leavesMax, type RecordShape } from './record-shape.ts';

/** Bytes in a text other than those that every format copies. */
export const care = {
  quote: 1,
  escape: 2,
  /** A non-ASCII byte. */
  high: 4,
  /** `=`, `|`, `^` or DEL: special in some formats. */
  mark: 8,
  at: 16,
  /** An escape other than those for `"`, `\` and LF. */
  rareEscape: 32,
  /** A number with a fraction. */
  fraction: 64,
} as const;

const kinds = new Uint8Array(256);
kinds.fill(care.high, 0x80);
for (const byte of Buffer.from('=|^\x7f')) kinds[byte] = care.mark;
kinds[0x22] = care.quote;
kinds[0x5c] = care.escape;
kinds[0x40] = care.at;

/** Maximum digits of a number that a double keeps, so that it is written again unchanged. */
export const digitsMax = 15;

interface Branch<T> {
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
  readonly kind: 'text' | 'number' | 'end';
  readonly next: Branch<T>[];
  readonly found: T | null;
}

/** Shapes, each with its associated data. */
export class ShapeTree<T> {
  /** Of the last found record: start and end of each value, and the care that it needs. */
  readonly starts: Int32Array = new Int32Array(leavesMax);
  readonly ends: Int32Array = new Int32Array(leavesMax);
  readonly cares: Uint8Array = new Uint8Array(leavesMax);
  readonly #root: Branch<T>[] = [];

  clear(): void {
    this.#root.length = 0;
  }

  add(shape: RecordShape, found: T): void {
    let level = this.#root;
    for (const [index, bytes] of shape.pieces.entries()) {
      const isEnd = index === shape.pieces.length - 1;
      const kind = isEnd ? 'end' : shape.texts[index] === true ? 'text' : 'number';
      let branch = level.find((known) => known.kind === kind && same(known.bytes, bytes));
      if (branch === undefined) {
        branch = { words: wordsOf(bytes), bytes, kind, next: [], found: isEnd ? found : null };
        level.push(branch);
      }
      level = branch.next;
    }
  }

  /** The data of the shape of the record at `bytes[start, end)`; null: unknown shape. */
  find(bytes: Uint8Array, view: DataView, start: number, end: number): T | null {
    const { starts, ends } = this;
    let level = this.#root;
    let at = start;
    let leaf = 0;
    search: for (;;) {
      for (let i = 0; i < level.length; i += 1) {
        const branch = level[i] as Branch<T>;
        const from = at + branch.bytes.length;
        if (from > end || !matches(branch, bytes, view, at)) continue;
        if (branch.kind === 'end') {
          if (from === end) return branch.found;
          continue;
        }
        const to =
          branch.kind === 'text' ? this.#text(bytes, from, leaf) : this.#number(bytes, from, leaf);
        if (to === from) continue;
        starts[leaf] = from;
        ends[leaf] = to;
        leaf += 1;
        at = to;
        level = branch.next;
        continue search;
      }
      return null;
    }
  }

  /** The end of the text that starts here. */
  #text(bytes: Uint8Array, from: number, leaf: number): number {
    let found = 0;
    let at = from;
    for (;;) {
      const kind = kinds[bytes[at] as number] as number;
      if (kind === 0) {
        at += 1;
      } else if (kind === care.quote) {
        this.cares[leaf] = found;
        return at;
      } else if (kind === care.escape) {
        const mark = bytes[at + 1];
        found |= mark === 0x22 || mark === 0x5c || mark === 0x6e ? care.escape : care.rareEscape;
        at += 2;
      } else {
        found |= kind;
        at += 1;
      }
    }
  }

  /** The end of the number that starts here; `from` if it would be written differently. */
  #number(bytes: Uint8Array, from: number, leaf: number): number {
    const start = bytes[from] === 0x2d ? from + 1 : from;
    let at = start;
    while (isDigit(bytes[at])) at += 1;
    const whole = at;
    if (bytes[at] === 0x2e) {
      at += 1;
      while (isDigit(bytes[at])) at += 1;
      // A final zero is not written again, and below 1e-6 a number is written with an exponent.
      if (bytes[at - 1] === 0x30) return from;
      if (bytes[start] === 0x30 && bytes[start + 2] === 0x30) return from;
    }
    const isMinusZero = start !== from && whole === at && bytes[start] === 0x30;
    if (at - start > digitsMax || isMinusZero) return from;
    this.cares[leaf] = whole === at ? 0 : care.fraction;
    return at;
  }
}

/** True for `0` to `9`. */
export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function matches(
  { words, bytes: piece }: Branch<unknown>,
  bytes: Uint8Array,
  view: DataView,
  at: number,
): boolean {
  const count = words.length;
  for (let i = 0; i < count; i += 1) {
    if (view.getInt32(at + i * 4, true) !== words[i]) return false;
  }
  for (let i = count * 4; i < piece.length; i += 1) if (bytes[at + i] !== piece[i]) return false;
  return true;
}

/** The bytes as little-endian words of four, without an incomplete last word. */
function wordsOf(bytes: Uint8Array): Int32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Int32Array.from({ length: bytes.length >> 2 }, (_, i) => view.getInt32(i * 4, true));
}

function same(one: Uint8Array, two: Uint8Array): boolean {
  return Buffer.compare(one, two) === 0;
}
