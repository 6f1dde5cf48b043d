// The values of one column in the order of the file, encoded: plain, or as indexes of a dictionary
// where that at least halves them. Everything is computed from typed arrays, with the texts as
// UTF-8, and a dictionary's facts from its few values.

import { bitsOf, hybridBytesMax, writeHybrid } from './hybrid.ts';
import type { ColumnType } from './schema.ts';
import { type ColumnValues, FewTexts, fewMax, lengthBytes, ManyTexts } from './values.ts';

/** A bound of some values, as statistics have it. */
export type Bound = number | bigint | boolean | Uint8Array;

/** The least and the greatest of some values; undefined: there are none that can be compared. */
export interface Bounds {
  readonly min: Bound | undefined;
  readonly max: Bound | undefined;
}

/** Encoded values of one column. */
export interface EncodedValues {
  readonly length: number;
  /** The index after the last value of a page that begins with a value. */
  pageEnd(from: number): number;
  /** A page's values, valid until the next call. */
  page(from: number, to: number): Uint8Array;
  bounds(from: number, to: number): Bounds;
  /** The dictionary; null: the values are plain. */
  readonly dictionary: { readonly count: number; readonly bytes: Uint8Array } | null;
  /** The texts, or the distinct ones; null: the values are no texts. */
  readonly texts: ManyTexts | null;
}

/** Pages stay near this size, so that an index of pages is useful. */
const pageBytes = 256 * 1024;
/** Indexes of a dictionary in a page. */
const pageIndexes = 64 * 1024;

/** The order of values in the file: their indexes; null: as they are. */
export type ValueOrder = Uint32Array | null;

/** Encodes a column's values. */
export function encodedValues(
  type: ColumnType,
  values: ColumnValues,
  order: ValueOrder,
): EncodedValues {
  if (type === 'text' || type === 'json') {
    return encodedTexts(values.texts ?? new FewTexts(), order);
  }
  const numbers = inOrder(values.numbers.subarray(0, values.length), order);
  const dictionary = type === 'int' ? dictionaryOf(numbers) : null;
  if (dictionary === null) return new PlainNumbers(type, numbers);
  const { indexes, distinct } = dictionary;
  const bytes = bytesOf(new Int32Array(distinct));
  return new Indexes(indexes, {
    dictionary: { count: distinct.length, bytes },
    texts: null,
    boundOf: (index) => distinct[index] ?? 0,
  });
}

function encodedTexts(texts: FewTexts | ManyTexts, order: ValueOrder): EncodedValues {
  if (texts instanceof ManyTexts) return new PlainTexts(sortedTexts(texts, order));
  const indexes = inOrder(texts.numbers.subarray(0, texts.length), order);
  const distinct = new ManyTexts();
  for (const text of texts.all) distinct.push(text);
  const bytes = distinct.bytes.subarray(0, distinct.startOf(distinct.length));
  let plain = 0;
  for (const index of indexes) plain += (distinct.ends[index] ?? 0) - distinct.startOf(index);
  if (!isWorth(bytes.length, distinct.length, { count: indexes.length, bytes: plain })) {
    const all = new ManyTexts();
    for (const index of indexes) all.copy(distinct, index);
    return new PlainTexts(all);
  }
  return new Indexes(indexes, {
    dictionary: { count: distinct.length, bytes },
    texts: distinct,
    boundOf: (index) => textAt(distinct, index),
  });
}

/** True if a dictionary and the indexes take at most half of the plain values. */
function isWorth(
  bytes: number,
  distinct: number,
  plain: { readonly count: number; readonly bytes: number },
): boolean {
  const indexBytes = Math.ceil((plain.count * bitsOf(distinct - 1)) / 8);
  return distinct > 0 && 2 * (bytes + indexBytes) <= plain.bytes;
}

/** Distinct integers and the index of each; null: a dictionary is not worth it. */
function dictionaryOf(numbers: Float64Array) {
  const known = new Map<number, number>();
  const indexes = new Uint16Array(numbers.length);
  let last = Number.NaN;
  let lastIndex = 0;
  for (let i = 0; i < numbers.length; i += 1) {
    const number = numbers[i] ?? 0;
    if (number !== last) {
      const index = known.get(number) ?? known.size;
      if (index === fewMax) return null;
      if (index === known.size) known.set(number, index);
      last = number;
      lastIndex = index;
    }
    indexes[i] = lastIndex;
  }
  const plain = { count: numbers.length, bytes: numbers.length * 4 };
  if (!isWorth(known.size * 4, known.size, plain)) return null;
  return { indexes, distinct: [...known.keys()] };
}

function inOrder<A extends Float64Array | Uint16Array>(values: A, order: ValueOrder): A {
  if (order === null) return values;
  const sorted = values.slice() as A;
  for (let i = 0; i < order.length; i += 1) sorted[i] = values[order[i] ?? 0] ?? 0;
  return sorted;
}

function sortedTexts(texts: ManyTexts, order: ValueOrder): ManyTexts {
  if (order === null) return texts;
  const sorted = new ManyTexts();
  for (const index of order) sorted.copy(texts, index);
  return sorted;
}

/** The bytes of numbers. Parquet is little-endian, as is every platform that sluice runs on. */
function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Bytes of a plain value. */
const plainBytes = { int: 4, long: 8, double: 8, bool: 1 / 8 };
type NumberType = keyof typeof plainBytes;

class PlainNumbers implements EncodedValues {
  readonly dictionary = null;
  readonly texts = null;
  readonly #type: NumberType;
  readonly #numbers: Float64Array;

  constructor(type: NumberType, numbers: Float64Array) {
    this.#type = type;
    this.#numbers = numbers;
  }

  get length(): number {
    return this.#numbers.length;
  }

  pageEnd(from: number): number {
    return from + pageBytes / plainBytes[this.#type];
  }

  page(from: number, to: number): Uint8Array {
    const numbers = this.#numbers.subarray(from, to);
    switch (this.#type) {
      case 'int':
        return bytesOf(new Int32Array(numbers));
      case 'long':
        return bytesOf(longs(numbers));
      case 'bool':
        return bits(numbers);
      case 'double':
        return bytesOf(numbers);
    }
  }

  bounds(from: number, to: number): Bounds {
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    for (let i = from; i < to; i += 1) {
      const number = this.#numbers[i] ?? 0;
      if (number < min) min = number;
      if (number > max) max = number;
    }
    if (min > max) return { min: undefined, max: undefined };
    const type = this.#type;
    if (type === 'bool') return { min: min === 1, max: max === 1 };
    if (type === 'long') return { min: BigInt(min), max: BigInt(max) };
    // Of the two zeros, which are equal, a bound is the outer one.
    return { min: min === 0 && type === 'double' ? -0 : min, max: max === 0 ? 0 : max };
  }
}

/** Safe integers as 64 bits. */
function longs(numbers: Float64Array): Int32Array {
  const words = new Int32Array(numbers.length * 2);
  for (let i = 0; i < numbers.length; i += 1) {
    const number = numbers[i] ?? 0;
    words[i * 2] = number;
    words[i * 2 + 1] = Math.floor(number / 2 ** 32);
  }
  return words;
}

function bits(numbers: Float64Array): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(numbers.length / 8));
  for (let i = 0; i < numbers.length; i += 1) {
    if (numbers[i] === 1) bytes[i >> 3] = (bytes[i >> 3] ?? 0) | (1 << (i & 7));
  }
  return bytes;
}

class PlainTexts implements EncodedValues {
  readonly dictionary = null;
  readonly texts: ManyTexts;

  constructor(texts: ManyTexts) {
    this.texts = texts;
  }

  get length(): number {
    return this.texts.length;
  }

  pageEnd(from: number): number {
    const { ends, length } = this.texts;
    const most = this.texts.startOf(from) + pageBytes;
    let to = from + 1;
    while (to < length && (ends[to] ?? 0) <= most) to += 1;
    return to;
  }

  page(from: number, to: number): Uint8Array {
    return this.texts.bytes.subarray(this.texts.startOf(from), this.texts.startOf(to));
  }

  bounds(from: number, to: number): Bounds {
    if (from === to) return { min: undefined, max: undefined };
    let [min, max] = [from, from];
    for (let i = from + 1; i < to; i += 1) {
      if (compareTexts(this.texts, i, min) < 0) min = i;
      if (compareTexts(this.texts, i, max) > 0) max = i;
    }
    return { min: textAt(this.texts, min), max: textAt(this.texts, max) };
  }
}

/** A copy, because statistics outlive the column. */
function textAt(texts: ManyTexts, index: number): Uint8Array {
  return Uint8Array.from(
    texts.bytes.subarray(texts.startOf(index) + lengthBytes, texts.ends[index]),
  );
}

/** By bytes, which is the order of code points. */
function compareTexts({ bytes, ends }: ManyTexts, one: number, other: number): number {
  let left = (one === 0 ? 0 : (ends[one - 1] ?? 0)) + lengthBytes;
  let right = (other === 0 ? 0 : (ends[other - 1] ?? 0)) + lengthBytes;
  const leftEnd = ends[one] ?? 0;
  const rightEnd = ends[other] ?? 0;
  while (left < leftEnd && right < rightEnd) {
    const difference = (bytes[left] ?? 0) - (bytes[right] ?? 0);
    if (difference !== 0) return difference;
    left += 1;
    right += 1;
  }
  return leftEnd - left - (rightEnd - right);
}

interface Dictionary extends Pick<EncodedValues, 'texts'> {
  readonly dictionary: NonNullable<EncodedValues['dictionary']>;
  boundOf(index: number): number | Uint8Array;
}

class Indexes implements EncodedValues {
  readonly dictionary: NonNullable<EncodedValues['dictionary']>;
  readonly texts: ManyTexts | null;
  readonly #indexes: Uint16Array;
  readonly #boundOf: Dictionary['boundOf'];
  readonly #bits: number;

  constructor(indexes: Uint16Array, { dictionary, texts, boundOf }: Dictionary) {
    this.dictionary = dictionary;
    this.texts = texts;
    this.#indexes = indexes;
    this.#boundOf = boundOf;
    this.#bits = bitsOf(dictionary.count - 1);
  }

  get length(): number {
    return this.#indexes.length;
  }

  pageEnd(from: number): number {
    return from + pageIndexes;
  }

  page(from: number, to: number): Uint8Array {
    const width = this.#bits;
    const bytes = new Uint8Array(1 + hybridBytesMax(to - from, width));
    bytes[0] = width;
    return bytes.subarray(
      0,
      writeHybrid({ values: this.#indexes, from, to, bits: width }, bytes, 1),
    );
  }

  bounds(from: number, to: number): Bounds {
    const isUsed = new Uint8Array(this.dictionary.count);
    for (let i = from; i < to; i += 1) isUsed[this.#indexes[i] ?? 0] = 1;
    let min: number | Uint8Array | undefined;
    let max: number | Uint8Array | undefined;
    for (let index = 0; index < isUsed.length; index += 1) {
      if (isUsed[index] === 0) continue;
      const bound = this.#boundOf(index);
      if (min === undefined || compareBounds(bound, min) < 0) min = bound;
      if (max === undefined || compareBounds(bound, max) > 0) max = bound;
    }
    return { min, max };
  }
}

/** Compares bounds of one column. */
export function compareBounds(one: Bound, other: Bound): number {
  if (one instanceof Uint8Array && other instanceof Uint8Array) return Buffer.compare(one, other);
  if (one < other) return -1;
  return one > other ? 1 : 0;
}
