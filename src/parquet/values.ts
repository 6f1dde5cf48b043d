// The values of one column until they are written. Long-lived texts would fill most of the heap,
// and the garbage collector copies and marks them repeatedly: that cost more than all the rest of
// Parquet. So a column with few distinct texts stores each once, with a number per occurrence, and
// a column with many stores all as UTF-8, side by side outside the heap.

/** Maximum distinct texts of a column with few. */
const fewMax = 1024;
const firstNumbers = 64;
const firstBytes = 16 * 1024;
/** UTF-8 bytes of a UTF-16 unit. */
const unitBytesMax = 3;

/** A stored value; one type per column. */
export type Value = string | number | boolean;

/** Values in insertion order. */
export class ColumnValues {
  /** Number of values. */
  length = 0;
  /** For a column without texts. */
  readonly #held: Value[] = [];
  #few: FewTexts | null = null;
  #many: ManyTexts | null = null;

  push(value: Value): void {
    this.length += 1;
    if (typeof value !== 'string') this.#held.push(value);
    else if (this.#many !== null) this.#many.push(value);
    else this.#hold(value);
  }

  /** Strings, or each text as its bytes. */
  all(): readonly unknown[] {
    return this.#many?.all() ?? this.#few?.all() ?? this.#held;
  }

  #hold(text: string): void {
    this.#few ??= new FewTexts();
    if (this.#few.push(text)) return;
    this.#many = new ManyTexts();
    for (const one of this.#few.all()) this.#many.push(one);
    this.#many.push(text);
    this.#few = null;
  }
}

class FewTexts {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];
  #came = new Uint16Array(firstNumbers);
  #length = 0;

  /** False: too many distinct texts. */
  push(text: string): boolean {
    const number = this.#numbers.get(text) ?? this.#texts.length;
    if (number === fewMax) return false;
    if (number === this.#texts.length) {
      this.#texts.push(text);
      this.#numbers.set(text, number);
    }
    if (this.#length === this.#came.length) {
      const larger = new Uint16Array(this.#length * 2);
      larger.set(this.#came);
      this.#came = larger;
    }
    this.#came[this.#length] = number;
    this.#length += 1;
    return true;
  }

  all(): readonly string[] {
    return Array.from(
      this.#came.subarray(0, this.#length),
      (number) => this.#texts[number] as string,
    );
  }
}

class ManyTexts {
  #bytes = Buffer.allocUnsafeSlow(firstBytes);
  #end = 0;
  readonly #ends: number[] = [];

  push(text: string): void {
    const most = this.#end + text.length * unitBytesMax;
    if (most > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(most, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, this.#end));
      this.#bytes = larger;
    }
    this.#end += this.#bytes.write(text, this.#end);
    this.#ends.push(this.#end);
  }

  all(): readonly Uint8Array[] {
    const { buffer, byteOffset } = this.#bytes;
    let start = 0;
    return this.#ends.map((end) => {
      const from = start;
      start = end;
      return new Uint8Array(buffer, byteOffset + from, end - from);
    });
  }
}
