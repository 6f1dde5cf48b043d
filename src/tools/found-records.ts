// The records of an array: their byte ranges, digests and ids, in one pass over its bytes. Most records are scanned many in
// one call, in WebAssembly (scan-memory.ts); one that is not certain there is scanned by json-scan.ts. Invariant: the
// findings do not depend on which of them scanned a record.

import { hash } from 'node:crypto';
import type { IgnoredPaths } from './json-keys.ts';
import { JsonScan } from './json-scan.ts';
import { skipSpace } from './json-tokens.ts';
import {
  escapedKeysFlag,
  ignoredFlag,
  repeatedKeysFlag,
  rowWords,
  scanMemory,
} from './scan-memory.ts';

const comma = 0x2c;
const closeBracket = 0x5d;

/** The findings about the records of one array. */
export interface Found {
  readonly end: number;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly contents: Int32Array;
  readonly reduced: Uint8Array;
  readonly exact: boolean;
  /** Byte range of each id's value; `none` or `unsure` if the scan cannot decide. */
  readonly ids: Int32Array;
  /** Two words of digest of each id's value. */
  readonly idDigests: Int32Array;
}

/** A record without an id. */
export const none: number = -1;
/** A record whose id the scan cannot locate. */
export const unsure: number = -2;

const rowsFirst = 256;
const nothing = new Int32Array(0);

/** Reads the array that begins at `open`. Throws as `JsonScan` does. */
export function readArray(scan: JsonScan, open: number): Found {
  const body = scan.bytes;
  const rows = new Rows();
  const memory = scanMemory();
  const isFast = memory?.begin(scan) === true;
  let at = skipSpace(body, open + 1);
  while (body[at] !== closeBracket || rows.count > 0) {
    const many = isFast ? memory.read(at) : nothing;
    rows.add(many.length > 0 ? many : rowOf(scan, at));
    at = skipSpace(body, rows.end);
    if (body[at] === closeBracket) break;
    if (body[at] !== comma) throw new SyntaxError(`not JSON at byte ${at}`);
    at = skipSpace(body, at + 1);
  }
  return { end: at + 1, exact: scan.tokens.exact, ...rows.columns(body) };
}

/** One record, in the form of `ScanMemory.read`. */
function rowOf(scan: JsonScan, start: number): Int32Array {
  const end = scan.value(start);
  const flags =
    (scan.escapedKeys ? escapedKeysFlag : 0) |
    (scan.repeatedKeys ? repeatedKeysFlag : 0) |
    (scan.ignored ? ignoredFlag : 0);
  const { digest1, digest2, memberStart, memberEnd, member1, member2 } = scan;
  return Int32Array.of(
    ...[start, end, digest1, digest2, memberStart, memberEnd, member1, member2, flags],
  );
}

/** The findings so far, `rowWords` words for each record. */
class Rows {
  count = 0;
  /** End of the last record. */
  end = 0;
  #words = new Int32Array(rowsFirst * rowWords);

  add(rows: Int32Array): void {
    const at = this.count * rowWords;
    if (at + rows.length > this.#words.length) {
      const larger = new Int32Array(Math.max(at + rows.length, this.#words.length * 2));
      larger.set(this.#words);
      this.#words = larger;
    }
    this.#words.set(rows, at);
    this.count += rows.length / rowWords;
    this.end = rows[rows.length - rowWords + 1] ?? 0;
  }

  columns(body: Uint8Array): Omit<Found, 'end' | 'exact'> {
    const { count } = this;
    const words = this.#words;
    const starts = new Uint32Array(count);
    const ends = new Uint32Array(count);
    const contents = new Int32Array(count * 2);
    const reduced = new Uint8Array(count);
    const ids = new Int32Array(count * 2);
    const idDigests = new Int32Array(count * 2);
    for (let i = 0, at = 0; i < count; i += 1, at += rowWords) {
      const flags = words[at + 8] ?? 0;
      starts[i] = words[at] ?? 0;
      ends[i] = words[at + 1] ?? 0;
      contents[i * 2] = words[at + 2] ?? 0;
      contents[i * 2 + 1] = words[at + 3] ?? 0;
      if ((flags & repeatedKeysFlag) !== 0) {
        contents.set(digestOf(body.subarray(starts[i], ends[i])), i * 2);
      }
      reduced[i] = (flags & ignoredFlag) === 0 ? 0 : 1;
      ids[i * 2] = (flags & escapedKeysFlag) === 0 ? (words[at + 4] ?? none) : unsure;
      ids[i * 2 + 1] = words[at + 5] ?? 0;
      idDigests[i * 2] = words[at + 6] ?? 0;
      idDigests[i * 2 + 1] = words[at + 7] ?? 0;
    }
    return { starts, ends, contents, reduced, ids, idDigests };
  }
}

/** For a record whose text is more precise than its content digest: a digest of its bytes. */
function digestOf(record: Uint8Array): readonly [number, number] {
  const digest = hash('sha256', record, 'buffer');
  return [digest.readInt32BE(0), digest.readInt32BE(4)];
}

/**
 * The digest of one record's content without these paths, as `contents` has it; null if the record has none of them.
 */
export function contentWithout(
  record: Uint8Array,
  ignored: IgnoredPaths,
): readonly [number, number] | null {
  const scan = new JsonScan(record, null, ignored);
  scan.value(0);
  if (!scan.ignored) return null;
  return scan.repeatedKeys ? digestOf(record) : [scan.digest1, scan.digest2];
}
