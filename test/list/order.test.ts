// What may teach the order of a list, and what may not: a record that came late stands among known ones and must not be
// taken for growth at that end, or the end that really grows would hardly be looked at any more. And an end that was
// idle when the order was learned is looked at again within `reconcile_every`.

import { expect, test } from 'vitest';
import { AUDIT } from '../sandbox/client.ts';
import {
  aList,
  aSpool,
  checkpointOf,
  differences,
  hourMs,
  ledgerIds,
  minuteMs,
  none,
  standingSandbox,
} from './reading.ts';

test('A02: a record that turns up late on the first page does not teach newest_first', async () => {
  const world = await standingSandbox({ events: 12 });
  const { sandbox, clock } = world;
  sandbox.control.setFaults({ lists: [{ path: AUDIT, late: { every: 7, seconds: 2_000_000 } }] });
  const list = await aList(world, { settings: { rewind_every: '24h', reconcile_every: '24h' } });
  await list.readToTail();
  await clock.advance(minuteMs);

  sandbox.control.setFaults({ lists: [{ path: AUDIT }] });
  await list.readToTail();
  sandbox.control.grow(AUDIT, 5);
  await list.readToTail();

  const held = (await list.records()).map(({ id }) => id);
  expect(differences(held, ledgerIds(sandbox))).toEqual(none);
});

test('A02: the end that was idle when the order was learned is looked at within reconcile_every', async () => {
  const world = await standingSandbox();
  const { sandbox, clock } = world;
  sandbox.control.setFaults({ lists: [{ path: AUDIT, order: 'mixed' }] });
  const list = await aList(world, { settings: { reconcile_every: '5m' } });
  await list.readToTail();
  for (let n = 0; n < 6; n += 1) {
    sandbox.control.grow(AUDIT, 1);
    await list.readToTail();
  }

  await clock.advance(5 * minuteMs);
  await list.readToTail();

  const held = (await list.records()).map(({ id }) => id);
  expect(differences(held, ledgerIds(sandbox))).toEqual(none);
});

test('a time stored by a clock that was hours ahead delays nothing', async () => {
  const world = await standingSandbox();
  const { sandbox, clock } = world;
  const wishes = { settings: { rewind_every: '5m', reconcile_every: '5m' }, spool: await aSpool() };
  const ahead = { ...clock, now: () => clock.now() + 2 * hourMs };
  await (await aList({ sandbox, clock: ahead }, wishes)).readToTail();
  const list = await aList(world, wishes);
  const before = Object.values((await checkpointOf(list)).looked);

  await list.readToTail();
  await clock.advance(5 * minuteMs);
  await list.readToTail();

  const { sweptAt } = (await checkpointOf(list)).looked;
  expect(Math.min(...before)).toBe(ahead.now() - 5 * minuteMs);
  expect(sweptAt).toBeLessThanOrEqual(clock.now());
});

test('records that came late while a clock was hours ahead are read by the next process with the right one', async () => {
  const world = await standingSandbox();
  const { sandbox, clock } = world;
  const wishes = {
    settings: { lookback: '1m', rewind_every: '5m', reconcile_every: '24h' },
    spool: await aSpool(),
  };
  const ahead = { ...clock, now: () => clock.now() + 2 * hourMs };
  sandbox.control.setFaults({ lists: [{ path: AUDIT, late: { every: 7, seconds: 2_000_000 } }] });
  await (await aList(world, wishes)).readToTail();
  const first = await aList({ sandbox, clock: ahead }, wishes);
  for (let n = 0; n < 6; n += 1) {
    await first.readToTail();
    await clock.advance(5 * minuteMs);
    sandbox.control.grow(AUDIT, 2);
  }
  await first.readToTail();
  sandbox.control.setFaults({ lists: [{ path: AUDIT }] });
  const list = await aList(world, wishes);

  await list.readToTail();

  const held = (await list.records()).map(({ id }) => id);
  expect(differences(held, ledgerIds(sandbox))).toEqual(none);
});
