// A body of unknown length, gathered in one piece of memory. Pieces that are put together at the end would stand in memory
// twice; memory that is not yet written to costs nothing, so it is taken in large steps.

const firstBytes = 64 * 1024;
/** Few steps to a large body, of which little is copied. */
const growth = 4;

/** Gathers one body. */
export class GrowingBody {
  readonly #bytesMax: number;
  #memory: Buffer;
  #length = 0;

  /** `bytesMax`: more than this never comes; `expected`: as far as one can tell. */
  constructor(bytesMax: number, expected: number = firstBytes) {
    this.#bytesMax = bytesMax;
    this.#memory = Buffer.allocUnsafeSlow(Math.min(expected, bytesMax));
  }

  get length(): number {
    return this.#length;
  }

  add(chunk: Uint8Array): void {
    const end = this.#length + chunk.length;
    if (end > this.#memory.length) this.#grow(end);
    this.#memory.set(chunk, this.#length);
    this.#length = end;
  }

  /** The body; nothing may be added after that. */
  take(): Uint8Array {
    return this.#memory.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const size = Math.max(needed, Math.min(this.#memory.length * growth, this.#bytesMax));
    const larger = Buffer.allocUnsafeSlow(size);
    larger.set(this.#memory.subarray(0, this.#length));
    this.#memory = larger;
  }
}
