// Where the records of a page, and values within them, stand. The scan relies on the body being valid JSON, which has been
// shown when it was read (record-list.ts); it never looks at what values mean.

import { isObject, type Json } from '../contracts/json.ts';
import type { Slices } from '../contracts/spool.ts';

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
  let starts: number[] = [];
  let ends: number[] = [];
  const forget = () => {
    starts = [];
    ends = [];
  };
  const take = (open: number) => {
    if (body[open] !== openBracket) return skipValue(body, open);
    let at = skipSpace(body, open + 1);
    while (body[at] !== closeBracket && at < body.length) {
      const end = skipValue(body, at);
      starts.push(at);
      ends.push(end);
      at = skipSpace(body, end);
      if (body[at] === comma) at = skipSpace(body, at + 1);
    }
    return at + 1;
  };
  visit(body, skipSpace(body, bomEnd(body)), path, { take, forget });
  return { starts: Uint32Array.from(starts), ends: Uint32Array.from(ends), length: starts.length };
}

/**
 * The source text of the value at a dotted path of the JSON object in `record`, or null. A number keeps every digit
 * this way, which it would lose once parsed.
 */
export function sourceTextAt(record: Uint8Array, path: string): string | null {
  let start = -1;
  let end = -1;
  const forget = () => {
    start = -1;
  };
  const take = (at: number) => {
    start = at;
    end = skipValue(record, at);
    return end;
  };
  visit(record, skipSpace(record, bomEnd(record)), path, { take, forget });
  return start < 0 ? null : decoder.decode(record.subarray(start, end));
}

/** Where the text begins: the text decoder passes over a byte order mark, so the scan has to as well. */
export function bomEnd(body: Uint8Array): number {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0;
}

/** What to do with the value at a path: `take` it and tell where it ends, and `forget` it when another one counts. */
export interface Visitor {
  take(at: number): number;
  forget(): void;
}

/**
 * Takes the value at a dotted path within the value that starts at `from`, in one pass, and returns where that ends. As
 * `valueAt` has it after `JSON.parse`: the last of several members with one name counts, and a key that holds dots
 * itself goes before a path.
 */
export function visit(body: Uint8Array, from: number, path: string, visitor: Visitor): number {
  if (path === '') return visitor.take(from);
  if (body[from] !== openBrace) return skipValue(body, from);
  const dot = path.indexOf('.');
  const head = dot < 0 ? null : path.slice(0, dot);
  let whole = false;
  let at = skipSpace(body, from + 1);
  while (body[at] === quote) {
    const keyEnd = skipString(body, at);
    const value = skipSpace(body, skipSpace(body, keyEnd) + 1);
    if (spells(body, at, keyEnd, path)) {
      whole = true;
      visitor.forget();
      at = visitor.take(value);
    } else if (head !== null && !whole && spells(body, at, keyEnd, head)) {
      visitor.forget();
      at = visit(body, value, path.slice(dot + 1), visitor);
    } else {
      at = skipValue(body, value);
    }
    at = skipSpace(body, at);
    if (body[at] === comma) at = skipSpace(body, at + 1);
  }
  return at + 1;
}

/** True where the key in `body[start, end)`, its quotes included, is `name`. */
function spells(body: Uint8Array, start: number, end: number, name: string): boolean {
  for (let i = 0; i < end - start - 2; i += 1) {
    const byte = body[start + 1 + i] ?? 0;
    if (byte === backslash || byte >= 0x80) {
      return JSON.parse(decoder.decode(body.subarray(start, end))) === name;
    }
    if (byte !== name.charCodeAt(i)) return false;
  }
  return end - start - 2 === name.length;
}

function skipSpace(body: Uint8Array, from: number): number {
  let at = from;
  while (at < body.length && (body[at] ?? 0) <= 0x20) at += 1;
  return at;
}

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

/** Every byte of every record passes here or through `skipString`, so both test the common case first. */
function skipNested(body: Uint8Array, from: number): number {
  let depth = 0;
  let at = from;
  for (;;) {
    const byte = body[at];
    if (byte === undefined) return body.length;
    at += 1;
    if (byte === quote) {
      at = skipString(body, at - 1);
    } else if (byte >= openBracket) {
      if (byte === openBrace || byte === openBracket) {
        depth += 1;
      } else if (byte === closeBrace || byte === closeBracket) {
        depth -= 1;
        if (depth === 0) return at;
      }
    }
  }
}

function skipString(body: Uint8Array, from: number): number {
  let at = from + 1;
  for (;;) {
    const byte = body[at];
    if (byte === undefined) return body.length;
    at += 1;
    if (byte === quote) return at;
    if (byte === backslash) at += 1;
  }
}
