// Whether a request is a delivery from upstream, as pure rules: first its headers before the body is read, then the
// signature of the body. Invariants: no delivery is accepted unless one of the secrets has signed it; the time of a
// comparison reveals nothing about the signature; data outside the signed text, such as the delivery's id, is never
// used to drop another delivery.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { DeliveryRules } from '../contracts/index.ts';
import { bomEnd, cutRecords, skipSpace } from '../tools/index.ts';

const openBracket = 0x5b;
const openBrace = 0x7b;

/** Reasons to reject a request: the response, and the seconds after which it may be sent again. */
export const refusals = {
  wrong_method: { status: 405, text: 'a delivery is a POST' },
  wrong_type: { status: 415, text: 'a delivery is JSON, and not compressed' },
  too_large: { status: 413, text: 'the body is longer than max_body' },
  unsigned: { status: 401, text: 'there is not one signature' },
  forged: { status: 401, text: 'the signature is not that of the body' },
  stale: { status: 403, text: 'it was not sent just now, or does not say when' },
  not_json: { status: 400, text: 'the body is not one JSON value' },
  too_many: { status: 429, text: 'too much is being sent at once', retryAfterS: 1 },
  full: { status: 503, text: 'there is no room for it now', retryAfterS: 10 },
  not_held: { status: 503, text: 'it could not be held', retryAfterS: 10 },
  closing: { status: 503, text: 'no process accepts it at this moment', retryAfterS: 2 },
  no_secret: { status: 503, text: 'signatures cannot be looked at now', retryAfterS: 30 },
} as const satisfies Readonly<Record<string, RefusalAnswer>>;

interface RefusalAnswer {
  readonly status: number;
  readonly text: string;
  readonly retryAfterS?: number;
}

/** One of these reasons. */
export type DeliveryRefusal = keyof typeof refusals;

/** A request before its body is read. */
export interface DeliveryHead {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** All values of each header. */
  readonly headersDistinct: NodeJS.Dict<string[]>;
}

/** The reason for a rejection before the body is read; null: the body must be read. */
export function refusalOfHead(head: DeliveryHead, rules: DeliveryRules): DeliveryRefusal | null {
  const { method, headers } = head;
  if (method !== 'POST') return 'wrong_method';
  const { 'content-type': types = [], 'content-encoding': codings = [] } = head.headersDistinct;
  // The upstream document names no content type, so a delivery without one is accepted.
  const isJson = types.every((type) => /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type));
  const isPlain = codings.every((coding) => coding.toLowerCase() === 'identity');
  if (!isJson || !isPlain) return 'wrong_type';
  if (Number(headers['content-length'] ?? 0) > rules.bodyBytesMax) return 'too_large';
  return signatureIn(head, rules) === null ? 'unsigned' : null;
}

/** The reason for a rejection of a body; null: it is a delivery. */
export function refusalOfBody(
  head: DeliveryHead,
  body: Uint8Array,
  { rules, nowMs }: { readonly rules: DeliveryRules; readonly nowMs: number },
): DeliveryRefusal | null {
  const { timestampHeader, maxAgeMs, signsTime } = rules;
  const signature = signatureIn(head, rules);
  if (signature === null) return 'unsigned';
  const time = timestampHeader === null ? null : onlyOne(head, timestampHeader);
  const signed = signsTime ? [Buffer.from(`${time ?? ''}.`), body] : [body];
  const keys = keysOf(rules);
  if (keys === null) return 'no_secret';
  // All keys are tried, so the time does not show which one matches.
  const fitting = keys.filter((key) => {
    const hmac = createHmac('sha256', key);
    for (const part of signed) hmac.update(part);
    return timingSafeEqual(hmac.digest(), signature);
  });
  if (fitting.length === 0) return 'forged';
  if (timestampHeader !== null) {
    const sentMs = time === null ? Number.NaN : sentAt(time);
    if (!(Math.abs(nowMs - sentMs) <= maxAgeMs)) return 'stale';
  }
  return isOneJson(body) ? null : 'not_json';
}

/** The value of a header that occurs once, or null. */
export function onlyOne({ headersDistinct }: Pick<DeliveryHead, 'headersDistinct'>, name: string) {
  const values = headersDistinct[name] ?? [];
  return values.length === 1 ? (values[0] ?? null) : null;
}

function signatureIn(head: DeliveryHead, { signatureHeader }: DeliveryRules): Buffer | null {
  const text = onlyOne(head, signatureHeader) ?? '';
  const hex = /^sha256=([0-9a-f]{64})$/i.exec(text)?.[1];
  return hex === undefined ? null : Buffer.from(hex, 'hex');
}

/** With an empty key any client could sign: null if a key cannot be read or is empty. */
function keysOf({ secrets, secretEncoding }: DeliveryRules): readonly Buffer[] | null {
  try {
    const keys = secrets.map((secret) => Buffer.from(secret.reveal(), secretEncoding));
    return keys.some(({ length }) => length === 0) ? null : keys;
  } catch {
    return null;
  }
}

/** Epoch milliseconds: from seconds, milliseconds, or any date with a zone. */
function sentAt(text: string): number {
  if (/^\d{1,14}$/.test(text)) return Number(text) * (text.length > 11 ? 1 : 1_000);
  return Date.parse(text);
}

/** As the send stage will read it. */
function isOneJson(body: Uint8Array): boolean {
  try {
    return cutRecords(inList(body), '').length === 1;
  } catch {
    return false;
  }
}

/** A longer array is one record: each record of a delivery is a page. */
const recordsMax = 10_000;

/**
 * The records of an accepted body: the objects of an array, in order, or the body itself. An empty array, or one with
 * other elements, is one record.
 */
export function recordsIn(body: Uint8Array): readonly Uint8Array[] {
  if (body[skipSpace(body, bomEnd(body))] !== openBracket) return [body];
  const { starts, ends, length } = cutRecords(body, '');
  const isList = length > 0 && length <= recordsMax && starts.every((at) => body[at] === openBrace);
  if (!isList) return [body];
  return Array.from(starts, (start, at) => body.subarray(start, ends[at]));
}

/** The list of one record that a delivery's page contains. */
export function inList(body: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from('['), body, Buffer.from(']')]);
}
