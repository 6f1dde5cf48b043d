// The times of a cron expression in a time zone. node-cron reads and validates the expression and
// decides which days match; the calendar with its daylight saving is computed here, because
// node-cron 4.6.0 skips an hour that occurs twice, skips a time that does not exist, and requires
// both day fields to match. Invariants:
// - A schedule that runs in every hour, or more than once an hour, follows elapsed time: it runs in
//   both passes of an hour that occurs twice.
// - Every other schedule runs once for each local time: only in the first pass.
// - A schedule that is limited to some hours and has a time in a gap runs once, at the first moment
//   after the gap.
// - If both day fields are limited, either may match (the rule of Unix cron).

import { createRequire } from 'node:module';

/** node-cron, loaded by the first cron expression: most configs start sooner without it. */
const nodeCron = () => createRequire(import.meta.url)('node-cron') as typeof import('node-cron');

const secondMs = 1_000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** 29 February comes at least once in nine years, also around a century without a leap year. */
const searchMsMax = 9 * 366 * dayMs;
/** Longer than any change of a zone's offset; Pacific/Apia skipped a whole day. */
const longestShiftMs = 26 * hourMs;

/** The times of one expression. */
export interface Cron {
  /** The first time after `afterMs`, both epoch milliseconds; null: none within nine years. */
  next(afterMs: number): number | null;
}

/** Why the expression is not valid, in node-cron's words; null: it is valid. */
export function cronFault(expression: string): string | null {
  const { valid, errors } = nodeCron().validateDetailed(expression);
  return valid ? null : (errors[0]?.message ?? 'unknown form');
}

/**
 * Parses a valid expression of 5 or 6 fields, or a nickname such as `@daily`. `timezone`: an IANA
 * name; undefined: the zone of this machine. Throws an Error if the expression is not valid.
 */
export function parseCron(expression: string, timezone: string | undefined): Cron {
  const { second, minute, hour } = nodeCron().parse(expression);
  const times: DayTimes = { seconds: sorted(second), minutes: sorted(minute), hours: sorted(hour) };
  const wall: Wall = { times, matches: dayMatcher(expression) };
  const zone = timezone ?? Temporal.Now.timeZoneId();
  const everyHour = times.hours.length === 24;
  const followsElapsed = everyHour || times.minutes.length * times.seconds.length > 1;
  return {
    next: (afterMs) => nextIn(zone, wall, { afterMs, runsInGaps: !everyHour, followsElapsed }),
  };
}

interface DayTimes {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
}

/** A schedule on the clock on the wall; its times are milliseconds as if that clock were UTC. */
interface Wall {
  readonly times: DayTimes;
  /** Whether the day that begins at `dayStart` matches. */
  readonly matches: (dayStart: number) => boolean;
}

interface Search {
  readonly afterMs: number;
  readonly runsInGaps: boolean;
  readonly followsElapsed: boolean;
}

/** Walks the spans of equal offset, from one that ended before `afterMs` on. */
function nextIn(zone: string, wall: Wall, search: Search): number | null {
  const { afterMs } = search;
  const endMs = afterMs + searchMsMax;
  let span = spanAt(zone, afterMs - longestShiftMs);
  /** Local times before this have occurred already. */
  let passedMs = Number.NEGATIVE_INFINITY;
  while (span.startMs <= endMs) {
    const { startMs, offsetMs } = span;
    const firstMs = Math.max(startMs, afterMs + 1);
    const isRepeated = !search.followsElapsed && passedMs > firstMs + offsetMs;
    const from = isRepeated ? passedMs : firstMs + offsetMs;
    const until = Math.min(span.endMs, endMs + 1);
    const tick = firstTick(wall, from, until + offsetMs);
    if (tick !== null) return tick - offsetMs;
    if (span.endMs > endMs) return null;
    const nextSpan = spanAt(zone, span.endMs);
    passedMs = Math.max(passedMs, span.endMs + offsetMs);
    if (search.runsInGaps && span.endMs > afterMs) {
      const resumes = span.endMs + nextSpan.offsetMs;
      if (firstTick(wall, passedMs, resumes) !== null) return span.endMs;
    }
    span = nextSpan;
  }
  return null;
}

interface Span {
  readonly startMs: number;
  readonly offsetMs: number;
  /** Exclusive; infinite where the zone's offset stays. */
  readonly endMs: number;
}

function spanAt(zone: string, atMs: number): Span {
  const at = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(zone);
  return {
    startMs: atMs,
    offsetMs: at.offsetNanoseconds / 1e6,
    endMs: at.getTimeZoneTransition('next')?.epochMilliseconds ?? Number.POSITIVE_INFINITY,
  };
}

/** The first local time of the schedule in [fromMs, untilMs); null: none. */
function firstTick({ times, matches }: Wall, fromMs: number, untilMs: number): number | null {
  const from = Math.ceil(fromMs / secondMs) * secondMs;
  for (let day = Math.floor(from / dayMs) * dayMs; day < untilMs; day += dayMs) {
    if (!matches(day)) continue;
    const time = firstTimeOfDay(times, Math.max(0, from - day));
    if (time !== null) return day + time < untilMs ? day + time : null;
  }
  return null;
}

/** The first time of a day that is not before `fromMs`, both in milliseconds of the day. */
function firstTimeOfDay({ hours, minutes, seconds }: DayTimes, fromMs: number): number | null {
  for (const hour of hours) {
    if ((hour + 1) * hourMs <= fromMs) continue;
    for (const minute of minutes) {
      const minuteStart = hour * hourMs + minute * 60 * secondMs;
      const second = seconds.find((value) => minuteStart + value * secondMs >= fromMs);
      if (second !== undefined) return minuteStart + second * secondMs;
    }
  }
  return null;
}

/** Days by month, day of month and day of week, each judged by node-cron. */
function dayMatcher(expression: string): Wall['matches'] {
  const fields = expression.trim().split(/\s+/);
  const [dayOfMonth = '*', month = '*', dayOfWeek = '*'] = fields.slice(-3);
  // A nickname such as @weekly matches at midnight, and limits at most one of the day fields.
  const expressions =
    fields.length === 1
      ? [expression]
      : isLimited(dayOfMonth) && isLimited(dayOfWeek)
        ? [`0 0 ${dayOfMonth} ${month} *`, `0 0 * ${month} ${dayOfWeek}`]
        : [`0 0 ${dayOfMonth} ${month} ${dayOfWeek}`];
  const tasks = expressions.map((text) => {
    const task = nodeCron().createTask(text, () => undefined, { timezone: 'UTC' });
    void task.destroy(); // takes it from node-cron's registry; it still matches
    return task;
  });
  return (dayStart) => tasks.some((task) => task.match(new Date(dayStart)));
}

/** Unix cron: a day field that begins with `*` limits no day by itself. */
function isLimited(field: string): boolean {
  return !/^[*?]/.test(field);
}

function sorted(values: readonly number[]): readonly number[] {
  return values.toSorted((a, b) => a - b);
}
