// The memory of `lines.wasm`, one for all transcoders: fixed areas for the input and output of a
// call, and an arena for tables, which is cleared when it is full. Its size is fixed, and most of
// it is never touched.

import { readFileSync } from 'node:fs';
import type { RecordSpans, TranscodedPage } from './known.ts';

/** Exports of `lines.wasm` (wasm/lines.ts). */
interface LinesModule {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  begin(): number;
  stampPlace(): number;
  wasFull(): number;
  hashOf(from: number, length: number): number;
  run(
    ...args: [
      ...[root: number, records: number, count: number, uids: number],
      ...[out: number, outEnd: number, lineEnds: number],
      ...[form: number, lineBytesMax: number, fetchedAt: number],
    ]
  ): number;
}

/** Maximum input of one call. */
const recordsMax = 128;
const bodyBytesMax = 64 * 1024;
const outBytes = 256 * 1024;
const arenaBytes = 2 * 1024 * 1024;
const pageBytes = 64 * 1024;
/** Bytes are moved sixteen at a time, regardless of the bytes after them. */
const spill = 32;
const uidBytes = 32;

/** The module with its memory. */
export class WasmMemory {
  readonly module: LinesModule;
  readonly bytes: Buffer;
  readonly view: DataView;
  readonly out: number;
  readonly #outEnd: number;
  /** Number of times the arena was cleared. */
  age = 0;
  readonly #records: number;
  readonly #uids: number;
  readonly #ends: Uint32Array;
  readonly #body: number;
  readonly #arena: number;
  #at: number;
  /** The loaded records. */
  #page: TranscodedPage | null = null;
  #first = 0;
  #count = 0;

  constructor(module: LinesModule) {
    this.module = module;
    this.#records = aligned(module.begin());
    this.#uids = this.#records + recordsMax * 8;
    const ends = this.#uids + recordsMax * uidBytes;
    this.#body = ends + recordsMax * 4;
    this.out = aligned(this.#body + bodyBytesMax + spill);
    this.#outEnd = this.out + outBytes;
    this.#arena = aligned(this.#outEnd + spill);
    this.#at = this.#arena;
    const { memory } = module;
    memory.grow(Math.ceil((this.#arena + arenaBytes - memory.buffer.byteLength) / pageBytes));
    this.bytes = Buffer.from(memory.buffer);
    this.view = new DataView(memory.buffer);
    this.#ends = new Uint32Array(memory.buffer, ends, recordsMax);
  }

  /** Allocates zeroed bytes for tables; throws `Full` if there is no space. */
  take(length: number): number {
    const at = this.#at;
    const next = aligned(at + length + spill);
    if (next > this.bytes.length) throw new Full();
    this.#at = next;
    this.bytes.fill(0, at, next);
    return at;
  }

  /** Clears all tables. */
  clear(): void {
    this.age += 1;
    this.#at = this.#arena;
  }

  /** Loads records of a page from the first of these on, and returns their number. */
  load(page: TranscodedPage, places: RecordSpans, first: number): number {
    const known = first - this.#first;
    if (this.#page === page && known >= 0 && known < this.#count) return this.#count - known;
    const { body, uids, context } = page;
    const from = places.startOf(first);
    const most = Math.min(recordsMax, places.events.length - first);
    let count = 0;
    let to = from;
    for (; count < most; count += 1) {
      const end = places.endOf(first + count);
      if (end - from > bodyBytesMax) break;
      to = end;
      const start = places.startOf(first + count);
      this.view.setUint32(this.#records + count * 8, start - from + this.#body, true);
      this.view.setUint32(this.#records + count * 8 + 4, end - from + this.#body, true);
    }
    this.bytes.set(body.subarray(from, to), this.#body);
    this.bytes.set(uids.subarray(first * uidBytes, (first + count) * uidBytes), this.#uids);
    const stamp = new Date(context.fetchedAt).toISOString();
    this.bytes.write(stamp, this.module.stampPlace(), 'latin1');
    this.#page = page;
    this.#first = first;
    this.#count = count;
    return count;
  }

  /** True if the last run ended for lack of space. */
  get isFull(): boolean {
    return this.module.wasFull() !== 0;
  }

  /** The page is released. */
  unload(): void {
    this.#page = null;
  }

  /**
   * Writes lines of the loaded records from this one on to `out`, and returns the end of each, 0
   * for no line. Covers fewer than loaded if the space ends, or a record is not certain.
   */
  run(
    first: number,
    { root, form, lineBytesMax }: { root: number; form: number; lineBytesMax: number },
  ): Uint32Array {
    const from = first - this.#first;
    const done = this.module.run(
      ...[root, this.#records + from * 8, this.#count - from, this.#uids + from * uidBytes],
      ...[this.out, this.#outEnd, this.#ends.byteOffset],
      ...[form, lineBytesMax, this.#page?.context.fetchedAt ?? 0],
    );
    return this.#ends.subarray(0, done);
  }
}

/** Thrown if the arena is full. */
export class Full extends Error {}

function aligned(at: number): number {
  return (at + 15) & ~15;
}

/** The module in this file; null if there is none, or the runtime lacks WebAssembly with SIMD. */
export function openWasm(file: URL): WasmMemory | null {
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(file)));
    return new WasmMemory(exports as LinesModule);
  } catch {
    return null;
  }
}

let shared: WasmMemory | null | undefined;

/** The shared memory; null: lines are written one by one. */
export function sharedMemory(): WasmMemory | null {
  if (shared === undefined) shared = openWasm(new URL('./lines.wasm', import.meta.url));
  return shared;
}
