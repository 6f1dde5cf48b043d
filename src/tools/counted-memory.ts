// Memory with several readers, freed with its last one. The bodies of pages and the lines made from them are large and
// end soon. V8 would count them as garbage and collect the whole heap every few pages, so they are freed at once. A
// reader that never releases costs only time: then a garbage collection frees the memory. Invariant: memory is freed
// when its last holder has released it, so no reader is left. If there were one, an empty buffer would throw, and no
// wrong byte would be sent.

import { invariant, type SharedMemory } from '../contracts/index.ts';
import { free } from './growing-body.ts';

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
