// The first look at an upstream's body: JSON or not, nested within bounds, and no error in a 200's
// clothing. Whatever is not plainly a good answer is nothing: it is never taken for an empty list,
// because that would be loss.

import { ExportError } from '../../contracts/errors.ts';
import { isObject, type Json } from '../../contracts/json.ts';
import { nestingMax, TooDeep } from '../../tools/json-scan.ts';
import { lastLineOf, NoRecord } from '../../tools/ndjson.ts';
import { parseObject } from '../../tools/problem.ts';
import { type RecordList, scanBody, scanLines } from '../../tools/record-list.ts';
import { parseBody } from '../../tools/records.ts';
import { partialSign, type Reported } from './partial.ts';

/** A body as parsed, or why it is none. */
export type JsonBody =
  | { readonly good: true; readonly value: Json }
  | { readonly good: false; readonly cause: ExportError };

/** A list's body: its envelope, parsed and as text, and its records, found but not parsed. */
export type ListBody =
  | {
      readonly good: true;
      /** As it is held. */
      readonly body: Uint8Array;
      readonly value: Json;
      readonly text: Uint8Array;
      readonly records: RecordList | null;
      /** Of lines: the last one reports that others are missing, and is no record. */
      readonly lost?: Reported | null;
    }
  | { readonly good: false; readonly cause: ExportError };

/** Parses a body. `doing` begins the message, e.g. `reading audit`. */
export function readJson(body: Uint8Array, doing: string): JsonBody {
  return judged(doing, () => ({ value: parseBody(body) }));
}

/**
 * Reads the body of a list, with the array of records at `items`, a record's id at `id`, and what
 * is no part of its content at the paths of `ignore`; `isLines`: each line is a record.
 */
export function readList(
  body: Uint8Array,
  doing: string,
  {
    items,
    id,
    ignore,
    isLines,
  }: {
    readonly items: string;
    readonly id: string | null;
    readonly ignore?: readonly string[] | undefined;
    readonly isLines?: boolean;
  },
): ListBody {
  return judged(doing, () => {
    if (isLines === true) {
      const { lines, lost } = reportedIn(body);
      const { envelope, ...rest } = scanLines(lines, id, ignore);
      return { value: envelope, ...rest, lost };
    }
    const { envelope, ...rest } = scanBody(body, items, id, ignore);
    return { value: envelope, body, ...rest };
  });
}

/** A line that reports a failure is short; a longer one is a record. */
const reportBytesMax = 16 * 1024;
/** Members of a line that only reports how the response ended. */
const reportMembers: ReadonlySet<string> = new Set([
  ...['errors', 'error', 'partial', 'timed_out', 'success', 'title', 'detail', 'status', 'type'],
  ...['message', 'trace_id', 'request_id', 'code', 'took', 'instance'],
]);

/** Takes the line off that reports missing records in place of an envelope. */
function reportedIn(lines: Uint8Array): {
  readonly lines: Uint8Array;
  readonly lost: Reported | null;
} {
  const last = lastLineOf(lines);
  if (last === null || last.line.length > reportBytesMax) return { lines, lost: null };
  const members = parseObject(last.line);
  const isReport = members !== null && Object.keys(members).every((key) => reportMembers.has(key));
  const sign = isReport ? partialSign(members) : null;
  if (members === null || sign === null) return { lines, lost: null };
  return { lines: last.before, lost: { sign, members } };
}

function judged<T extends { readonly value: Json }>(doing: string, read: () => T) {
  const bad = (what: string) => ({ good: false as const, cause: nonsense(doing, what) });
  const tooDeep = `the answer is nested more than ${nestingMax} levels deep`;
  let body: T;
  try {
    body = read();
  } catch (error) {
    if (error instanceof NoRecord) return bad(`line ${error.line} of the answer is no record`);
    return bad(error instanceof TooDeep ? tooDeep : 'the answer is not JSON, or not whole');
  }
  if (isDeeperThan(body.value, nestingMax)) return bad(tooDeep);
  if (isObject(body.value) && isFailure(body.value.error)) {
    return bad('the answer is an error with status 200');
  }
  return { good: true as const, ...body };
}

/** An answer that makes no sense, which is asked for again. */
export function nonsense(doing: string, what: string): ExportError {
  return new ExportError('upstream_nonsense', `${doing}: ${what}`, {
    next: 'sluice requests it again and never treats it as the end of the data. If it lasts, check path and pagination of the source.',
  });
}

function isFailure(error: Json | undefined): boolean {
  return isObject(error) || (typeof error === 'string' && error !== '');
}

function isDeeperThan(value: Json, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((inner) => isDeeperThan(inner, levels - 1));
  for (const key in value) {
    const inner = (value as Readonly<Record<string, Json>>)[key];
    if (typeof inner === 'object' && inner !== null && isDeeperThan(inner, levels - 1)) return true;
  }
  return false;
}
