// The values of one column, which wait to be written. Texts would be most of what lives on the heap as
// long as that, and what lives there is copied and marked over and over: that cost more than all the
// rest of Parquet did. So few different ones stand there once each, and of a column that has many all
// are UTF-8, side by side outside the heap.

/** Different texts of a column that has few. */
const fewMax = 1024;
const firstBytes = 16 * 1024;
/** Of a UTF-16 unit in UTF-8. */
const unitBytesMax = 3;

/** As it is held: of one type in one column. */
export type Value = string | number | boolean;

/** Values in the order in which they came. */
export class ColumnValues {
  /** How many there are. */
  length = 0;
  #held: unknown[] = [];
  #texts: Map<string, string> | null = null;
  /** All texts, from the time on when they were found to be many; null: they are few. */
  #bytes: Buffer | null = null;
  readonly #ends: number[] = [];

  push(value: Value): void {
    this.length += 1;
    if (typeof value !== 'string') this.#held.push(value);
    else if (this.#bytes === null) this.#hold(value);
    else this.#append(this.#bytes, value);
  }

  /** Texts as such, or each as its bytes. */
  all(): readonly unknown[] {
    const bytes = this.#bytes;
    if (bytes === null) return this.#held;
    let start = bytes.byteOffset;
    return this.#ends.map((end) => {
      const from = start;
      start = bytes.byteOffset + end;
      return new Uint8Array(bytes.buffer, from, start - from);
    });
  }

  #hold(text: string): void {
    this.#texts ??= new Map();
    const known = this.#texts.get(text);
    if (known === undefined && this.#texts.size >= fewMax) {
      this.#texts = null;
      this.#bytes = Buffer.allocUnsafeSlow(firstBytes);
      for (const one of [...this.#held.splice(0), text]) this.#append(this.#bytes, one as string);
      return;
    }
    if (known === undefined) this.#texts.set(text, text);
    this.#held.push(known ?? text);
  }

  #append(bytes: Buffer, text: string): void {
    const at = this.#ends.at(-1) ?? 0;
    const most = at + text.length * unitBytesMax;
    if (most > bytes.length) {
      this.#bytes = Buffer.allocUnsafeSlow(Math.max(most, bytes.length * 2));
      this.#bytes.set(bytes.subarray(0, at));
    }
    this.#ends.push(at + (this.#bytes ?? bytes).write(text, at));
  }
}
