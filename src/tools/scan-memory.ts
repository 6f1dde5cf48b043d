// The scan of many records in one call, in WebAssembly (wasm/scan.ts): a stretch of the body is copied to the memory of
// the module and scanned there. Invariant: the findings equal those of json-scan.ts, to which each record is left that is
// not certain.

import { readFileSync } from 'node:fs';
import type { JsonScan } from './json-scan.ts';

/** Exports of `scan.wasm`. */
interface ScanModule {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  begin(): number;
  memberPlace(): number;
  lookFor(hash: number, length: number): void;
  isInexact(): number;
  scan(at: number, end: number, rows: number, most: number): number;
}

const stretchBytes = 64 * 1024;
const rowsMax = 256;
const memberBytesMax = 256;
const pageBytes = 64 * 1024;
/** Bytes are read four at a time. */
const spill = 16;

/** Words of the findings about a record: start, end, digest, start and end of its member, digest of that, flags. */
export const rowWords = 9;
/** The same flags as in wasm/scan.ts. */
export const escapedKeysFlag = 1;
export const repeatedKeysFlag = 2;
export const ignoredFlag = 4;

/** The module with its memory. */
export class ScanMemory {
  readonly #module: ScanModule;
  readonly #bytes: Uint8Array;
  readonly #rows: Int32Array;
  readonly #text: number;
  #scan: JsonScan | null = null;
  /** The loaded range of the body. */
  #from = 0;
  #to = 0;

  constructor(module: ScanModule) {
    this.#module = module;
    const rows = (module.begin() + 15) & ~15;
    this.#text = rows + rowsMax * rowWords * 4;
    const { memory } = module;
    const missing = this.#text + stretchBytes + spill - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / pageBytes));
    this.#bytes = new Uint8Array(memory.buffer);
    this.#rows = new Int32Array(memory.buffer, rows, rowsMax * rowWords);
  }

  /** Begins with the records of an array. False if they cannot be scanned here. */
  begin(scan: JsonScan): boolean {
    const { member, memberHash, ignores } = scan;
    // No length stands for no member.
    if (ignores || member?.length === 0 || (member?.length ?? 0) > memberBytesMax) return false;
    if (member !== null) this.#bytes.set(member, this.#module.memberPlace());
    this.#module.lookFor(memberHash, member?.length ?? 0);
    this.#scan = scan;
    this.#from = 0;
    this.#to = 0;
    return true;
  }

  /** The findings about consecutive records from the one at `at` on; valid until the next call. Empty: it is not certain. */
  read(at: number): Int32Array {
    const { bytes, tokens } = this.#scan as JsonScan;
    let count = at < this.#to ? this.#run(at) : 0;
    // Nothing is loaded, or it may end within this record. With much loaded, a record is more likely not certain: bytes
    // are not loaded again for each such record.
    if (count === 0 && this.#to < bytes.length && this.#to - at < stretchBytes / 2) {
      this.#load(bytes, at);
      count = this.#run(at);
    }
    if (this.#module.isInexact() !== 0) tokens.exact = false;
    const rows = this.#rows.subarray(0, count * rowWords);
    const shift = this.#from - this.#text;
    for (let row = 0; row < rows.length; row += rowWords) {
      rows[row] = (rows[row] ?? 0) + shift;
      rows[row + 1] = (rows[row + 1] ?? 0) + shift;
      if ((rows[row + 4] ?? 0) < 0) continue;
      rows[row + 4] = (rows[row + 4] ?? 0) + shift;
      rows[row + 5] = (rows[row + 5] ?? 0) + shift;
    }
    return rows;
  }

  #run(at: number): number {
    const shift = this.#text - this.#from;
    return this.#module.scan(at + shift, this.#to + shift, this.#rows.byteOffset, rowsMax);
  }

  #load(bytes: Uint8Array, at: number): void {
    this.#from = at;
    this.#to = Math.min(bytes.length, at + stretchBytes);
    this.#bytes.set(bytes.subarray(at, this.#to), this.#text);
    const end = this.#text + this.#to - at;
    this.#bytes.fill(0, end, end + spill);
  }
}

/** The module in this file; null if there is none, or the runtime lacks WebAssembly. */
export function openScan(file: URL): ScanMemory | null {
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(file)));
    return new ScanMemory(exports as ScanModule);
  } catch {
    return null;
  }
}

let shared: ScanMemory | null | undefined;

/** The shared memory, which no scan uses beyond its end; null: records are scanned one by one. */
export function scanMemory(): ScanMemory | null {
  if (shared === undefined) shared = openScan(new URL('./scan.wasm', import.meta.url));
  return shared;
}
