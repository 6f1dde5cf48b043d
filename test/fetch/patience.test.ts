// A 403 with a wait is a rate limit of some servers. The wait is the requested one at first, grows to the usual wait of
// a denial while it lasts, and the scope counts as lost only then.

import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import { StreamHealth } from '../../src/fetch/stream-health.ts';
import { timetable } from '../../src/poll/schedule.ts';
import { aList, differences, ledgerIds, minuteMs, none, standingSandbox } from '../list/reading.ts';
import { LOGS } from '../sandbox/client.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';

const cause = new ExportError('upstream_refused', 'upstream answered 403', { next: 'Wait.' });

test.for(['denied', 'retry'] as const)(
  'waits grow from the requested one to 15 minutes, and the stream is halted only then: %s',
  async (outcome) => {
    const clock = manualClock();
    const table = timetable({ everyMs: 1_000 }, clock);
    const health = new StreamHealth({ timetable: table, clock, log: silent, random: () => 1 });
    const waits: number[] = [];
    const halted: number[] = [];
    for (let passed = 0; passed < 90 * minuteMs; ) {
      const { ms } = health.observe({ outcome, status: 403, wait: { ms: 3_000 }, cause }, 0);
      waits.push(ms);
      if (health.state.state === 'halted') halted.push(passed);
      await clock.advance(ms);
      passed += ms;
    }

    expect(waits.slice(0, 2)).toEqual([3_000, 3_000]);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(waits.at(-1)).toBe(15 * minuteMs);
    expect(halted[0]).toBeGreaterThanOrEqual(15 * minuteMs);
  },
);

test('a longer requested wait is never shortened', () => {
  const clock = manualClock();
  const table = timetable({ everyMs: 1_000 }, clock);
  const health = new StreamHealth({ timetable: table, clock, log: silent, random: () => 0 });
  const month = 30 * 86_400_000;

  const wait = health.observe({ outcome: 'denied', status: 403, wait: { ms: month }, cause }, 0);

  expect(wait.ms).toBe(month);
});

test('a list: no scope is lost before the usual wait, and it is after that', async () => {
  const world = await standingSandbox();
  const { sandbox, clock } = world;
  const settings = { path: '/api/logs/v1/companies/{company_id}/events' };
  const list = await aList(world, { type: 'logs', settings });
  await list.readToTail();
  const limit = { kind: 'status' as const, status: 403, retry_after: 1 };
  sandbox.control.setFaults({ rules: [{ path: LOGS, fault: limit }] });
  sandbox.control.grow(LOGS, 3);
  await clock.advance(minuteMs);

  const first = await list.poll();
  // The client waits in real time.
  for (let minutes = 0; minutes < 14; minutes += 2) {
    await clock.advance(2 * minuteMs);
    await list.poll();
  }
  const before = await list.conditions();
  await clock.advance(2 * minuteMs);
  await list.poll();
  const after = await list.conditions();
  sandbox.control.setFaults({});
  await clock.advance(minuteMs);
  await list.readToTail();

  expect(first).toMatchObject({ outcome: 'denied', status: 403, wait: { ms: 1_000 } });
  expect(first.outcome !== 'done' && first.cause.message).toContain('requires a wait of 1 s');
  expect([before, after]).toEqual([[], ['source.scope_lost']]);
  const ids = (await list.records()).map(({ id }) => id);
  expect(differences(ids, ledgerIds(sandbox, LOGS))).toEqual(none);
});
