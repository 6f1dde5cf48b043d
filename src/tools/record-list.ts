// The records of a page that was read: found, checked and measured in one pass over the body, and
// parsed only on demand. A stored record is parsed once, on its way to the sinks; until then only
// its bytes exist, which limits the memory of pages in flight to their size. Invariant: a body is
// accepted exactly if the whole is well-formed JSON, so that a page is never stored in part and
// every stored record can be sent.

import type { Json, ParsedRecord, Slices } from '../contracts/index.ts';
import { type Found, none, readArray, unsure } from './found-records.ts';
import { IgnoredPaths } from './json-keys.ts';
import { heldNestingMax, JsonScan } from './json-scan.ts';
import { skipSpace } from './json-tokens.ts';
import { arrayOfLines } from './ndjson.ts';
import { bomEnd, parseBody, sourceTextAt, visit } from './records.ts';

const openBracket = 0x5b;

/** A body that was read. */
export interface ScannedBody {
  /** The body parsed, with the array of records empty. */
  readonly envelope: Json;
  readonly text: Uint8Array;
  /** Null if there is no array at the path. */
  readonly records: RecordList | null;
}

/**
 * Scans a body whose records are the array at the dotted path `items`, or the body itself if it is
 * an array. `id` is the dotted path of a record's id, located on the way; paths in `ignore` are not
 * part of its content. Throws a SyntaxError for anything that is not JSON, and TooDeep.
 */
export function scanBody(
  body: Uint8Array,
  items: string,
  id: string | null,
  ignore: readonly string[] = [],
): ScannedBody {
  const path = body[skipSpace(body, bomEnd(body))] === openBracket ? '' : items;
  const ignored = ignore.length === 0 ? null : new IgnoredPaths(ignore);
  const scan = new JsonScan(body, id !== null && !id.includes('.') ? id : null, ignored);
  const { found, regions } = findRecords(scan, path);
  const text = without(body, regions);
  const records = found === null ? null : new RecordList(body, path, found, id);
  return { envelope: parseBody(text), text, records };
}

/**
 * Scans a body of which each line is a record. It is stored as an array, which is the returned
 * form. Throws as `scanBody` does, also for a cut line.
 */
export function scanLines(
  lines: Uint8Array,
  id: string | null,
  ignore: readonly string[] = [],
): ScannedBody & { readonly body: Uint8Array } {
  const { body, starts } = arrayOfLines(lines);
  const scanned = scanBody(body, '', id, ignore);
  const found = scanned.records?.slices.starts ?? [];
  const isWhole = found.length === starts.length && starts.every((at, i) => at === found[i]);
  if (!isWhole) throw new SyntaxError('a line is no record');
  return { ...scanned, body };
}

/**
 * Byte ranges of a stored body's records: the elements of the array at a dotted path, none if there
 * is no array. Throws a SyntaxError for anything that is not JSON.
 */
export function cutRecords(body: Uint8Array, path: string): Slices {
  const scan = new JsonScan(body, null);
  scan.levelsMax = heldNestingMax;
  const { found } = findRecords(scan, path);
  return found === null ? noSlices : slicesOf(found);
}

const nowhere = new Uint32Array(0);
const noSlices: Slices = { starts: nowhere, ends: nowhere, length: 0, exact: true };

/** The array at a path, the last one if there are several, and the byte ranges of all of them. */
function findRecords(scan: JsonScan, path: string) {
  const body = scan.bytes;
  const regions: [start: number, end: number][] = [];
  let found: Found | null = null;
  const take = (open: number) => {
    if (body[open] !== openBracket) return scan.value(open);
    found = readArray(scan, open);
    regions.push([open, found.end]);
    return found.end;
  };
  const forget = () => {
    found = null;
  };
  // Numbers outside the records do not matter.
  const beside = new JsonScan(body, null);
  beside.levelsMax = scan.levelsMax;
  visit(beside, skipSpace(body, bomEnd(body)), path, { take, forget });
  return { found: found as Found | null, regions };
}

function slicesOf({ starts, ends, exact }: Found): Slices {
  return { starts, ends, length: starts.length, exact };
}

/** The body with `[]` for each of these regions. */
function without(body: Uint8Array, regions: readonly (readonly [number, number])[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const [start, end] of regions) {
    parts.push(body.subarray(at, start + 1), body.subarray(end - 1, end));
    at = end;
  }
  return Buffer.concat([...parts, body.subarray(at)]);
}

const quote = 0x22;
const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;

/** The records of a page, each parsed on demand. */
export class RecordList {
  readonly length: number;
  readonly slices: Slices;
  /** A digest of each record's content, two words (see json-scan.ts). */
  readonly contents: Int32Array;
  /** 1 if a part of the record is not part of its content. */
  readonly reduced: Uint8Array;
  /** Dotted path of the records within the body. */
  readonly items: string;
  readonly #body: Buffer;
  readonly #idPath: string | null;
  readonly #ids: Int32Array;
  readonly #idDigests: Int32Array;

  constructor(body: Uint8Array, items: string, found: Found, idPath: string | null) {
    const { contents, reduced, ids, idDigests } = found;
    this.length = found.starts.length;
    this.slices = slicesOf(found);
    this.contents = contents;
    this.reduced = reduced;
    this.items = items;
    this.#body = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    this.#idPath = idPath;
    this.#ids = idPath?.includes('.') ? ids.fill(unsure) : ids;
    this.#idDigests = idDigests;
  }

  /** As in an array: negative from the end, undefined outside. */
  at(index: number): ParsedRecord | undefined {
    const i = index < 0 ? this.length + index : index;
    if (i < 0 || i >= this.length) return undefined;
    const { starts, ends } = this.slices;
    return JSON.parse(this.#body.toString('utf8', starts[i], ends[i])) as ParsedRecord;
  }

  /** A record's bytes as upstream sent them. */
  raw(index: number): Uint8Array {
    return this.#body.subarray(this.slices.starts[index], this.slices.ends[index]);
  }

  /** Writes the digest of a record's id, two words, if it is text (not empty) or a number. */
  digestId(index: number, into: Uint32Array, at: number): boolean {
    const start = this.#ids[index * 2] ?? none;
    if (start === none) return false;
    if (start >= 0) {
      if (!isId(this.#body, start)) return false;
      into[at] = this.#idDigests[index * 2] ?? 0;
      into[at + 1] = this.#idDigests[index * 2 + 1] ?? 0;
      return true;
    }
    const source = this.idText(index);
    if (source === null || this.#idPath === null || !isId(Buffer.from(source), 0)) return false;
    const [first, second] = idDigest(this.#idPath, source);
    into[at] = first;
    into[at + 1] = second;
    return true;
  }

  /** The source text of the value at a record's id path, or null if there is none. */
  idText(index: number): string | null {
    const start = this.#ids[index * 2] ?? none;
    if (start >= 0) return this.#body.toString('utf8', start, this.#ids[index * 2 + 1]);
    if (start === none || this.#idPath === null) return null;
    return sourceTextAt(this.raw(index), this.#idPath);
  }
}

/** The digest of an id at a path, from its source text: two words. */
export function idDigest(path: string, source: string): readonly [number, number] {
  const scan = new JsonScan(Buffer.from(`{${JSON.stringify(path)}:${source}}`), path);
  scan.value(0);
  return [scan.member1, scan.member2];
}

function isId(bytes: Uint8Array, at: number): boolean {
  const first = bytes[at] ?? 0;
  if (first === quote) return bytes[at + 1] !== quote;
  return first === minus || (first >= zero && first <= nine);
}
