// Values at dotted paths: in parsed JSON, and in bytes, with their ranges. In bytes the JSON scan
// (json-scan.ts) follows the path and skips everything beside it, so that a value is found exactly
// where `JSON.parse` would find it.

import { isObject, type Json } from '../contracts/index.ts';
import { JsonScan } from './json-scan.ts';
import { skipSpace } from './json-tokens.ts';
import { losslessText } from './lossless-text.ts';

const decoder = new TextDecoder('utf-8');

/** The body as JSON. Throws a SyntaxError, or a RangeError if it is nested too deeply. */
export function parseBody(body: Uint8Array): Json {
  return JSON.parse(decoder.decode(body)) as Json;
}

/** The value at a dotted path (empty: the value itself), or `undefined`. A key that contains dots is tried first. */
export function valueAt(value: Json, path: string): Json | undefined {
  if (path === '') return value;
  if (!isObject(value)) return undefined;
  if (Object.hasOwn(value, path)) return value[path];
  const dot = path.indexOf('.');
  if (dot < 0) return undefined;
  const head = path.slice(0, dot);
  const inner = Object.hasOwn(value, head) ? value[head] : undefined;
  return inner === undefined ? undefined : valueAt(inner, path.slice(dot + 1));
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openBrace = 0x7b;

/**
 * The source text of the value at a dotted path of the JSON object in `record`, or null. So a
 * number keeps every digit, which parsing could lose. Throws a SyntaxError for anything that is not
 * JSON.
 */
export function sourceTextAt(record: Uint8Array, path: string): string | null {
  const bytes = sourceBytesAt(record, path);
  return bytes && decoder.decode(bytes);
}

/** As `sourceTextAt`, the bytes themselves. */
export function sourceBytesAt(record: Uint8Array, path: string): Uint8Array | null {
  const scan = new JsonScan(record, null);
  const from = skipSpace(record, bomEnd(record));
  let start = -1;
  let end = -1;
  const forget = () => {
    start = -1;
  };
  const take = (at: number) => {
    start = at;
    end = scan.value(at);
    return end;
  };
  if (path === '' || record[from] === openBrace) visit(scan, from, path, { take, forget });
  return start < 0 ? null : record.subarray(start, end);
}

/** Start of the text: the decoder skips a byte order mark, so the scan must too. */
export function bomEnd(body: Uint8Array): number {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0;
}

/** Called at a path's value: `take` it and return its end; `forget` it if another one counts. */
export interface Visitor {
  take(at: number): number;
  forget(): void;
}

/**
 * Visits the value at a dotted path within the value that starts at `from`, in one pass, and
 * returns the end of the latter. Consistent with `valueAt` after `JSON.parse`: the last of several
 * members with one name counts, and a key that contains dots takes precedence over a path.
 */
export function visit(scan: JsonScan, from: number, path: string, visitor: Visitor): number {
  const body = scan.bytes;
  if (path === '') return visitor.take(from);
  if (body[from] !== openBrace) return scan.value(from);
  const dot = path.indexOf('.');
  const head = dot < 0 ? null : path.slice(0, dot);
  let whole = false;
  let at = skipSpace(body, from + 1);
  while (body[at] === quote) {
    const keyEnd = scan.tokens.string(at + 1, 0, 0);
    const value = skipSpace(body, skipSpace(body, keyEnd) + 1);
    if (spells(body, at, keyEnd, path)) {
      whole = true;
      visitor.forget();
      at = visitor.take(value);
    } else if (head !== null && !whole && spells(body, at, keyEnd, head)) {
      visitor.forget();
      at = visit(scan, value, path.slice(dot + 1), visitor);
    } else {
      at = scan.value(value);
    }
    at = skipSpace(body, at);
    if (body[at] === comma) at = skipSpace(body, at + 1);
  }
  return at + 1;
}

/** True if the key in `body[start, end)`, including its quotes, is `name`. */
function spells(body: Uint8Array, start: number, end: number, name: string): boolean {
  for (let i = 0; i < end - start - 2; i += 1) {
    const byte = body[start + 1 + i] ?? 0;
    if (byte === backslash || byte >= 0x80) {
      return JSON.parse(losslessText(body.subarray(start, end))) === name;
    }
    if (byte !== name.charCodeAt(i)) return false;
  }
  return end - start - 2 === name.length;
}
