// A stream with an expected volume, by a clock that stands still: a low volume is reported once, also over a restart, and
// ends when the volume is back.

import { expect, test } from 'vitest';
import type { Spool } from '../../src/contracts/spool.ts';
import { VolumeWatch } from '../../src/fetch/volume.ts';
import { aSpool, heldIn, hourMs, minuteMs } from '../list/reading.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir } from '../support/temp.ts';

const stream = { name: 'web/c-1', source: 'web', company: 'c-1' };

function aWatch(spool: Spool, clock: ManualClock, perMs = hourMs, atLeast = 10) {
  const state = {
    records: 0,
    polls: 1,
    caughtUpAt: null as number | null,
    error: null,
    isEnded: false,
  };
  const expected = { perMs, atLeast };
  const deps = { stream, spool, clock, log: silent, expected };
  const watch = new VolumeWatch(deps, () => state as never);
  /** Time passes in steps of five minutes, with so many records in each. */
  const pass = async (ms: number, each: number) => {
    for (let passed = 0; passed < ms; passed += 5 * minuteMs) {
      clock.jump(5 * minuteMs);
      state.records += each;
      state.caughtUpAt = clock.now();
      await watch.look();
    }
  };
  return { state, watch, pass };
}

async function reported(spool: Spool) {
  const held = await heldIn(spool);
  return held.filter(({ kind }) => kind === 'condition').map(({ text }) => JSON.parse(text));
}

test('a low volume is reported once, also over a restart, and again when it is back', async () => {
  const [clock, dir] = [manualClock(), tempDir('volume-')];
  const first = await aSpool(dir);
  const before = aWatch(first, clock);
  await before.watch.look();
  await before.pass(55 * minuteMs, 0);
  expect(await reported(first)).toEqual([]);
  await before.pass(2 * hourMs, 0);
  expect(await reported(first)).toMatchObject([
    {
      condition: 'source.volume_low',
      message: '0 new records of web/c-1 in 1h, at least 10 are expected',
      details: { per: '1h', at_least: 10, records: 0 },
    },
  ]);
  await first.close();

  const second = await aSpool(dir);
  const after = aWatch(second, clock);
  await after.pass(2 * hourMs, 0);
  expect(await reported(second)).toHaveLength(1);
  await after.pass(hourMs, 1);
  await after.pass(hourMs, 1);

  const conditions = await reported(second);
  expect(conditions.map(({ condition }) => condition)).toEqual([
    'source.volume_low',
    'source.volume_back',
  ]);
  await second.close();
});

test('a volume that is reached is not reported, and a start without a poll judges nothing', async () => {
  const [clock, dir] = [manualClock(), tempDir('volume-')];
  const spool = await aSpool(dir);
  const steady = aWatch(spool, clock);
  await steady.pass(5 * hourMs, 1);
  expect(await reported(spool)).toEqual([]);

  clock.jump(10 * hourMs);
  const begun = aWatch(spool, clock);
  await begun.watch.look();
  clock.jump(hourMs);
  await begun.watch.look();

  expect(await reported(spool)).toEqual([]);
  begun.state.caughtUpAt = clock.now();
  await begun.watch.look();
  expect(await reported(spool)).toMatchObject([{ condition: 'source.volume_low' }]);
  await spool.close();
});

test('a stream whose API has ended is not expected to bring records', async () => {
  const clock = manualClock();
  const spool = await aSpool(tempDir('volume-'));
  const { state, pass } = aWatch(spool, clock);
  state.isEnded = true;

  await pass(5 * hourMs, 0);

  expect(await reported(spool)).toEqual([]);
  await spool.close();
});

test('counts of a clock that was ahead and was set back hide no low volume', async () => {
  const clock = manualClock();
  const spool = await aSpool(tempDir('volume-'));
  const { pass } = aWatch(spool, clock);
  await pass(5 * hourMs, 1);
  clock.jump(-3 * hourMs);

  await pass(70 * minuteMs, 0);

  expect(await reported(spool)).toMatchObject([{ condition: 'source.volume_low' }]);
  await spool.close();
});

test('a watch that a clock of the future began hides no low volume', async () => {
  const clock = manualClock();
  const spool = await aSpool(tempDir('volume-'));
  clock.jump(10 * 365 * 24 * hourMs);
  const { pass } = aWatch(spool, clock);
  await pass(5 * minuteMs, 0);
  clock.jump(-10 * 365 * 24 * hourMs);

  await pass(70 * minuteMs, 0);

  expect(await reported(spool)).toMatchObject([{ condition: 'source.volume_low' }]);
  await spool.close();
});

test('a kill loses no counted record, so it makes no false report', async () => {
  const clock = manualClock();
  const spool = await aSpool(tempDir('volume-'));
  const killed = aWatch(spool, clock);
  await killed.pass(50 * minuteMs, 0);
  await killed.pass(5 * minuteMs, 1);
  clock.jump(minuteMs);
  killed.state.records += 9;
  await killed.watch.look();

  const next = aWatch(spool, clock);
  await next.pass(15 * minuteMs, 0);

  expect(await reported(spool)).toEqual([]);
  await spool.close();
});

test.each([
  ['a longer period', 4 * hourMs, 40, 0],
  ['the setting was absent for longer than a period', hourMs, 10, 30 * hourMs],
])('nothing is judged before a whole period was observed: %s', async (...row) => {
  const [, perMs, atLeast, absentMs] = row;
  const clock = manualClock();
  const spool = await aSpool(tempDir('volume-'));
  await aWatch(spool, clock).pass(5 * hourMs, 1);
  clock.jump(absentMs);

  const changed = aWatch(spool, clock, perMs, atLeast);
  await changed.pass(20 * minuteMs, 0);
  expect(await reported(spool)).toEqual([]);
  await changed.pass(perMs, 0);

  expect(await reported(spool)).toMatchObject([{ condition: 'source.volume_low' }]);
  await spool.close();
});
