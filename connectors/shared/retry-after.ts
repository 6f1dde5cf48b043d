// The wait that a receiver requests with a `retry`, for HTTP sinks. Bounded: a receiver with a
// wrong clock must not stop a sink for years.

import { retryAfterMs as askedMs } from '../../src/contracts/index.ts';

const waitMsMax = 3_600_000;

/** As `retryAfterMs` of the contracts, at most one hour. */
export function boundedRetryAfterMs(
  headers: Readonly<Record<string, string>>,
  nowMs: number,
): number | undefined {
  const ms = askedMs(headers, nowMs);
  return ms === undefined ? undefined : Math.min(ms, waitMsMax);
}
