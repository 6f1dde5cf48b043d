// The memory of encoded lines. Lines of a page are shared by all sinks that want them alike, and by several batches of one
// sink. Each of them holds the memory, and so does the encoder as long as a sink may come to the page. A holder that never
// releases costs only time: then a garbage collection frees the memory. Released memory is freed at once, because V8 counts
// it as garbage otherwise, and collects the whole heap every few pages. Invariant: memory is freed when its last holder has
// released it, so no reader is left. If there were one, an empty buffer would throw, and no wrong byte would be sent.

import { free } from '../tools/index.ts';

/** Counts the holders of one buffer. */
export class LineMemory {
  #bytes: Buffer<ArrayBuffer> | null = null;
  #holders = 1;

  /** The buffer, whose memory belongs to the lines alone. */
  own(bytes: Buffer<ArrayBuffer>): void {
    this.#bytes = bytes;
  }

  /** One more reader. */
  hold(): void {
    this.#holders += 1;
  }

  /** A reader is done, and will read no byte any more. */
  release(): void {
    this.#holders -= 1;
    if (this.#holders > 0 || this.#bytes === null) return;
    free(this.#bytes);
    this.#bytes = null;
  }
}
