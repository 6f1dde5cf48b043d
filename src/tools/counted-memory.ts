// The memory of bodies and lines: with several readers, freed with its last one; and one that grows while a body arrives.
// The bodies of pages and the lines made from them are large and
// end soon. V8 would count them as garbage and collect the whole heap every few pages, so they are freed at once. A
// reader that never releases costs only time: then a garbage collection frees the memory. Invariant: memory is freed
// when its last holder has released it, so no reader is left. If there were one, an empty buffer would throw, and no
// wrong byte would be sent.

import { invariant, type SharedMemory } from '../contracts/index.ts';

/** Counts the holders of one buffer; its maker is the first. */
export class CountedMemory implements SharedMemory {
  readonly #freed: () => void;
  #bytes: Buffer<ArrayBuffer> | null = null;
  #holders = 1;

  /** `freed` is called when the last holder has released it. */
  constructor(freed: () => void = () => undefined) {
    this.#freed = freed;
  }

  /** The buffer, whose memory belongs to these readers alone. */
  own(bytes: Buffer<ArrayBuffer>): void {
    this.#bytes = bytes;
  }

  /** Throws if the memory is freed. */
  hold(): void {
    invariant(this.#holders > 0, 'freed memory has no reader');
    this.#holders += 1;
  }

  release(): void {
    this.#holders -= 1;
    if (this.#holders !== 0) return;
    if (this.#bytes !== null) free(this.#bytes);
    this.#bytes = null;
    this.#freed();
  }
}

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
