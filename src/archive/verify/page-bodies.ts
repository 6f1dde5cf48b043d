// Checks bodies of pages against their entries. A segment is read once, from start to end, in windows. Its own hash
// detects changes that no page's hash detects, because compressed bytes contain bits without meaning. Invariant: memory
// is bounded by a window and the page being checked.

import { createHash } from 'node:crypto';
import { cutRecords, free } from '../../tools/index.ts';
import type { PageEntry } from '../entries.ts';
import type { ErasedRecords } from '../erasures.ts';
import { rootOf } from '../merkle.ts';
import type { ArchiveReader } from '../reader.ts';
import { keptRecords, recordLeaves, recordsRoot } from '../records.ts';
import { type ArchivedPage, pageBytesMax, readPage } from '../segments.ts';

/** The segment entry's facts. */
export interface SegmentFacts {
  readonly bytes: number;
  readonly sha256: string;
}

const nothing = new Uint32Array(0);
const noRecords = { starts: nothing, ends: nothing, length: 0, exact: true };
const windowBytes = 4 * 1024 * 1024;

/** Reads one segment. */
export class SegmentReading {
  readonly object: string;
  readonly #reader: ArchiveReader;
  /** Null if its entry is damaged. */
  readonly #facts: SegmentFacts | null;
  readonly #digest = createHash('sha256');
  /** Bytes read and not used yet, from byte `#from` on. */
  #bytes: Uint8Array = new Uint8Array(0);
  #from = 0;
  #state: 'reading' | 'ended' | 'missing' = 'reading';

  constructor(reader: ArchiveReader, object: string, facts: SegmentFacts | null) {
    this.#reader = reader;
    this.object = object;
    this.#facts = facts;
  }

  /** True once it was found missing. */
  get isMissing(): boolean {
    return this.#state === 'missing';
  }

  /** The bytes of the next page. Throws a SyntaxError. */
  async take({ from, length }: { readonly from: number; readonly length: number }) {
    if (from < this.#from) throw new SyntaxError('the page does not lie behind the one before it');
    if (from + length > (this.#facts?.bytes ?? Number.POSITIVE_INFINITY)) {
      throw new SyntaxError('the page lies beyond the end that its segment’s entry names');
    }
    if (length > pageBytesMax) throw new SyntaxError('the page is longer than any can be');
    // Without an entry there is no hash of the whole, so bytes before the page are not needed.
    if (this.#facts === null && from > this.#from + this.#bytes.length) {
      [this.#from, this.#bytes] = [from, new Uint8Array(0)];
    }
    while (this.#from + this.#bytes.length < from + length && this.#state === 'reading') {
      await this.#more(from);
    }
    if (this.#state === 'missing') throw new SyntaxError('the segment is missing');
    const bytes = this.#bytes.subarray(from - this.#from, from - this.#from + length);
    this.#bytes = this.#bytes.subarray(Math.min(from - this.#from + length, this.#bytes.length));
    this.#from = from + length;
    return bytes;
  }

  /** Reads to the end. The flaw of the whole segment; null: none. */
  async flaw(): Promise<string | null> {
    if (this.#facts === null) return null;
    const { bytes, sha256 } = this.#facts;
    const end = () => this.#from + this.#bytes.length;
    while (this.#state === 'reading' && end() <= bytes) await this.#more(Number.POSITIVE_INFINITY);
    if (this.#state === 'missing') return 'the segment is missing';
    if (end() > bytes) return `the segment is longer than ${bytes} bytes`;
    if (end() < bytes) return `the segment has ${end()} bytes, not ${bytes}`;
    return this.#digest.digest('hex') === sha256 ? null : 'the segment differs from its entry';
  }

  /** Reads a window; bytes before `needed` are dropped. */
  async #more(needed: number): Promise<void> {
    const at = this.#from + this.#bytes.length;
    const range = { from: at, length: windowBytes };
    const read = await this.#reader.named('segment', this.object, range);
    if (read === null) this.#state = 'missing';
    else if (read.length === 0) this.#state = 'ended';
    if (read === null || read.length === 0) return;
    this.#digest.update(read);
    const kept = this.#bytes.subarray(
      Math.min(Math.max(0, needed - this.#from), this.#bytes.length),
    );
    this.#from = at - kept.length;
    this.#bytes = kept.length === 0 ? read : Buffer.concat([kept, read]);
  }
}

/** A page that matches its entry. */
export interface CheckedPage extends ArchivedPage {
  /** The kept records. */
  readonly records: readonly Uint8Array[];
}

/** Checks a page against its entry, which proves erased records by their hashes. Throws a SyntaxError with the flaw. */
export function checkedPage(
  entry: PageEntry,
  range: Uint8Array,
  erased: ErasedRecords = new Map(),
): CheckedPage {
  const page = readPage(entry, range);
  // A response without events may have any content: an error text, or nothing.
  const isRecords = entry.kind !== 'answer';
  const slices = isRecords ? cutRecords(page.body, entry.items) : noRecords;
  if (isRecords && slices.length !== entry.records) {
    throw new SyntaxError(`the body has ${slices.length} records, not ${entry.records}`);
  }
  const records = keptRecords({ ...page, items: entry.items, slices });
  const rootNow =
    erased.size === 0 ? recordsRoot(records) : rootOf(recordLeaves(records, page.kept, erased));
  const root = rootNow.toString('hex');
  const { count } = entry.events;
  if (records.length !== count || entry.kept !== count || root !== entry.events.root) {
    throw new SyntaxError('the records of the body are not those that the entry proves');
  }
  return { ...page, records };
}

/**
 * Frees the memory of a checked page, of which nothing is read any more. Otherwise the bodies of many pages would wait for
 * the garbage collector, and start it again and again.
 */
export function releasePage({ body }: CheckedPage): void {
  // A small body is in Node's pool, which is at least twice as long, beside other buffers.
  if (body.buffer.byteLength < 2 * body.length) free(body);
}
