// Times and durations for people and reports. Times are epoch milliseconds.

/** RFC 3339 in UTC, such as `2026-01-31T08:00:00.000Z`; null if there is no time. */
export function timeText(at: number): string;
export function timeText(at: number | null): string | null;
export function timeText(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** From where a stream without a checkpoint reads; `start` of a list. */
export function startText(start: 'beginning' | 'now' | number = 'beginning'): string {
  if (start === 'beginning') return 'from the beginning';
  return start === 'now' ? 'now, without existing records' : `at ${timeText(start)}`;
}

/** The time that `timeText` wrote, or null. */
export function epochOf(time: string | null): number | null {
  return time === null ? null : Date.parse(time);
}

/** A duration for people: `3s`, `5m 20s`, `2d 4h`. */
export function spanText(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1_000));
  if (s < 60) return `${s}s`;
  if (s < 3_600) return `${Math.floor(s / 60)}m ${s % 60}s`;
  if (s < 86_400) return `${Math.floor(s / 3_600)}h ${Math.floor((s % 3_600) / 60)}m`;
  return `${Math.floor(s / 86_400)}d ${Math.floor((s % 86_400) / 3_600)}h`;
}

/** An exact duration in one word, for a log line: `250ms`, `2.5s`, `1h5m`. */
export function exactSpanText(ms: number): string {
  if (ms < 1_000) return `${ms}ms`;
  if (ms < 60_000) return `${Math.round(ms / 100) / 10}s`;
  const s = Math.round(ms / 1_000);
  const parts = [Math.floor(s / 3_600), Math.floor((s % 3_600) / 60), s % 60];
  return parts.flatMap((n, i) => (n === 0 ? [] : `${n}${'hms'[i]}`)).join('');
}

/** An approximate duration for a sentence: `90 s`, `5 min`, `3 h`. */
export function roughSpanText(ms: number): string {
  const s = Math.floor(ms / 1_000);
  if (s < 120) return `${s} s`;
  if (s < 7_200) return `${Math.floor(s / 60)} min`;
  return `${Math.floor(s / 3_600)} h`;
}

/** Time since then: `5m 20s ago`, `never`. */
export function agoText(at: number | null | undefined, now: number): string {
  return at === null || at === undefined || at === 0 ? 'never' : `${spanText(now - at)} ago`;
}

/** Time until then: `in 5m 20s`, or `due` for a past time. */
export function untilText(at: number, now: number, due: string): string {
  return at > now ? `in ${spanText(at - now)}` : due;
}
