// The values of one column until they are written, in typed arrays outside the heap: long-lived
// objects would fill most of the heap, and the garbage collector copies and marks them repeatedly.
// That cost more than all the rest of Parquet. A column with few distinct texts stores each once,
// with a number per occurrence, as its dictionary will; a column with many stores all side by side,
// as its pages will.

/** Maximum distinct texts of a column with few. */
export const fewMax = 1024;
const firstNumbers = 64;
const firstBytes = 16 * 1024;
/** UTF-8 bytes of a UTF-16 unit. */
const unitBytesMax = 3;
/** Bytes of the length before a text. */
export const lengthBytes = 4;

/** A stored value; one type per column. */
export type Value = string | number | boolean;

const noNumbers = new Float64Array(0);

type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/**
 * A larger array with the same content. The old one is gone at once: until the garbage collector
 * ran, all earlier sizes of a column would be in memory as well.
 */
export function grown<A extends Numbers>(array: A): A {
  const larger = array.constructor as new (of: ArrayBufferLike | number) => A;
  if (array.length === 0) return new larger(firstNumbers);
  const length = array.length + (array.length >> 1);
  return new larger((array.buffer as ArrayBuffer).transfer(length * array.BYTES_PER_ELEMENT));
}

/** Frees the memory of an array. */
function free({ buffer }: Numbers): void {
  if (buffer.byteLength > 0) (buffer as ArrayBuffer).transfer(0);
}

/** Values in insertion order. */
export class ColumnValues {
  /** Number of values. */
  length = 0;
  /** Values of a column without texts, and more; true is 1. */
  numbers: Float64Array = noNumbers;
  /** Of a column of texts; null: none yet. */
  texts: FewTexts | ManyTexts | null = null;

  push(value: Value): void {
    if (typeof value === 'string') this.#pushText(value);
    else {
      if (this.length === this.numbers.length) this.numbers = grown(this.numbers);
      this.numbers[this.length] = Number(value);
    }
    this.length += 1;
  }

  /** Frees the memory of all values. */
  free(): void {
    if (this.numbers !== noNumbers) free(this.numbers);
    this.texts?.free();
  }

  #pushText(text: string): void {
    this.texts ??= new FewTexts();
    if (this.texts.push(text)) return;
    const many = new ManyTexts();
    const { all, numbers, length } = this.texts as FewTexts;
    for (let i = 0; i < length; i++) many.push(all[numbers[i] ?? 0] ?? '');
    many.push(text);
    this.texts.free();
    this.texts = many;
  }
}

/** A column with few distinct texts. */
export class FewTexts {
  /** The distinct ones. */
  readonly all: string[] = [];
  /** The index in `all` of each value, and more. */
  numbers: Uint16Array = new Uint16Array(firstNumbers);
  length = 0;
  readonly #known = new Map<string, number>();
  /** Adjacent values are often equal. */
  #last = '';
  #lastNumber = -1;

  /** False: too many distinct texts. */
  push(text: string): boolean {
    if (this.#lastNumber < 0 || text !== this.#last) {
      const number = this.#known.get(text) ?? this.all.length;
      if (number === fewMax) return false;
      if (number === this.all.length) {
        this.all.push(text);
        this.#known.set(text, number);
      }
      this.#last = text;
      this.#lastNumber = number;
    }
    if (this.length === this.numbers.length) this.numbers = grown(this.numbers);
    this.numbers[this.length] = this.#lastNumber;
    this.length += 1;
    return true;
  }

  free(): void {
    free(this.numbers);
  }
}

/** Texts side by side as in a plain page: each is its length and its UTF-8. */
export class ManyTexts {
  bytes: Buffer = Buffer.allocUnsafeSlow(firstBytes);
  /** The end of each text, and more. */
  ends: Uint32Array = new Uint32Array(firstNumbers);
  length = 0;
  #end = 0;

  push(text: string): true {
    const most = this.#end + lengthBytes + text.length * unitBytesMax;
    if (most > this.bytes.length) this.#reserve(most);
    const length = this.bytes.write(text, this.#end + lengthBytes);
    this.#finish(length);
    return true;
  }

  /** Adds one that another column holds. */
  copy(of: ManyTexts, index: number): void {
    const from = of.startOf(index) + lengthBytes;
    const length = (of.ends[index] ?? 0) - from;
    this.#reserve(this.#end + lengthBytes + length);
    of.bytes.copy(this.bytes, this.#end + lengthBytes, from, from + length);
    this.#finish(length);
  }

  /** Where a text begins, with its length. */
  startOf(index: number): number {
    return index === 0 ? 0 : (this.ends[index - 1] ?? 0);
  }

  free(): void {
    free(this.bytes);
    free(this.ends);
  }

  #reserve(bytes: number): void {
    if (bytes <= this.bytes.length) return;
    const buffer = this.bytes.buffer as ArrayBuffer;
    const length = Math.max(bytes, this.bytes.length + (this.bytes.length >> 1));
    this.bytes = Buffer.from(buffer.transfer(length));
  }

  #finish(length: number): void {
    this.bytes.writeUInt32LE(length, this.#end);
    this.#end += lengthBytes + length;
    if (this.length === this.ends.length) this.ends = grown(this.ends);
    this.ends[this.length] = this.#end;
    this.length += 1;
  }
}
