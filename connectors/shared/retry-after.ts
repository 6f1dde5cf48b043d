// When a receiver says to come back: the Retry-After header of RFC 9110 section 10.2.3. Used by the sinks that speak
// HTTP, for the wait that they hand to the engine with a `retry`. A header that is not one of the allowed forms is
// ignored, so that the engine's own back-off counts; a date is measured against the answer's own Date header, since
// the two machines' clocks need not agree.

const waitMsMax = 3_600_000;
const months = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
// IMF-fixdate, the obsolete RFC 850 form and asctime, as RFC 9110 section 5.6.7 asks a recipient to read them.
const dateForms = [
  new RegExp(`^[A-Z][a-z]{2}, \\d{2} (${months}) \\d{4} \\d{2}:\\d{2}:\\d{2} GMT$`),
  new RegExp(`^[A-Z][a-z]{5,8}, \\d{2}-(${months})-\\d{2} \\d{2}:\\d{2}:\\d{2} GMT$`),
  new RegExp(`^[A-Z][a-z]{2} (${months}) [ \\d]\\d \\d{2}:\\d{2}:\\d{2} \\d{4}$`),
];

/**
 * The wait in milliseconds that an answer asks for, or undefined where it asks for none or speaks nonsense. A date
 * that has passed is 0. Bounded to one hour: a receiver whose clock is wrong must not silence a sink for years.
 */
export function retryAfterMs(
  headers: Readonly<Record<string, string>>,
  nowMs: number,
): number | undefined {
  const text = headers['retry-after']?.trim();
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, waitMsMax);
  const until = parseHttpDate(text);
  if (until === null) return undefined;
  const from = parseHttpDate(headers.date?.trim() ?? '') ?? nowMs;
  return Math.min(Math.max(until - from, 0), waitMsMax);
}

function parseHttpDate(text: string): number | null {
  if (!dateForms.some((form) => form.test(text))) return null;
  const ms = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(ms) ? null : ms;
}
