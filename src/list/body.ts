// The first check of a response body: it must be JSON within the nesting bound, and a 200 must not carry an error or
// lack data that it names (partial data). Invariant: a body that is not plainly valid is an error and never an empty
// list. An empty list would lose its records.

import { ExportError, isObject, type Json, type JsonObject } from '../contracts/index.ts';
import {
  type DescribeProblem,
  lastLineOf,
  NoRecord,
  nestingMax,
  parseBody,
  parseObject,
  problemDescriber,
  type RecordList,
  scanBody,
  scanLines,
  TooDeep,
} from '../tools/index.ts';

/** A parsed body, or the reason why it was rejected. */
export type JsonBody =
  | { readonly good: true; readonly value: Json }
  | { readonly good: false; readonly cause: ExportError };

/** The body of a list: its envelope, parsed and as text, and its records, located but not parsed. */
export type ListBody =
  | {
      readonly good: true;
      /** The bytes that the spool stores. */
      readonly body: Uint8Array;
      readonly value: Json;
      readonly text: Uint8Array;
      readonly records: RecordList | null;
      /** Line formats only: the last line reports missing records and is no record itself. */
      readonly lost?: Reported | null;
    }
  | { readonly good: false; readonly cause: ExportError };

/** Parses a body. `doing` is the start of the error message, e.g. `reading audit`. */
export function readJson(body: Uint8Array, doing: string): JsonBody {
  return judged(doing, () => ({ value: parseBody(body) }));
}

/**
 * Reads the body of a list. `items`: path of the array of records; `id`: path of a record's id; `ignore`: paths that do
 * not count as content; `isLines`: each line is one record.
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

/** Limit in bytes for a line that reports a failure; a longer line is a record. */
const reportBytesMax = 16 * 1024;
/** The only members that a line may have to count as a report on how the response ended. */
const reportMembers: ReadonlySet<string> = new Set([
  ...['errors', 'error', 'partial', 'timed_out', 'success', 'title', 'detail', 'status', 'type'],
  ...['message', 'trace_id', 'request_id', 'code', 'took', 'instance'],
]);

/** Removes a last line that reports missing records, which line formats send in place of an envelope. */
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

/** The error for a malformed response; the page is requested again. */
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

// A 200 that reports errors beside its data: some records are missing, and the envelope says so. The signs are those of
// RFC 9457 (`errors`), of search engines (`timed_out`, `partial`) and of plain envelopes (`success: false`). An empty
// `errors` is no error.

/** The sign of missing data among the members beside the data; null: none. */
export function partialSign(members: JsonObject): string | null {
  if (isReported(members.errors)) return 'errors beside its data';
  if (members.partial === true) return 'partial: true';
  if (members.timed_out === true) return 'timed_out: true';
  return members.success === false ? 'success: false' : null;
}

/**
 * The same for an object that is the data itself, without an envelope. Its own members may have these names, so only
 * unambiguous signs count: `errors` with messages, and `success: false` only with an explanation.
 */
export function partialObjectSign(members: JsonObject): string | null {
  const { errors, success, ...rest } = members;
  const isList = Array.isArray(errors) && errors.length > 0;
  const hasMessages = isList && errors.every((one) => isObject(one) && isText(one.message));
  if (hasMessages) return partialSign({ errors });
  const hasWords = [members.trace_id, members.request_id, members.message].some(isText);
  return partialSign(success === false && hasWords ? { ...rest, success } : rest);
}

/** The sign of missing data, and the members that explain it. */
export interface Reported {
  readonly sign: string;
  readonly members: JsonObject;
}

/**
 * The report in the envelope of a list: in its outermost members or in those beside the records. `items`: dotted path
 * of the records.
 */
export function partialEnvelope(envelope: Json, items: string): Reported | null {
  let level: Json | undefined = envelope;
  for (const step of items.split('.')) {
    if (!isObject(level)) return null;
    const { [step]: inner, ...beside } = level as JsonObject;
    const sign = partialSign(beside);
    if (sign !== null) return { sign, members: { ...(envelope as JsonObject), ...beside } };
    level = inner;
  }
  return null;
}

/** The error for a response with incomplete data. `doing` begins the message. */
export function partialError(
  doing: string,
  { sign, members }: Reported,
  describe: DescribeProblem = problemDescriber([]),
): ExportError {
  const { text, details } = describe(members);
  return new ExportError(
    'upstream_nonsense',
    `${doing}: upstream answered 200 with ${sign}${text}`,
    {
      next: 'The records in the response are delivered, and the request is repeated with growing waits; nothing is read as deleted. If this upstream always answers like this, set partial: accept on the source.',
      details: { ...details, sign },
    },
  );
}

function isReported(errors: Json | undefined): boolean {
  if (errors === undefined || errors === null || errors === false) return false;
  if (errors === '' || errors === 0) return false;
  if (Array.isArray(errors)) return errors.length > 0;
  return !isObject(errors) || Object.keys(errors).length > 0;
}

function isText(value: Json | undefined): boolean {
  return typeof value === 'string' && value !== '';
}
