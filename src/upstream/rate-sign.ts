// Rate limits in a response, from the headers that servers use: the documents name a few and leave
// the rest open, so every common family is parsed and custom names can be configured. Pure; the
// throttle decides what follows. Malformed values are ignored, never guessed: `Number('')` is 0 and
// `Number('0x10')` is 16, so only digits are numbers.

import {
  parseHttpDate,
  retryAfterMs as readRetryAfter,
  serverTimeMs,
  wholeNumbers,
} from '../contracts/index.ts';
import { parseDictionary, parseList } from './structured-field.ts';

/** The limits in one response. A missing member was absent or malformed. */
export interface RateSign {
  /** The response was 429. */
  readonly refused: boolean;
  /** Retry-After of a 403, 429 or 5xx, in milliseconds; a past date is 0. Never shortened. */
  readonly retryAfterMs?: number;
  readonly limit?: number;
  readonly remaining?: number;
  /** Milliseconds until the budget is full again, at least 1 s, at most a day. */
  readonly resetMs?: number;
  /** A reset time was more than a day away, and is ignored. */
  readonly distantReset?: true;
}

/** Header names of one upstream (`rate_limit_headers`); tried first. */
interface RateHeaderNames {
  readonly limit?: string | undefined;
  readonly remaining?: string | undefined;
  readonly reset?: string | undefined;
}

/** `nowMs`: epoch milliseconds, used if the response has no Date. */
export interface RateSignOptions {
  readonly nowMs: number;
  readonly names?: RateHeaderNames | undefined;
}

type Headers = Readonly<Record<string, string>>;
type Budget = Pick<RateSign, 'limit' | 'remaining' | 'resetMs' | 'distantReset'>;

const families = ['x-ratelimit', 'x-rate-limit', 'ratelimit'].map((family) => ({
  limit: `${family}-limit`,
  remaining: `${family}-remaining`,
  reset: `${family}-reset`,
  resetAfter: `${family}-reset-after`,
}));

/** The time by the server's clock, epoch milliseconds; computed only if needed. */
type ServerClock = () => number;

/** The unit of a reset is guessed: a misread value must not block a path for years. */
const resetMsMax = 86_400_000;
const resetMsMin = 1_000;

/**
 * Parses the limits. Retry-After per RFC 9110 section 10.2.3; `RateLimit` and `RateLimit-Policy`
 * per draft-ietf-httpapi-ratelimit-headers-10, with the dictionary form of draft 07. Dates count
 * from the response's own Date header, so that clock errors do not matter.
 */
export function readRateSign(status: number, headers: Headers, options: RateSignOptions): RateSign {
  const serverNow = () => serverTimeMs(headers, options.nowMs);
  const mayWait = status === 403 || status === 429 || status >= 500;
  const retryAfterMs = mayWait ? readRetryAfter(headers, options.nowMs) : undefined;
  const budget =
    readCustom(headers, options.names, serverNow) ??
    readFamilies(headers, serverNow) ??
    readStructured(headers) ??
    {};
  return {
    refused: status === 429,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...budget,
  };
}

function readCustom(headers: Headers, names: RateHeaderNames | undefined, serverNow: ServerClock) {
  if (names === undefined) return undefined;
  const text = (name: string | undefined) => name && headers[name.toLowerCase()];
  return budgetOf(text(names.limit), text(names.remaining), resetOf(text(names.reset), serverNow));
}

function readFamilies(headers: Headers, serverNow: ServerClock): Budget | undefined {
  for (const { limit, remaining, reset, resetAfter } of families) {
    const until = spanOf(headers[resetAfter]) ?? resetOf(headers[reset], serverNow);
    const budget = budgetOf(headers[limit], headers[remaining], until);
    if (budget) return budget;
  }
  return undefined;
}

function budgetOf(
  limitText: string | undefined,
  remainingText: string | undefined,
  reset: Reset | undefined,
): Budget | undefined {
  const limit = smallest(limitText);
  // Some servers count below zero: then nothing is left either.
  const remaining = smallest(remainingText?.replace(/(?<![^\s,])-\d+/g, '0'));
  return said(limit, remaining, reset);
}

/** The present members; undefined if all are absent. */
function said(
  limit: number | undefined,
  remaining: number | undefined,
  reset: Reset | undefined,
): Budget | undefined {
  const until = reset === 'distant' ? { distantReset: true } : { resetMs: reset };
  const members = Object.entries({ limit, remaining, ...until });
  const budget = members.filter(([, value]) => value !== undefined);
  return budget.length === 0 ? undefined : Object.fromEntries(budget);
}

/** Milliseconds until a reset; `distant`: more than a day, which is not trusted. */
type Reset = number | 'distant';

function resetOf(text: string | undefined, serverNow: ServerClock): Reset | undefined {
  if (text === undefined) return undefined;
  const serverNowMs = serverNow();
  const values = wholeNumbers(text, 20) ?? decimal(text);
  if (values) return boundReset(untilMs(Math.max(...values), serverNowMs));
  const date = parseHttpDate(text, serverNowMs) ?? isoDate(text);
  return date === null ? undefined : boundReset(date - serverNowMs);
}

/** A header with a duration: seconds, possibly with a fraction. */
function spanOf(text: string | undefined): Reset | undefined {
  const values = text === undefined ? null : (wholeNumbers(text, 10) ?? decimal(text));
  return values ? boundReset(Math.max(...values) * 1_000) : undefined;
}

function decimal(text: string): readonly number[] | null {
  return /^\s*\d{1,20}\.\d+\s*$/.test(text) ? [Number(text)] : null;
}

/**
 * No header says whether its value is a moment or a duration, nor its unit: the magnitude decides.
 * Epoch seconds have 10 digits in these centuries, milliseconds 13, microseconds 16, nanoseconds
 * 19.
 */
function untilMs(value: number, serverNowMs: number): number {
  if (value >= 1e17) return value / 1e6 - serverNowMs;
  if (value >= 1e14) return value / 1e3 - serverNowMs;
  if (value > 1e11) return value - serverNowMs;
  if (value > 1e9) return value * 1_000 - serverNowMs;
  return value * 1_000;
}

function isoDate(text: string): number | null {
  const trimmed = text.trim();
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/.test(trimmed))
    return null;
  const ms = Date.parse(trimmed);
  return Number.isNaN(ms) ? null : ms;
}

function boundReset(ms: number): Reset {
  return ms > resetMsMax ? 'distant' : Math.max(ms, resetMsMin);
}

/** Of several policies, the tightest one rejects first. */
function readStructured(headers: Headers): Budget | undefined {
  const text = headers.ratelimit;
  if (text === undefined) return undefined;
  let tightest: { name: unknown; remaining: number; seconds: number | undefined } | undefined;
  for (const item of parseList(text) ?? []) {
    const remaining = left(item.parameters.get('r'));
    if (remaining === undefined) continue;
    const seconds = integer(item.parameters.get('t'));
    const tighter =
      tightest === undefined ||
      remaining < tightest.remaining ||
      (remaining === tightest.remaining && (seconds ?? 0) > (tightest.seconds ?? 0));
    if (tighter) tightest = { name: item.value, remaining, seconds };
  }
  if (tightest === undefined) return readDictionary(text);
  const limit = policyQuota(headers['ratelimit-policy'], tightest.name);
  return said(limit, tightest.remaining, resetIn(tightest.seconds));
}

function readDictionary(text: string): Budget | undefined {
  const members = parseDictionary(text);
  const remaining = left(members?.get('remaining'));
  if (remaining === undefined) return undefined;
  const reset = resetIn(integer(members?.get('reset')));
  return said(integer(members?.get('limit')), remaining, reset);
}

function resetIn(seconds: number | undefined): Reset | undefined {
  return seconds === undefined ? undefined : boundReset(seconds * 1_000);
}

function policyQuota(text: string | undefined, name: unknown): number | undefined {
  const policy = parseList(text ?? '')?.find((item) => item.value === name);
  return integer(policy?.parameters.get('q'));
}

/** The remaining requests; some servers count below zero. */
function left(item: Parameters<typeof integer>[0]): number | undefined {
  const isOverdrawn = item?.type === 'integer' && typeof item.value === 'number' && item.value < 0;
  return isOverdrawn ? 0 : integer(item);
}

function integer(item: { readonly type: string; readonly value: unknown } | undefined) {
  return item?.type === 'integer' && typeof item.value === 'number' && item.value >= 0
    ? item.value
    : undefined;
}

function smallest(text: string | undefined): number | undefined {
  const values = text === undefined ? null : wholeNumbers(text, 15);
  return values ? Math.min(...values) : undefined;
}
