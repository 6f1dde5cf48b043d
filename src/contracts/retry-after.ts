// The wait that a server requests: the Retry-After header of RFC 9110 section 10.2.3, and the
// Retry-After-Ms of some gateways. Used for upstreams and receivers. Parsed strictly: a malformed
// value is ignored, so that the caller's own back-off applies. Nothing is shortened here.

import { parseHttpDate } from './http-date.ts';

type Headers = Readonly<Record<string, string>>;

/**
 * The wait in milliseconds that a response requests; undefined: none, or none that is valid. A date
 * counts from the response's own Date header, because the clocks of two machines differ; a past
 * date is 0. If both headers are present, the longer wait counts. `nowMs`: epoch milliseconds, used
 * if the response has no Date.
 */
export function retryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const waits = [afterSeconds(headers, nowMs), afterMs(headers['retry-after-ms'])];
  const read = waits.filter((wait) => wait !== undefined);
  return read.length === 0 ? undefined : Math.max(...read);
}

/** The time by the server's clock, epoch milliseconds. */
export function serverTimeMs(headers: Headers, nowMs: number): number {
  return parseHttpDate(headers.date ?? '', nowMs) ?? nowMs;
}

/** `60`, or `60, 100;w=3600` as in early drafts; null unless every member is digits. */
export function wholeNumbers(text: string, digitsMax: number): readonly number[] | null {
  const values: number[] = [];
  for (const member of text.split(',')) {
    const digits = /^\s*(\d+)\s*(?:;.*)?$/.exec(member)?.[1];
    if (digits === undefined || digits.length > digitsMax) return null;
    values.push(Number(digits));
  }
  return values;
}

function afterSeconds(headers: Headers, nowMs: number): number | undefined {
  const text = headers['retry-after'];
  if (text === undefined) return undefined;
  const seconds = wholeNumbers(text, 10);
  if (seconds) return Math.max(...seconds) * 1_000;
  const serverNowMs = serverTimeMs(headers, nowMs);
  const date = parseHttpDate(text, serverNowMs);
  return date === null ? undefined : Math.max(0, date - serverNowMs);
}

function afterMs(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d{1,13}(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}
