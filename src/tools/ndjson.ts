// Converts lines of JSON, one record each, to an array of these records, so that stored pages have
// one form and each record keeps upstream's bytes. Invariant: a record is a whole line: neither
// half of a cut line, nor two lines that only together are JSON, is a record. A line that is not an
// object counts as a record, as an array's element would, but a body without any object line is
// something else.

import { skipSpace } from './json-tokens.ts';
import { bomEnd } from './records.ts';

const newline = 0x0a;
const comma = 0x2c;
const space = 0x20;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
/** First characters of a JSON value. */
const beginsValue: ReadonlySet<number | undefined> = new Set(Buffer.from('{["-0123456789tfn'));

/** The lines as one array, and the start of each line that is not blank. */
export interface LineArray {
  readonly body: Uint8Array;
  readonly starts: readonly number[];
}

/** A line that is not a record. */
export class NoRecord extends SyntaxError {
  /** Counted from 1, blank ones too. */
  readonly line: number;

  constructor(line: number) {
    super('a line is no record');
    this.line = line;
  }
}

/** Throws NoRecord for a line that does not begin as JSON. The scan decides whether it is valid. */
export function arrayOfLines(lines: Uint8Array): LineArray {
  const from = bomEnd(lines);
  const body = Buffer.alloc(lines.length - from + 2, space);
  body.set(lines.subarray(from), 1);
  body[0] = openBracket;
  body[body.length - 1] = closeBracket;
  const starts: number[] = [];
  let strange: number | null = null;
  let hasObject = false;
  for (let at = 1, line = 1, last = body.length - 1; at < last; line += 1) {
    const found = body.indexOf(newline, at);
    const end = found < 0 ? last : found;
    const start = skipSpace(body, at);
    if (start < end) {
      if (!beginsValue.has(body[start])) throw new NoRecord(line);
      if (body[start] === openBrace) hasObject = true;
      else strange ??= line;
      // The line break before it separates two records.
      if (starts.length > 0) body[at - 1] = comma;
      starts.push(start);
    }
    at = end + 1;
  }
  if (strange !== null && !hasObject) throw new NoRecord(strange);
  return { body, starts };
}

/** A last line that is an object, and everything before it. */
export interface LastLine {
  readonly before: Uint8Array;
  readonly line: Uint8Array;
}

/** The last line that is not blank, if it begins as an object; otherwise null. */
export function lastLineOf(lines: Uint8Array): LastLine | null {
  let end = lines.length;
  while (end > 0 && (lines[end - 1] ?? 0) <= space) end -= 1;
  const start = lines.lastIndexOf(newline, end - 1) + 1;
  if (lines[skipSpace(lines, Math.max(start, bomEnd(lines)))] !== openBrace) return null;
  return { before: lines.subarray(0, start), line: lines.subarray(start, end) };
}
