// A 200 that reports errors beside its data: some records are missing, and the envelope says so. The signs are those of
// RFC 9457 (`errors`), of search engines (`timed_out`, `partial`) and of plain envelopes (`success: false`). An empty
// `errors` is no error.

import { ExportError, isObject, type Json, type JsonObject } from '../contracts/index.ts';
import { type DescribeProblem, problemDescriber } from '../tools/index.ts';

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
