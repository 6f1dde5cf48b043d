// Times that an operator writes in the config or on the command line (RFC 3339).

const form = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i;

/** Epoch milliseconds of a time that names its offset; null for any other text, and for a day that does not exist. */
export function parseRfc3339(text: string): number | null {
  const at = form.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) || !isDay(text.slice(0, 10)) ? null : at;
}

/** True for a day of the calendar such as `2026-02-28`: JavaScript reads 2026-02-30 as March 2. */
export function isDay(day: string): boolean {
  const at = Date.parse(`${day}T00:00:00Z`);
  return day.length === 10 && !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
}
