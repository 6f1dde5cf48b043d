// Upstream's description of a failure. The two APIs have an envelope each (`{error: {code, message,
// field}, request_id}`, and RFC 9457 problem details with `trace_id` and `errors`), token endpoints
// a third (RFC 6749 section 5.2), and proxies respond with anything. All are parsed alike and
// tolerantly: a member of the wrong type counts as absent. The texts are hostile, so they are
// cleaned and bounded here, before they reach a message.

import {
  type ErrorDetails,
  type HttpResponse,
  isObject,
  type Json,
  type JsonObject,
} from '../contracts/index.ts';
import { cleanText } from './clean-text.ts';

/** The useful parts of a failure's body; each is one short printable line. */
export interface Problem {
  /** Stable, machine-readable. */
  readonly code?: string;
  readonly message?: string;
  /** The rejected field, which distinguishes a refused cursor from a refused limit. */
  readonly field?: string;
  /** For upstream's support. */
  readonly request_id?: string;
  readonly trace_id?: string;
}

const messageLengthMax = 300;
const nameLengthMax = 120;
/** A failure's body is small; a larger one is a page of something else. */
const problemBytesMax = 64 * 1024;
/** A page's title is near its start. */
const titleBytesMax = 2 * 1024;

const requestIdHeaders = ['x-request-id', 'request-id', 'x-correlation-id', 'x-amzn-requestid'];

/** Upstream's id of a response, if given: in a header, or in a failure's body. */
export function requestIdOf({ status, headers, body }: HttpResponse): { requestId?: string } {
  const named = requestIdHeaders.flatMap((name) => headers[name] ?? [])[0];
  if (named !== undefined) return { requestId: cleanText(named, nameLengthMax) };
  const { request_id, trace_id } = status === 200 ? {} : readProblem(body, []);
  const requestId = request_id ?? trace_id;
  return requestId === undefined ? {} : { requestId };
}

/** Parses a failure's body of any type. `hidden`: values not to be repeated (cleanText). */
export function readProblem(body: Uint8Array, hidden: readonly string[]): Problem {
  const parsed = body.length > problemBytesMax ? null : parseObject(body);
  return parsed === null ? titleOf(body, hidden) : problemOf(parsed, hidden);
}

/** An HTML page comes from a proxy; its title identifies it. */
function titleOf(body: Uint8Array, hidden: readonly string[]): Problem {
  const beginning = new TextDecoder().decode(body.subarray(0, titleBytesMax));
  const title = /<title[^<>]*>([^<>]+)</i.exec(beginning)?.[1];
  return title === undefined ? {} : { message: cleanText(title, nameLengthMax, hidden) };
}

/** The problem in a body that is parsed already. */
export function problemOf(body: JsonObject, hidden: readonly string[]): Problem {
  const error = isObject(body.error) ? body.error : {};
  const text = (value: Json | undefined, lengthMax: number) =>
    typeof value === 'string' && value !== '' ? cleanText(value, lengthMax, hidden) : undefined;
  const problem = {
    code: text(error.code ?? body.error, nameLengthMax),
    message:
      text(error.message ?? body.error_description, messageLengthMax) ??
      text(wordsOf(body), messageLengthMax),
    field: text(error.field, nameLengthMax),
    request_id: text(body.request_id, nameLengthMax),
    trace_id: text(body.trace_id, nameLengthMax),
  };
  return Object.fromEntries(Object.entries(problem).filter(([, value]) => value !== undefined));
}

/** ` (code validation_failed: cursor is not valid; request_id 7f3a)`; empty: no information. */
export function describeProblem(problem: Problem): string {
  const parts = [
    [problem.code && `code ${problem.code}`, problem.message].filter(Boolean).join(': '),
    problem.field && `field ${problem.field}`,
    problem.request_id && `request_id ${problem.request_id}`,
    problem.trace_id && `trace_id ${problem.trace_id}`,
  ].filter(Boolean);
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`;
}

/** Describes a problem without the token or any other secret of the request. */
export type DescribeProblem = (members: JsonObject) => {
  /** ` (message; trace_id t)`, or empty. */
  readonly text: string;
  readonly details: ErrorDetails;
};

/** A function that describes problems; `hidden`: values that must not be repeated. */
export function problemDescriber(hidden: readonly string[]): DescribeProblem {
  return (members) => {
    const problem = problemOf(members, hidden);
    return { text: describeProblem(problem), details: problemDetails(problem) };
  };
}

/** Log fields of an error. Upstream's code is not one of sluice's codes, and has its own name. */
export function problemDetails({ code, field, request_id, trace_id }: Problem): ErrorDetails {
  const details = { upstream_code: code, field, request_id, trace_id };
  return Object.fromEntries(Object.entries(details).filter(([, value]) => value !== undefined));
}

/** The body as a JSON object; null if it is not one. */
export function parseObject(body: Uint8Array): JsonObject | null {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(body));
    return isObject(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

/** RFC 9457: title, detail, and each error's message. */
function wordsOf(body: JsonObject): string {
  const errors: readonly Json[] = Array.isArray(body.errors) ? body.errors : [];
  const messages = errors.slice(0, 5).map((entry) => (isObject(entry) ? entry.message : undefined));
  const said = [body.title, body.detail, ...messages, body.message];
  const words = said.flatMap((word) => (typeof word === 'string' && word !== '' ? [word] : []));
  return words.filter((word, at) => !isRepeated(word, at, words)).join(': ');
}

/**
 * Repeated, or contained in a longer text: details often appear a second time with a field in
 * front.
 */
function isRepeated(word: string, at: number, words: readonly string[]): boolean {
  return words.some((other, index) => (other === word ? index < at : other.endsWith(`: ${word}`)));
}
