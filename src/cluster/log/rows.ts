// Rows of the cache as records of the log. The key names the row, as a JSON array of table and primary key. A page that is
// larger than a request may be is split; the key of a part ends with its number and the count of parts. Invariant: a row
// always has the same key, since a compacted topic keeps the newest record of each key.

import { ExportError, type Offset } from '../../contracts/index.ts';
import { type OutboxRow, pageTable } from '../../hold/index.ts';
import type { LogRecord } from './committed.ts';

/** A row's record without topic and partition. */
export interface RowRecord {
  readonly key: Buffer;
  readonly value: Buffer | null;
}

/** By default a broker accepts 1 MiB in one batch. */
const partBytesMax = 896 * 1024;

/** The records of a row: one, or one a part. */
export function rowRecords({ table, key, value }: OutboxRow): readonly RowRecord[] {
  if (value === null) return [{ key: textKey([table, ...key]), value }];
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.length);
  const parts = Math.ceil(bytes.length / partBytesMax);
  if (parts <= 1) return [{ key: textKey([table, ...key]), value: bytes }];
  return Array.from({ length: parts }, (_, part) => ({
    key: textKey([table, ...key, part, parts]),
    value: bytes.subarray(part * partBytesMax, (part + 1) * partBytesMax),
  }));
}

/** Puts rows together again, from records in the order of their log. */
export class RowReader {
  readonly #keyLengths: Readonly<Record<string, number>>;
  #parts: Buffer[] = [];

  /** By table, how many columns its key has. */
  constructor(keyLengths: Readonly<Record<string, number>>) {
    this.#keyLengths = keyLengths;
  }

  /** The rows that these records end; of what is not ours none. */
  rowsOf(records: readonly LogRecord[]): readonly OutboxRow[] {
    return records.flatMap(({ key: text, value }) => {
      const [table, ...key] = parsedKey(text);
      const length = typeof table === 'string' ? this.#keyLengths[table] : undefined;
      if (typeof table !== 'string' || length === undefined) return [];
      const [part = 0, parts = 1] = key.slice(length).map(Number);
      const row = { table, key: key.slice(0, length) };
      if (value === null || parts === 1) return [{ ...row, value }];
      if (part === 0) this.#parts = [];
      this.#parts.push(value);
      if (part < parts - 1) return [];
      return [{ ...row, value: Buffer.concat(this.#parts) }];
    });
  }
}

/** Whether the key has the form of sluice's records. */
export function isOurs({ key }: Pick<LogRecord, 'key'>): boolean {
  return typeof parsedKey(key)[0] === 'string';
}

/** Why a topic cannot be used that begins with records none of which is ours. */
export function foreignTopic(topic: string): ExportError {
  return new ExportError(
    'config_invalid',
    `the topic ${topic} holds a record that sluice did not write`,
    {
      next: 'Give state.kafka.prefix another name: topics of that one are somebody else’s. Nothing was written.',
    },
  );
}

function textKey(key: readonly (string | number)[]): Buffer {
  return Buffer.from(JSON.stringify(key));
}

/** The parts of a key; none where it is not one of ours. */
export function parsedKey(text: Buffer | null): readonly (string | number)[] {
  try {
    const parsed: unknown = JSON.parse(String(text));
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}

/**
 * Log offsets of held pages, oldest first, so that pages that every sink has can be deleted from the log. Invariant: no
 * page is deleted that a sink may still need.
 */
export class PagePlaces {
  #places: { readonly first: Offset; readonly offset: bigint }[] = [];

  /** A transaction has written its first page at this offset. */
  begins(offset: bigint): void {
    // The topic was recreated: offsets of the earlier one belong to other pages now.
    if (offset < (this.#places.at(-1)?.offset ?? 0n)) this.#places = [];
  }

  /** A record has this offset; other records than pages are ignored. */
  note(key: Buffer | null, offset: bigint): void {
    const [table, first] = parsedKey(key);
    if (table !== pageTable || typeof first !== 'number') return;
    if (this.#places.at(-1)?.first !== first) this.#places.push({ first, offset });
  }

  /** The log offset before which all can be deleted once no sink needs events before `offset`; null: nothing can. */
  forgetBefore(event: Offset): bigint | null {
    // The offset of a page without an acknowledged commit is not known: the offset of the page before is safe.
    const kept = this.#places.findLastIndex(({ first }) => first <= event);
    if (kept <= 0) return null;
    this.#places = this.#places.slice(kept);
    return this.#places[0]?.offset ?? null;
  }
}
