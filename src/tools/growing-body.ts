// A body of unknown length, gathered in one piece of memory. Pieces that are put together at the
// end would stand in memory twice; memory that is not yet written to costs nothing, so it is taken
// in large steps, and given back at once where it is not wanted any more, since the collector would
// let several such bodies pile up.

const firstBytes = 64 * 1024;
/** Few steps to a large body, of which little is copied. */
const growth = 4;

/** Gathers one body. */
export class GrowingBody {
  readonly #bytesMax: number;
  #memory: Buffer<ArrayBuffer>;
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
    const body = this.#memory.subarray(0, this.#length);
    this.#memory = nothing;
    return body;
  }

  /** It comes to nothing. What was taken stays. */
  drop(): void {
    free(this.#memory);
    this.#memory = nothing;
  }

  #grow(needed: number): void {
    const size = Math.max(needed, Math.min(this.#memory.length * growth, this.#bytesMax));
    const larger = Buffer.allocUnsafeSlow(size);
    larger.set(this.#memory.subarray(0, this.#length));
    free(this.#memory);
    this.#memory = larger;
  }
}

const nothing = Buffer.allocUnsafeSlow(0);

/** Gives a piece of memory back at once, of which nobody else has a part. */
export function free({ buffer }: Buffer<ArrayBuffer>): void {
  if (buffer.byteLength > 0) buffer.transfer(0);
}
