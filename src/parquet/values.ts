// The values of one column, which wait to be written. Texts would be most of what lives on the heap as
// long as that, and what lives there is copied and marked over and over: that cost more than all the
// rest of Parquet did. So few different ones stand there once each, with a number for every time
// that they came, and of a column that has many all are UTF-8, side by side outside the heap.

/** Different texts of a column that has few. */
const fewMax = 1024;
const firstNumbers = 64;
const firstBytes = 16 * 1024;
/** Of a UTF-16 unit in UTF-8. */
const unitBytesMax = 3;

/** As it is held: of one type in one column. */
export type Value = string | number | boolean;

/** Values in the order in which they came. */
export class ColumnValues {
  /** How many there are. */
  length = 0;
  /** Of a column without texts. */
  readonly #held: Value[] = [];
  #few: FewTexts | null = null;
  #many: ManyTexts | null = null;

  push(value: Value): void {
    this.length += 1;
    if (typeof value !== 'string') this.#held.push(value);
    else if (this.#many !== null) this.#many.push(value);
    else this.#hold(value);
  }

  /** Texts as such, or each as its bytes. */
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

  /** False: it is one too many. */
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
