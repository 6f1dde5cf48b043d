// When a stream is due. Intervals count from the beginning of a poll; cron ticks stand where the calendar of the
// named time zone has them; what a long poll ran over is counted and never made up for.

import { expect, test } from 'vitest';
import { timetable } from '../../src/poll/schedule.ts';
import { manualClock } from '../support/manual-clock.ts';

/** A clock that starts at the machine's time and stands still. */
function clockNow() {
  return manualClock(Date.now());
}

function partsIn(zone: string, at: number): Record<string, string> {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    weekday: 'short',
    hourCycle: 'h23',
  });
  return Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
}

test('timetable of an interval counts from the beginning of the last poll', async () => {
  const clock = manualClock();
  const table = timetable({ everyMs: 30_000 }, clock);

  const atOnce = table.untilNext(clock.monotonic());
  await clock.advance(12_000);
  const later = table.untilNext(0);

  expect([atOnce, later, table.skipped]).toEqual([30_000, 18_000, 0]);
});

test('an adaptive interval is the shortest while records arrive, and grows to the longest without', async () => {
  const clock = manualClock();
  const table = timetable({ minMs: 5_000, everyMs: 300_000 }, clock);
  const waits = (fresh: number, polls: number) =>
    Array.from({ length: polls }, () => table.untilNext(clock.monotonic(), fresh));

  const first = table.intervalMs;
  const idle = waits(0, 13);
  const busy = waits(1, 3);
  const after = waits(0, 2);

  expect(first).toBe(5_000);
  expect(idle.slice(0, 3)).toEqual([7_500, 11_250, 16_875]);
  expect(idle.slice(-3)).toEqual([300_000, 300_000, 300_000]);
  expect(busy).toEqual([5_000, 5_000, 5_000]);
  expect(after).toEqual([7_500, 11_250]);
  expect(table.intervalMs).toBe(11_250);
  expect(timetable({ everyMs: 5_000 }, clock).intervalMs).toBeNull();
});

test('A54: timetable of an interval skips and counts the times that a long poll missed', async () => {
  const clock = manualClock();
  const table = timetable({ everyMs: 30_000 }, clock);
  await clock.advance(95_000);

  const wait = table.untilNext(0);

  expect([wait, table.skipped]).toEqual([0, 3]);
});

test('A54: timetable of an interval does not feel the wall clock jump', () => {
  const clock = manualClock();
  const table = timetable({ everyMs: 30_000 }, clock);
  clock.jump(-3_600_000);

  expect(table.untilNext(0)).toBe(30_000);
});

test('timetable of a cron expression with seconds waits for that second', () => {
  const clock = clockNow();
  const table = timetable({ cron: '*/15 * * * * *', timezone: undefined }, clock);

  const wait = table.untilNext(0);

  expect(wait).toBeGreaterThanOrEqual(0);
  expect(wait).toBeLessThanOrEqual(15_000 + 1_000);
  expect((clock.now() + wait) % 15_000).toBe(0);
});

test.each(['Europe/Zurich', 'Asia/Kolkata', 'America/Los_Angeles', 'UTC'])(
  'timetable of a cron expression stands in the calendar of %s',
  (timezone) => {
    const clock = clockNow();
    const table = timetable({ cron: '30 12 * * 1', timezone }, clock);

    const at = clock.now() + table.untilNext(0);

    expect(partsIn(timezone, at)).toMatchObject({
      weekday: 'Mon',
      hour: '12',
      minute: '30',
      second: '00',
    });
  },
);

test('A54: timetable of a cron expression counts each tick that a long poll ran over', async () => {
  const clock = clockNow();
  const table = timetable({ cron: '* * * * *', timezone: undefined }, clock);
  await clock.advance(table.untilNext(0));

  const onTime = table.skipped;
  await clock.advance(150_000);
  table.untilNext(0);

  expect([onTime, table.skipped]).toEqual([0, 2]);
});

test('timetable of a cron expression looks at its clock, also in the hour that occurs twice', () => {
  const clock = manualClock(Date.parse('2026-10-25T00:59:52Z'));
  const table = timetable({ cron: '*/2 * * * * *', timezone: 'Europe/Zurich' }, clock);

  expect([table.untilNext(0), table.skipped]).toEqual([2_000, 0]);
});
