// What an answer says about limits, read from whichever headers a server uses: the documents name a
// few and leave the rest open, so every family in use is understood and custom names can be
// configured. Pure; what follows from a sign is the throttle's business. Garbage is ignored, never
// guessed at: `Number('')` is 0 and `Number('0x10')` is 16, so numbers are digits or nothing.

import { parseHttpDate } from '../contracts/http-date.ts';
import { parseDictionary, parseList } from './structured-field.ts';

/** What one answer says about limits. A missing member was not said, or not legibly. */
export interface RateSign {
  /** The answer was 429. */
  readonly refused: boolean;
  /** Retry-After of a 429 or 5xx, in milliseconds; a past date is 0. Never clamped down. */
  readonly retryAfterMs?: number;
  readonly limit?: number;
  readonly remaining?: number;
  /** Milliseconds until the budget is whole again, at least 1 s, at most a day. */
  readonly resetMs?: number;
}

/** Header names that an upstream calls its own (`rate_limit_headers`); tried first. */
interface RateHeaderNames {
  readonly limit?: string | undefined;
  readonly remaining?: string | undefined;
  readonly reset?: string | undefined;
}

/** `nowMs`: epoch milliseconds, used where the answer has no Date of its own. */
export interface RateSignOptions {
  readonly nowMs: number;
  readonly names?: RateHeaderNames | undefined;
}

type Headers = Readonly<Record<string, string>>;
type Budget = Pick<RateSign, 'limit' | 'remaining' | 'resetMs'>;

const families = ['x-ratelimit', 'x-rate-limit', 'ratelimit'].map((family) => ({
  limit: `${family}-limit`,
  remaining: `${family}-remaining`,
  reset: `${family}-reset`,
}));

/** The time by the server's clock, epoch milliseconds; most signs are told without it. */
type ServerClock = () => number;

/** A reset is guessed (seconds or epoch?): misread, it must not park a path for years. */
const resetMsMax = 86_400_000;
const resetMsMin = 1_000;

/**
 * Reads the sign. Retry-After per RFC 9110 section 10.2.3; `RateLimit` and `RateLimit-Policy` per
 * draft-ietf-httpapi-ratelimit-headers-10, with the dictionary form of draft 07. Dates count from
 * the answer's own Date header, so that neither clock's error matters.
 */
export function readRateSign(status: number, headers: Headers, options: RateSignOptions): RateSign {
  const serverNow = () => parseHttpDate(headers.date ?? '', options.nowMs) ?? options.nowMs;
  const retryAfterMs =
    status === 429 || status >= 500 ? readRetryAfter(headers['retry-after'], serverNow) : undefined;
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

function readRetryAfter(text: string | undefined, serverNow: ServerClock): number | undefined {
  if (text === undefined) return undefined;
  const seconds = wholeNumbers(text, 10);
  if (seconds) return Math.max(...seconds) * 1_000;
  const serverNowMs = serverNow();
  const date = parseHttpDate(text, serverNowMs);
  return date === null ? undefined : Math.max(0, date - serverNowMs);
}

function readCustom(headers: Headers, names: RateHeaderNames | undefined, serverNow: ServerClock) {
  if (names === undefined) return undefined;
  const text = (name: string | undefined) => name && headers[name.toLowerCase()];
  return budgetOf(text(names.limit), text(names.remaining), resetOf(text(names.reset), serverNow));
}

function readFamilies(headers: Headers, serverNow: ServerClock): Budget | undefined {
  for (const { limit, remaining, reset } of families) {
    const resetMs = resetOf(headers[reset], serverNow);
    const budget = budgetOf(headers[limit], headers[remaining], resetMs);
    if (budget) return budget;
  }
  return undefined;
}

function budgetOf(
  limitText: string | undefined,
  remainingText: string | undefined,
  resetMs: number | undefined,
): Budget | undefined {
  const limit = smallest(limitText);
  // Some servers count on below zero: then nothing is left either.
  const remaining = smallest(remainingText?.replace(/(?<![^\s,])-\d+/g, '0'));
  return said(limit, remaining, resetMs);
}

/** Of what was said; undefined where nothing was. */
function said(
  limit: number | undefined,
  remaining: number | undefined,
  resetMs: number | undefined,
): Budget | undefined {
  const members = Object.entries({ limit, remaining, resetMs });
  const budget = members.filter(([, value]) => value !== undefined);
  return budget.length === 0 ? undefined : Object.fromEntries(budget);
}

function resetOf(text: string | undefined, serverNow: ServerClock): number | undefined {
  if (text === undefined) return undefined;
  const serverNowMs = serverNow();
  const values = wholeNumbers(text, 16);
  if (values) return boundReset(untilMs(Math.max(...values), serverNowMs));
  const date = parseHttpDate(text, serverNowMs) ?? isoDate(text);
  return date === null ? undefined : boundReset(date - serverNowMs);
}

/** Nobody says whether a reset is a moment or a span; its size does. */
function untilMs(value: number, serverNowMs: number): number {
  if (value > 1e12) return value - serverNowMs;
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

function boundReset(ms: number): number {
  return Math.min(Math.max(ms, resetMsMin), resetMsMax);
}

/** The tightest of several policies is the one that will refuse first. */
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
  const resetMs = resetIn(integer(members?.get('reset')));
  return said(integer(members?.get('limit')), remaining, resetMs);
}

function resetIn(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : boundReset(seconds * 1_000);
}

function policyQuota(text: string | undefined, name: unknown): number | undefined {
  const policy = parseList(text ?? '')?.find((item) => item.value === name);
  return integer(policy?.parameters.get('q'));
}

/** What is left, where some servers count on below zero. */
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

/** `60`, or `60, 100;w=3600` as in early drafts; null unless every member is digits. */
function wholeNumbers(text: string, digitsMax: number): readonly number[] | null {
  const values: number[] = [];
  for (const member of text.split(',')) {
    const digits = /^\s*(\d+)\s*(?:;.*)?$/.exec(member)?.[1];
    if (digits === undefined || digits.length > digitsMax) return null;
    values.push(Number(digits));
  }
  return values;
}
