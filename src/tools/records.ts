// Where the records of a page stand. A page is parsed once, for the facts in it; the records' own bytes are found by
// a scan of their own, only when somebody wants them (the original bytes, an identity without an id). The scan relies on the body
// being valid JSON, which the parse has shown; it never looks at what values mean.

import { isObject, type Json } from '../contracts/json.ts';

/** Byte ranges of the records within a body. */
export interface Slices {
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly length: number;
}

const decoder = new TextDecoder('utf-8');

/** The body as JSON. Throws a SyntaxError on anything else, and a RangeError when it is nested too deeply. */
export function parseBody(body: Uint8Array): Json {
  return JSON.parse(decoder.decode(body)) as Json;
}

/** The array at a dotted path (empty: the value itself), or null where there is none. */
export function recordsAt(parsed: Json, path: string): readonly Json[] | null {
  const found = valueAt(parsed, path);
  return Array.isArray(found) ? found : null;
}

/** The value at a dotted path; `undefined` where there is none. A key that holds dots itself is tried first. */
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
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Cuts the array at a dotted path into the byte ranges of its elements, without surrounding white space. */
export function cutRecords(body: Uint8Array, path: string): Slices {
  const starts: number[] = [];
  const ends: number[] = [];
  let at = arrayStart(body, path);
  if (at >= 0) {
    at = skipSpace(body, at + 1);
    while (body[at] !== closeBracket && at < body.length) {
      const end = skipValue(body, at);
      starts.push(at);
      ends.push(end);
      at = skipSpace(body, end);
      if (body[at] === comma) at = skipSpace(body, at + 1);
    }
  }
  return { starts: Uint32Array.from(starts), ends: Uint32Array.from(ends), length: starts.length };
}

/**
 * The source text of the value at a dotted path of the JSON object in `record`, or null. A number keeps every digit
 * this way, which it would lose once parsed.
 */
export function sourceTextAt(record: Uint8Array, path: string): string | null {
  const start = valueStart(record, skipSpace(record, bomEnd(record)), path);
  return start < 0 ? null : decoder.decode(record.subarray(start, skipValue(record, start)));
}

function arrayStart(body: Uint8Array, path: string): number {
  const start = valueStart(body, skipSpace(body, bomEnd(body)), path);
  return start >= 0 && body[start] === openBracket ? start : -1;
}

/** The text decoder passes over a byte order mark, so the scan has to as well. */
function bomEnd(body: Uint8Array): number {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0;
}

/** Start of the value at a dotted path within the value that starts at `at`; -1 where there is none. */
function valueStart(body: Uint8Array, at: number, path: string): number {
  if (path === '') return at;
  const whole = memberStart(body, at, path);
  if (whole >= 0) return whole;
  const dot = path.indexOf('.');
  if (dot < 0) return -1;
  const inner = memberStart(body, at, path.slice(0, dot));
  return inner < 0 ? -1 : valueStart(body, inner, path.slice(dot + 1));
}

/** Start of a member's value; the last of several with one name, as JSON.parse has it. */
function memberStart(body: Uint8Array, open: number, name: string): number {
  if (body[open] !== openBrace) return -1;
  let found = -1;
  let at = skipSpace(body, open + 1);
  while (body[at] === quote) {
    const keyEnd = skipString(body, at);
    const key = JSON.parse(decoder.decode(body.subarray(at, keyEnd))) as string;
    const value = skipSpace(body, skipSpace(body, keyEnd) + 1);
    if (key === name) found = value;
    at = skipSpace(body, skipValue(body, value));
    if (body[at] === comma) at = skipSpace(body, at + 1);
  }
  return found;
}

function skipSpace(body: Uint8Array, from: number): number {
  let at = from;
  while (at < body.length && (body[at] ?? 0) <= 0x20) at += 1;
  return at;
}

/** The index after the value that starts at `from`. */
function skipValue(body: Uint8Array, from: number): number {
  const first = body[from];
  if (first === quote) return skipString(body, from);
  if (first === openBrace || first === openBracket) return skipNested(body, from);
  let at = from;
  while (at < body.length) {
    const byte = body[at] ?? 0;
    if (byte === comma || byte === closeBrace || byte === closeBracket || byte <= 0x20) break;
    at += 1;
  }
  return at;
}

function skipNested(body: Uint8Array, from: number): number {
  let depth = 0;
  for (let at = from; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === quote) at = skipString(body, at) - 1;
    else if (byte === openBrace || byte === openBracket) depth += 1;
    else if (byte === closeBrace || byte === closeBracket) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return body.length;
}

function skipString(body: Uint8Array, from: number): number {
  for (let at = from + 1; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === quote) return at + 1;
    if (byte === backslash) at += 1;
  }
  return body.length;
}
