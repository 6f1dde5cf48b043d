// When a receiver says to come back: the Retry-After header of RFC 9110 section 10.2.3. Used by the
// sinks that speak HTTP, for the wait that they hand to the engine with a `retry`. A header that is
// not one of the allowed forms is ignored, so that the engine's own back-off counts; a date is
// measured against the answer's own Date header, since the two machines' clocks need not agree.

import { parseHttpDate } from '../../src/contracts/http-date.ts';

const waitMsMax = 3_600_000;

/**
 * The wait in milliseconds that an answer asks for, or undefined where it asks for none or speaks
 * nonsense. A date that has passed is 0. Bounded to one hour: a receiver whose clock is wrong must
 * not silence a sink for years.
 */
export function retryAfterMs(
  headers: Readonly<Record<string, string>>,
  nowMs: number,
): number | undefined {
  const text = headers['retry-after']?.trim();
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, waitMsMax);
  const until = parseHttpDate(text, nowMs);
  if (until === null) return undefined;
  const from = parseHttpDate(headers.date ?? '', nowMs) ?? nowMs;
  return Math.min(Math.max(until - from, 0), waitMsMax);
}
