// Collects a body of unknown length in one buffer. Joining pieces at the end would need the memory
// twice; memory that is not yet written to costs nothing, so the buffer grows in large steps, and
// is released at once after use, because several such buffers could pile up before a garbage
// collection.

const firstBytes = 64 * 1024;
/** Few steps to a large body, of which little is copied. */
const growth = 4;

/** Collects one body. */
export class GrowingBody {
  readonly #bytesMax: number;
  #memory: Buffer<ArrayBuffer>;
  #length = 0;

  /** `bytesMax`: never exceeded; `expected`: an estimate. */
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

  /** The body; nothing may be added afterwards. */
  take(): Uint8Array {
    const body = this.#memory.subarray(0, this.#length);
    this.#memory = nothing;
    return body;
  }

  /** The body is abandoned. A body from `take` stays valid. */
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

/** Releases a buffer at once; none of its views may be in use. */
export function free({ buffer }: Buffer<ArrayBuffer>): void {
  if (buffer.byteLength > 0) buffer.transfer(0);
}
