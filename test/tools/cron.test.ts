// The times of cron expressions around daylight saving. The property compares them with a slow oracle that reads the
// clock of the zone minute by minute through Intl.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cronFault, parseCron } from '../../src/tools/cron.ts';

const minuteMs = 60_000;

/** The first `count` times after `from`, as ISO texts. */
function timesAfter(expression: string, zone: string, from: string, count = 1): string[] {
  const cron = parseCron(expression, zone);
  const times: string[] = [];
  for (let at = Date.parse(from); times.length < count; ) {
    at = cron.next(at) ?? Number.NaN;
    times.push(new Date(at).toISOString().replace('.000', ''));
  }
  return times;
}

test('seconds of an hour that occurs twice run all through both passes', () => {
  const cron = parseCron('*/2 * * * * *', 'Europe/Zurich');
  const until = Date.parse('2026-10-25T02:10:00Z');
  let at = Date.parse('2026-10-24T23:59:52Z');
  let longest = 0;
  while (at < until) {
    const next = cron.next(at) ?? Number.POSITIVE_INFINITY;
    longest = Math.max(longest, next - at);
    at = next;
  }

  expect(cron.next(Date.parse('2026-10-25T00:59:52Z'))).toBe(Date.parse('2026-10-25T00:59:54Z'));
  expect(longest).toBe(2_000);
});

test.each([
  ['*/15 * * * *', 'America/New_York', '2026-11-01T05:45:00Z', ['2026-11-01T06:00:00Z']],
  // 02:30 does not exist: once, at the first moment after the gap.
  [
    '30 2 * * *',
    'Europe/Zurich',
    '2027-03-27T12:00:00Z',
    ['2027-03-28T01:00:00Z', '2027-03-29T00:30:00Z'],
  ],
  // There is no midnight.
  [
    '0 0 * * *',
    'America/Santiago',
    '2026-09-05T12:00:00Z',
    ['2026-09-06T04:00:00Z', '2026-09-07T03:00:00Z'],
  ],
  // 02:30 occurs twice: once, in the first pass.
  [
    '30 2 * * *',
    'Europe/Zurich',
    '2026-10-24T12:00:00Z',
    ['2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z'],
  ],
  // A process that starts in the second pass does not run what the first pass has run.
  ['30 2 * * *', 'Europe/Zurich', '2026-10-25T01:10:00Z', ['2026-10-26T01:30:00Z']],
  ['0 12 30 12 *', 'Pacific/Apia', '2011-12-29T12:00:00Z', ['2011-12-30T10:00:00Z']],
  ['@weekly', 'Europe/Zurich', '2026-10-25T12:00:00Z', ['2026-10-31T23:00:00Z']],
  ['0 8 L * *', 'UTC', '2027-02-01T00:00:00Z', ['2027-02-28T08:00:00Z']],
  ['0 8 * * MON#1', 'UTC', '2026-11-03T00:00:00Z', ['2026-12-07T08:00:00Z']],
  ['0 0 29 2 *', 'UTC', '2097-01-01T00:00:00Z', ['2104-02-29T00:00:00Z']],
])('%s in %s after %s', (expression, zone, from, expected) => {
  expect(timesAfter(expression, zone, from, expected.length)).toEqual(expected);
});

test('day of month and day of week, both limited: either matches, as in Unix cron', () => {
  expect(timesAfter('0 0 13 * 5', 'UTC', '2026-11-01T00:00:00Z', 4)).toEqual([
    '2026-11-06T00:00:00Z',
    '2026-11-13T00:00:00Z',
    '2026-11-20T00:00:00Z',
    '2026-11-27T00:00:00Z',
  ]);
  expect(timesAfter('0 0 */10 * 5', 'UTC', '2026-11-01T00:00:00Z', 1)).toEqual([
    '2026-12-11T00:00:00Z',
  ]);
});

test('an expression without a date has no next time, and a wrong one names its fault', () => {
  expect(cronFault('0 0 L-30 2 *')).toBeNull();
  expect(parseCron('0 0 L-30 2 *', 'UTC').next(0)).toBeNull();
  expect(cronFault('61 * * * *')).toContain('61');
});

const zones = [
  'Europe/Zurich',
  'America/New_York',
  'America/Santiago',
  'Australia/Lord_Howe', // half an hour
  'Africa/Casablanca', // twice around Ramadan
  'Asia/Beirut', // at midnight
  'Asia/Kolkata', // none
  'America/Scoresbysund', // two hours at once, in 2024
];

/** A minute of a window: its time, and the day, hour and minute that the zone's clock shows. */
interface Shown {
  readonly at: number;
  /** The shown time as if it were UTC. */
  readonly local: number;
}

const windows = new Map<string, readonly Shown[]>();

/** The minutes from two days before the n-th change of the zone's clock in a year until one day after it. */
function windowOf(zone: string, year: number, n: number): readonly Shown[] {
  const name = `${zone} ${year} ${n}`;
  const known = windows.get(name);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' },
  });
  const shown = (at: number): Shown => {
    const parts = Object.fromEntries(
      format.formatToParts(at).map((p) => [p.type, Number(p.value)]),
    );
    const { year: y = 0, month = 0, day = 0, hour = 0, minute = 0 } = parts;
    return { at, local: Date.UTC(y, month - 1, day, hour, minute) };
  };
  const changes: number[] = [];
  const start = Date.UTC(year, 0, 1);
  let offset = shown(start).local - start;
  for (let halfDay = 1; halfDay < 732; halfDay += 1) {
    const at = start + halfDay * 720 * minuteMs;
    const now = shown(at).local - at;
    if (now !== offset) changes.push(at);
    offset = now;
  }
  const middle = changes[n % Math.max(1, changes.length)] ?? start;
  const from = middle - 2 * 1_440 * minuteMs;
  const minutes = Array.from({ length: 3 * 1_440 }, (_, at) => shown(from + at * minuteMs));
  windows.set(name, minutes);
  return minutes;
}

interface Fields {
  readonly minutes: readonly number[];
  readonly hours: readonly number[] | null;
  readonly days: readonly number[] | null;
  readonly weekdays: readonly number[] | null;
}

function expressionOf({ minutes, hours, days, weekdays }: Fields): string {
  const text = (values: readonly number[] | null) => values?.join(',') ?? '*';
  return `${text(minutes)} ${text(hours)} ${text(days)} * ${text(weekdays)}`;
}

function matches({ minutes, hours, days, weekdays }: Fields, local: number): boolean {
  const shown = new Date(local);
  const isDay = days?.includes(shown.getUTCDate());
  const isWeekday = weekdays?.includes(shown.getUTCDay());
  const dayMatches =
    isDay === undefined || isWeekday === undefined
      ? (isDay ?? isWeekday ?? true)
      : isDay || isWeekday;
  const hourMatches = hours?.includes(shown.getUTCHours()) ?? true;
  return dayMatches && hourMatches && minutes.includes(shown.getUTCMinutes());
}

/** All times of the window, by looking at each of its minutes. */
function slowTimes(fields: Fields, window: readonly Shown[]): number[] {
  const seen = new Set<number>();
  const times: number[] = [];
  const isOften = fields.hours === null || fields.minutes.length > 1;
  for (const [n, { at, local }] of window.entries()) {
    const before = window[n - 1]?.local ?? local - minuteMs;
    let isMissed = false;
    for (let gone = before + minuteMs; gone < local; gone += minuteMs) {
      isMissed ||= fields.hours !== null && !seen.has(gone) && matches(fields, gone);
    }
    const isDue = matches(fields, local) && (isOften || !seen.has(local));
    if (isDue || isMissed) times.push(at);
    seen.add(local);
  }
  return times;
}

const some = (min: number, max: number, most: number) =>
  fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: most });

test('times around each change of the clock are the ones that a slow oracle finds', () => {
  const fieldsOf = fc.record({
    minutes: some(0, 59, 3),
    hours: fc.option(some(0, 23, 4)),
    days: fc.option(some(1, 31, 12)),
    weekdays: fc.option(some(0, 6, 3)),
  });
  // Most changes fall into the small hours.
  const night = fieldsOf.map((fields) => ({
    ...fields,
    hours: fields.hours?.map((hour) => hour % 4) ?? null,
    days: null,
  }));
  const zone = fc.constantFrom(...zones);
  const year = fc.integer({ min: 2024, max: 2025 });
  let compared = 0;
  fc.assert(
    fc.property(fc.oneof(fieldsOf, night), zone, year, fc.nat(3), (fields, name, ofYear, n) => {
      const unique = { ...fields, hours: fields.hours && [...new Set(fields.hours)] };
      const window = windowOf(name, ofYear, n);
      const [first, last] = [window[0]?.at ?? 0, window.at(-1)?.at ?? 0];
      // The first day only makes the oracle know the local times that have occurred.
      const from = first + 1_440 * minuteMs;
      const cron = parseCron(expressionOf(unique), name);
      const times: number[] = [];
      for (let at = cron.next(from); at !== null && at <= last; at = cron.next(at)) times.push(at);
      expect(times).toEqual(slowTimes(unique, window).filter((at) => at > from));
      compared += times.length;
    }),
    { numRuns: 400 },
  );
  expect(compared).toBeGreaterThan(1_000);
});
