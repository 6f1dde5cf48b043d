// Writes the lines of many records in one call, from tables of the transcoder's knowledge, as long
// as the records are simple. Invariants: a line written here equals the transcoder's; a run stops
// at the first record for which that is not certain. That record is left to the transcoder; if
// there are many, the next run is delayed.

import type { Copying } from '../contracts/index.ts';
import type { Kind, KnownShape, LineBuffer, RecordSpans, TranscodedPage } from './known.ts';
import { forms, Tables } from './tables.ts';
import { Full, sharedMemory, type WasmMemory } from './wasm-memory.ts';

/** Maximum number of records left to the transcoder after one that was not simple. */
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
  /** True if the whole knowledge exceeds the available memory. */
  #isTooMuch = false;
  #left = 0;
  #pause = 1;

  /** Null if nothing can be written in runs. `shapes`: all known ones. */
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
   * Writes lines of records from `first` on, and returns the end of each, 0 for no line; valid
   * until the next call.
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

  /** The page is released. */
  end(): void {
    this.#memory.unload();
  }

  /**
   * The next record is left to the transcoder; if there was none before it, several following ones
   * too.
   */
  #stop(ends: Uint32Array): Uint32Array {
    this.#pause = ends.length > 0 ? 1 : Math.min(pauseMax, this.#pause * 2);
    this.#left = this.#pause;
    return ends;
  }

  /** A shape, or one of its kinds, is known now. */
  add(shape: KnownShape, kind?: Kind): void {
    // Dropped tables are rebuilt with the whole knowledge when needed.
    if (!this.#tables?.isKept) return;
    const tables = this.#tables;
    this.#fit(() => (kind === undefined ? tables.addShape(shape) : tables.addKind(shape, kind)));
  }

  /** Some knowledge is or will be dropped: the uses are counted first. */
  forget(): void {
    if (this.#tables?.isKept) this.#tables.countUses();
    this.#tables = null;
    this.#isTooMuch = false;
  }

  /** Address of the first shape; 0: none. */
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

  /** Adds to the tables; false if there was no space, and the tables are dropped. */
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
