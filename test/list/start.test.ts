// The start of a list's reading: the whole history, from now on, or from a time. From now on means that existing
// records of the list are not reported, whatever its order and paging, and that records that were on their way then
// are, once they turn up.

import { describe, expect, test } from 'vitest';
import { AUDIT, WEB } from '../sandbox/client.ts';
import {
  aList,
  checkpointOf,
  hourMs,
  type ListUnderTest,
  ledgerIds,
  minuteMs,
  standingSandbox,
} from './reading.ts';

const idsOf = async (list: ListUnderTest) => (await list.records()).map(({ id }) => id).sort();

const offsetLogs = {
  path: '/api/logs/v1/companies/{company_id}/web',
  pagination: { style: 'offset' },
};
const kinds = [
  { what: 'oldest first', type: 'audit_events', path: AUDIT, order: 'oldest_first', settings: {} },
  { what: 'newest first', type: 'audit_events', path: AUDIT, order: 'newest_first', settings: {} },
  { what: 'both ends', type: 'audit_events', path: AUDIT, order: 'mixed', settings: {} },
  {
    what: 'not paged',
    type: 'audit_events',
    path: AUDIT,
    order: 'oldest_first',
    settings: { pagination: { style: 'none' } },
  },
  { what: 'offset', type: 'logs', path: WEB, order: 'oldest_first', settings: offsetLogs },
] as const;

describe('start: now', () => {
  test.for(kinds)(
    'A10: reports records from before that turn up after the start, and no existing ones: $what',
    async ({ type, path, order, settings }) => {
      const world = await standingSandbox();
      const { sandbox, clock } = world;
      // Every third record turns up two minutes after it happened.
      const lists = [{ path, order, late: { every: 3, seconds: 120 } }];
      sandbox.control.setFaults({ lists });
      await clock.advance(hourMs);
      sandbox.control.grow(path, 12);
      await clock.advance(1_000);
      const list = await aList(world, { type, settings: { ...settings, start: 'now' } });
      const elsewhere = await aList(world, { type, settings });
      await elsewhere.readToTail();
      const statusView = await idsOf(elsewhere);

      await list.readToTail();
      const first = await idsOf(list);
      list.restart();
      await clock.advance(3 * minuteMs);
      await list.readToTail();
      sandbox.control.grow(path, 3);
      await clock.advance(70 * minuteMs);
      await list.readToTail();

      const owed = ledgerIds(sandbox, path).filter((id) => !statusView.includes(id));
      expect(first).toEqual([]);
      expect(owed.length).toBeGreaterThan(3);
      expect(await idsOf(list)).toEqual([...owed].sort());
    },
  );

  test('the moment of the start is kept, however long upstream cannot be read', async () => {
    const world = await standingSandbox({ events: 12 });
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ rules: [{ path: AUDIT, fault: 'html' }] });
    const list = await aList(world, { settings: { start: 'now' } });
    const polled = await list.poll();
    await clock.advance(minuteMs);
    sandbox.control.grow(AUDIT, 3);
    await clock.advance(hourMs);

    sandbox.control.setFaults({});
    list.restart();
    await list.readToTail();

    expect(polled.outcome).toBe('retry');
    expect(await idsOf(list)).toEqual(ledgerIds(sandbox).slice(-3));
  });
});

test('A10: start at a time reports records from then on, and no earlier ones that turn up late', async () => {
  const world = await standingSandbox({ events: 12 });
  const { sandbox, clock } = world;
  sandbox.control.setFaults({ lists: [{ path: AUDIT, late: { every: 2, seconds: 120 } }] });
  await clock.advance(hourMs);
  sandbox.control.grow(AUDIT, 8);
  await clock.advance(1_000);
  const start = new Date(clock.now()).toISOString();
  const list = await aList(world, { settings: { start } });
  await list.readToTail();

  await clock.advance(minuteMs);
  sandbox.control.grow(AUDIT, 4);
  await clock.advance(hourMs);
  await list.readToTail();

  expect(await idsOf(list)).toEqual(ledgerIds(sandbox).slice(-4));
});

describe('on_cursor_invalid: from_now', () => {
  test('resumes from now, reports the records it skips, and reads late ones', async () => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    const late = { every: 3, seconds: 120 };
    sandbox.control.setFaults({ lists: [{ path: AUDIT, cursor_lifetime_s: 60, late }] });
    const settings = { on_cursor_invalid: 'from_now', order: 'oldest_first' };
    const list = await aList(world, { settings });
    await list.readToTail();
    const before = await idsOf(list);
    const { watermark } = (await checkpointOf(list)).memory;
    await clock.advance(hourMs);
    sandbox.control.grow(AUDIT, 12);
    await clock.advance(minuteMs);

    const resetAt = clock.now();
    await list.readToTail();
    const left = await idsOf(list);
    sandbox.control.setFaults({ lists: [{ path: AUDIT, late }] });
    await clock.advance(20 * minuteMs);
    await list.readToTail();

    expect(left).toEqual(before);
    const lateOnes = (await idsOf(list)).filter((id) => !before.includes(id));
    expect(lateOnes.length).toBeGreaterThan(2);
    expect(lateOnes.length).toBeLessThan(12);
    const [reset, gap, ...others] = await list.reported();
    expect(others).toEqual([]);
    expect(reset).toMatchObject({
      condition: 'source.checkpoint_reset',
      message: expect.stringContaining('resumes from now'),
    });
    expect(gap).toMatchObject({
      condition: 'source.gap_suspected',
      details: {
        from: new Date(Number(watermark)).toISOString(),
        to: new Date(resetAt).toISOString(),
      },
    });
  });
});

describe('a clock that is ahead at the start', () => {
  test.for(kinds)('start: now reads on once the clock is right: $what', async (kind) => {
    const { type, path, order, settings } = kind;
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ lists: [{ path, order }] });
    await clock.advance(hourMs);
    const aheadMs = { now: 10 * 365 * 24 * hourMs };
    const own = Object.assign(Object.create(clock), {
      now: () => clock.now() + aheadMs.now,
    }) as typeof clock;
    const list = await aList(
      { sandbox, clock: own },
      { type, settings: { ...settings, start: 'now' } },
    );
    await list.readToTail();
    aheadMs.now = 0;
    await clock.advance(minuteMs);
    sandbox.control.grow(path, 5);
    await clock.advance(minuteMs);

    await list.readToTail();
    await clock.advance(70 * minuteMs);
    await list.readToTail();

    const grown = ledgerIds(sandbox, path).slice(-5);
    expect(await idsOf(list)).toEqual(expect.arrayContaining([...grown]));
    expect(await idsOf(list)).toHaveLength(5);
    expect(await list.conditions()).toEqual(['source.gap_suspected']);
  });

  test('a start that the config sets in the future stays', async () => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    const start = new Date(clock.now() + hourMs).toISOString();
    const list = await aList(world, { settings: { start } });
    await list.readToTail();
    sandbox.control.grow(AUDIT, 5);
    await clock.advance(2 * hourMs);
    sandbox.control.grow(AUDIT, 3);
    await clock.advance(minuteMs);
    await list.readToTail();

    expect(await idsOf(list)).toEqual(ledgerIds(sandbox).slice(-3));
    expect(await list.conditions()).toEqual([]);
  });
});
