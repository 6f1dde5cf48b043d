// Lines of many records in one call: what a transcoder does one by one, from tables that are kept of
// what it knows, for as long as that is plain. What must stay true: a line that is written here is
// the one that the transcoder would write, and at the first record of which that is not certain this
// stops. A record that it stopped at is the transcoder's; where many are, this waits before it tries.

import type { Copying } from '../contracts/copying.ts';
import type { Kind, KnownShape, LineBuffer, RecordSpans, TranscodedPage } from './known.ts';
import { forms, Tables } from './tables.ts';
import { Full, sharedMemory, type WasmMemory } from './wasm-memory.ts';

/** Records that are left to the transcoder, at most, after one that was not plain. */
const pauseMax = 64;
/** Epoch milliseconds from here on have 14 digits. */
const timeEnd = 1e13;
const uint32Max = 0xffff_ffff;
const none = new Uint32Array(0);

/** Writes runs of lines for one transcoder. */
export class Runs {
  readonly #memory: WasmMemory;
  readonly #form: number;
  readonly #lineBytesMax: number;
  readonly #shapes: () => readonly KnownShape[];
  #tables: Tables | null = null;
  /** True where all that is known is more than there is room for. */
  #isTooMuch = false;
  #left = 0;
  #pause = 1;

  /** Null where nothing can be written so. `shapes`: all that are known. */
  static of(
    copying: Pick<Copying, 'lineBytesMax'> & { readonly form: string },
    shapes: () => readonly KnownShape[],
  ): Runs | null {
    const memory = forms.includes(copying.form) ? sharedMemory() : null;
    return memory && new Runs(memory, copying, shapes);
  }

  private constructor(
    memory: WasmMemory,
    { form, lineBytesMax }: { readonly form: string; readonly lineBytesMax: number },
    shapes: () => readonly KnownShape[],
  ) {
    this.#memory = memory;
    this.#form = forms.indexOf(form);
    this.#lineBytesMax = Math.min(lineBytesMax, uint32Max);
    this.#shapes = shapes;
  }

  /**
   * Writes lines of records from `first` on, and returns where each ends, 0 where it has none; it
   * is valid until the next call.
   */
  write(page: TranscodedPage, places: RecordSpans, first: number, lines: LineBuffer): Uint32Array {
    if (this.#left > 0) {
      this.#left -= 1;
      return none;
    }
    const root = page.context.fetchedAt < timeEnd ? this.#root() : 0;
    const count = root === 0 ? 0 : this.#memory.load(page, places, first);
    if (count === 0) return this.#stop(none);
    const form = this.#form;
    const ends = this.#memory.run(first, { root, form, lineBytesMax: this.#lineBytesMax });
    if (ends.length > 0) lines.take(this.#memory.bytes, this.#memory.out, ends);
    const isWhole = ends.length === count || (ends.length > 0 && this.#memory.isFull);
    return isWhole ? ends : this.#stop(ends);
  }

  /** The page is let go. */
  end(): void {
    this.#memory.unload();
  }

  /** The next record is not for this, nor are some behind it where there was none before it. */
  #stop(ends: Uint32Array): Uint32Array {
    this.#pause = ends.length > 0 ? 1 : Math.min(pauseMax, this.#pause * 2);
    this.#left = this.#pause;
    return ends;
  }

  /** A shape is known now, or a kind of it. */
  add(shape: KnownShape, kind?: Kind): void {
    // Others are made anew when they are needed, with all that is known.
    if (!this.#tables?.isKept) return;
    const tables = this.#tables;
    this.#fit(() => (kind === undefined ? tables.addShape(shape) : tables.addKind(shape, kind)));
  }

  /** Some of what was known is no longer, or will not be: how often each was used is counted first. */
  forget(): void {
    if (this.#tables?.isKept) this.#tables.countUses();
    this.#tables = null;
    this.#isTooMuch = false;
  }

  /** Where the shapes begin; 0: there are none. */
  #root(): number {
    if (this.#tables?.isKept) return this.#tables.root;
    if (this.#isTooMuch) return 0;
    const make = () => {
      this.#tables = new Tables(this.#memory);
      for (const shape of this.#shapes()) this.#tables.addAll(shape);
    };
    this.#isTooMuch = !this.#fit(make) && !this.#fit(make);
    return this.#isTooMuch ? 0 : (this.#tables?.root ?? 0);
  }

  /** Adds to tables; false where there was no room, and now are no tables. */
  #fit(add: () => void): boolean {
    try {
      add();
      return true;
    } catch (error) {
      if (!(error instanceof Full)) throw error;
      this.#memory.clear();
      this.#tables = null;
      return false;
    }
  }
}
