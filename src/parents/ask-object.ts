// Reads one parent's object, which is reported as a whole whenever its content differs from the last reported one: an
// investigation with more evidence, a completed change. Invariants: the object is delivered as upstream sent it; a
// content that returns is reported again, because it is the object's present state.

import { isUtf8 } from 'node:buffer';
import {
  type ExportError,
  type Failure,
  isObject,
  type JsonObject,
  type ListStream,
  type NewPage,
  type ParentsStream,
} from '../contracts/index.ts';
import {
  Identifier,
  nonsense,
  partialError,
  partialSign,
  type Reported,
  readJson,
} from '../list/index.ts';

import { pageContext } from '../poll/index.ts';
import { bomEnd, sourceBytesAt } from '../tools/index.ts';
import { objectDigest } from './object-digest.ts';
import type { ParentState } from './state.ts';

/** The result for an object, with a page if its content is new. */
export type ObjectAsked =
  | {
      readonly outcome: 'done';
      readonly isFinal: boolean;
      readonly digest: string;
      readonly page: NewPage | null;
      /** The response reports missing data; the object is requested again. */
      readonly doubt?: ExportError;
    }
  | Failure;

/** Requests an object. */
export async function askObject(
  stream: ParentsStream,
  { id, list, known, now }: { id: string; list: ListStream; known: ParentState; now: () => number },
  signal: AbortSignal,
): Promise<ObjectAsked> {
  const answer = await list.upstream.get(list.request, signal);
  if (answer.outcome !== 'ok') return answer;
  const doing = `reading ${list.name}`;
  const read = readJson(answer.body, doing);
  if (!read.good) return { outcome: 'retry', cause: read.cause };
  const { value } = read;
  if (!isObject(value) || Object.keys(value).length === 0) {
    return { outcome: 'retry', cause: nonsense(doing, 'the answer is no object, or an empty one') };
  }
  // An object may be wrapped like a list.
  const { data } = value;
  const lost = lostOf(list, value);
  const isWrapped = isObject(data) && (Object.keys(value).length === 1 || lost !== null);
  const object = isWrapped
    ? (sourceBytesAt(answer.body, 'data') ?? new Uint8Array())
    : answer.body.subarray(bomEnd(answer.body));
  const body = Buffer.concat([Buffer.from('['), object, Buffer.from(']')]);
  // The report of missing data is no content of the object: it differs in each response.
  const ignore = lost === null ? list.ignore : [...(list.ignore ?? []), ...reportMembers];
  const digestOf = (array: Buffer) => objectDigest(array, { id: list.id, ignore });
  const digest = digestOf(body);
  // Versions before 0.3 wrote U+FFFD for bytes of a wrapped object that are not UTF-8.
  const isReported =
    digest === known.digest ||
    (isWrapped && !isUtf8(body) && known.digest === digestOf(Buffer.from(body.toString())));
  const isLast = stream.object?.isFinal(isWrapped ? data : value) ?? false;
  const isFinal = isLast && lost === null;
  const doubt = lost && { doubt: partialError(doing, lost, answer.describe) };
  if (isReported) return { outcome: 'done', isFinal, digest, page: null, ...doubt };
  const { source, name, company = '', records: kind } = stream;
  const identifier = new Identifier({ source, company, stream: name });
  const uids = identifier.ownUid(['object', id, known.version + 1, digest]);
  const again = known.version > 0 ? { isUpdate: true } : {};
  const context = { ...pageContext(stream, kind, now()), parent: id, ...again };
  const page = { context, body, items: '', kept: null, uids };
  return { outcome: 'done', isFinal, digest, page, ...doubt };
}

/** Members within an object by which a response may report missing data. */
const reportMembers = ['errors', 'partial', 'timed_out', 'success', 'trace_id', 'request_id'];

/**
 * The sign of missing data; null: there is none, or it is accepted. An object may itself have failed, and its errors
 * are then content: only an envelope around it reports missing data, or errors with the `trace_id` of the response.
 */
function lostOf({ partial }: ListStream, value: JsonObject): Reported | null {
  if (partial === 'accept') return null;
  const isTraced = typeof value.trace_id === 'string' && value.errors !== undefined;
  const sign = isObject(value.data) || isTraced ? partialSign(value) : null;
  return sign === null ? null : { sign, members: value };
}
