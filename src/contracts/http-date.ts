// Dates in HTTP headers (RFC 9110 section 5.6.7), parsed strictly: `Date.parse` accepts almost any
// text as a date, and a misread Retry-After would stop a stream for years or not at all.

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const time = String.raw`(?<h>\d{2}):(?<m>\d{2}):(?<s>\d{2})`;
const month = '(?<month>[A-Z][a-z]{2})';
const forms: readonly RegExp[] = [
  new RegExp(String.raw`^[A-Z][a-z]{2}, (?<day>\d{2}) ${month} (?<year>\d{4}) ${time} GMT$`),
  new RegExp(String.raw`^[A-Z][a-z]{5,8}, (?<day>\d{2})-${month}-(?<year>\d{2}) ${time} GMT$`),
  new RegExp(String.raw`^[A-Z][a-z]{2} ${month} (?<day>[ \d]\d) ${time} (?<year>\d{4})$`),
];

/**
 * Epoch milliseconds of an IMF-fixdate, or of one of the two obsolete forms (RFC 850, asctime) that
 * recipients must still accept; null for anything else. `nowMs` decides the century of a two-digit
 * year.
 */
export function parseHttpDate(text: string, nowMs: number): number | null {
  for (const form of forms) {
    const parts = form.exec(text.trim())?.groups;
    if (parts) return toEpochMs(parts, nowMs);
  }
  return null;
}

function toEpochMs(
  parts: Readonly<Record<string, string | undefined>>,
  nowMs: number,
): number | null {
  const monthIndex = months.indexOf(parts.month ?? '');
  const day = Number(parts.day);
  const [h, m, s] = [Number(parts.h), Number(parts.m), Number(parts.s)];
  if (monthIndex < 0 || h > 23 || m > 59 || s > 60) return null;
  let year = Number(parts.year);
  if (parts.year?.length === 2) {
    // RFC 9110: a two-digit year more than 50 years ahead means the past century.
    const thisYear = new Date(nowMs).getUTCFullYear();
    year += Math.floor(thisYear / 100) * 100;
    if (year > thisYear + 50) year -= 100;
  }
  const date = new Date(0);
  date.setUTCFullYear(year, monthIndex, day);
  if (date.getUTCMonth() !== monthIndex || date.getUTCDate() !== day) return null;
  return date.setUTCHours(h, m, Math.min(s, 59));
}
