// The headers by which an endpoint announces its end. RFC 8594 defines `Sunset` as the end. RFC
// 9745 defines `Deprecation` as the moment of deprecation, but the services document puts the
// end-of-life date there, announced twelve months ahead: so a future date in it is an end, and a
// past one is a deprecation only. Invariant: headers are untrusted text; a value that is not a date
// is ignored.

import { parseHttpDate } from '../contracts/index.ts';
import { cleanText } from '../tools/index.ts';
import type { AnnouncedEnd } from './ends.ts';
import { parseFieldItem } from './structured-field.ts';

type Headers = Readonly<Record<string, string>>;

/** Longer values are cut: no date needs so many characters. */
const lengthMax = 1_024;
/** A date outside these years is a fault of the sender. */
const yearsMs = [Date.UTC(2000, 0, 1), Date.UTC(2200, 0, 1)] as const;

/** The announcement of a response about its endpoint, times in epoch milliseconds; null: none. */
export function announcedIn(
  headers: Headers,
  nowMs: number,
): Omit<AnnouncedEnd, 'endpoint'> | null {
  const deprecation = readDeprecation(headers.deprecation, nowMs);
  const sunsetMs = readSunset(headers.sunset, nowMs);
  if (deprecation === null && sunsetMs === null) return null;
  const deprecationMs = sane(deprecation?.atMs ?? null);
  const isEnd = deprecationMs !== null && deprecationMs > nowMs;
  return { deprecationMs, sunsetMs, endsMs: sunsetMs ?? (isEnd ? deprecationMs : null) };
}

function readSunset(text: string | undefined, nowMs: number): number | null {
  const dates = valuesIn(text).flatMap((value) => sane(parseHttpDate(value, nowMs)) ?? []);
  return dates.length === 0 ? null : Math.min(...dates);
}

/**
 * RFC 9745's `@1688169599`, and the forms before it: `true`, `?1`, an HTTP-date, an ISO date, bare
 * epoch seconds. Of several the earliest date. Null when absent, malformed or false; `atMs` null
 * when it is deprecated without a date.
 */
export function readDeprecation(
  text: string | undefined,
  nowMs: number,
): { readonly atMs: number | null } | null {
  const values = valuesIn(text).flatMap((value) => deprecationIn(value, nowMs) ?? []);
  if (values.length === 0) return null;
  const dates = values.flatMap(({ atMs }) => atMs ?? []);
  return { atMs: dates.length === 0 ? null : Math.min(...dates) };
}

function deprecationIn(text: string, nowMs: number): { readonly atMs: number | null } | null {
  const item = parseFieldItem(text);
  if (item?.type === 'date') return inRange(item.value * 1_000);
  if (item?.type === 'boolean') return item.value ? { atMs: null } : null;
  if (text.toLowerCase() === 'true') return { atMs: null };
  if (/^\d{9,11}$/.test(text)) return inRange(Number(text) * 1_000);
  const httpDate = parseHttpDate(text, nowMs);
  if (httpDate !== null) return { atMs: httpDate };
  if (!/^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(text)) return null;
  const isoDate = Date.parse(text);
  return Number.isNaN(isoDate) ? null : { atMs: isoDate };
}

/** A structured date may hold more seconds than a JavaScript date. */
function inRange(ms: number): { readonly atMs: number } | null {
  return Math.abs(ms) <= 8.64e15 ? { atMs: ms } : null;
}

/** Repeated header lines arrive joined by commas; the day name of an HTTP-date has a comma too. */
function valuesIn(text = ''): readonly string[] {
  const cut = text.slice(0, lengthMax).trim();
  return cut === '' ? [] : cut.split(/(?<!\b[A-Z][a-z]{2,8}),[ \t]*/);
}

function sane(ms: number | null): number | null {
  return ms !== null && ms >= yearsMs[0] && ms < yearsMs[1] ? ms : null;
}

/** The address under rel deprecation, sunset or successor-version (RFC 8288), for the log. */
export function linkIn({ link }: Headers): string | undefined {
  const pattern = /<([^<>]{1,500})>[^<>]*;\s*rel="?(?:deprecation|sunset|successor-version)\b/i;
  const target = link === undefined ? undefined : pattern.exec(link.slice(0, 4_096))?.[1];
  return target && cleanText(target, 200);
}
