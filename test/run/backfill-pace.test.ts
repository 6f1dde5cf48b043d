// How a backfill stays below the live streams and the sinks, with the test's own clock.

import { beforeEach, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import type { Stream } from '../../src/contracts/source.ts';
import { type Live, type PaceDeps, paceFor } from '../../src/run/backfill-pace.ts';
import { planFrom } from '../../src/run/plan.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { aConfigFile } from './a-backfill.ts';
import { planMeans } from './plan-deps.ts';

const never = new AbortController().signal;
const minuteMs = 60_000;
const mebibyte = 2 ** 20;

let clock: ManualClock;
let deps: PaceDeps;
let stream: Stream;
let live: Live;
let gauge: { bytes: number; oldest: number; end: number };

const idle = { source: 'audit', state: 'waiting' };
const siem = { name: 'siem', error: null };
const upToDate = { ...siem, position: 0, sent: 0, state: 'waiting' };

beforeEach(() => {
  const config = readConfig(aConfigFile(), { env: {} });
  const plan = planFrom(config, planMeans());
  clock = manualClock();
  live = { streams: [idle], sinks: [upToDate] };
  gauge = { bytes: 0, oldest: 0, end: 0 };
  const spool = {
    get gauge() {
      return gauge;
    },
  } as PaceDeps['spool'];
  deps = { config, plan, clock, spool, random: () => 0.5, live: () => live };
  stream = plan.sources[0]?.streams[0] as Stream;
});

/** Whether a request has gone, after a while on the clock. */
async function goesWithin(pace: (signal: AbortSignal) => Promise<void>, ms: number) {
  let went = false;
  const going = pace(never).then(() => {
    went = true;
  });
  await clock.settle();
  for (let passed = 0; !went && passed < ms; passed += 100) await clock.advance(100);
  return { went, going };
}

describe('a backfill', () => {
  test('starts at once without other needs', async () => {
    expect((await goesWithin(paceFor(stream, deps), 0)).went).toBe(true);
  });

  test('A10: takes at most half of a ceiling in any span, and the whole ceiling alone', async () => {
    const pace = paceFor(stream, deps);
    const gone: number[] = [];
    const over = new AbortController();
    const asking = (async () => {
      for (;;) {
        await pace(over.signal);
        gone.push(clock.monotonic());
      }
    })().catch(() => undefined);
    for (let i = 0; i < 300; i += 1) await clock.advance(1_000);
    over.abort();
    await asking;

    const most = Math.max(
      ...gone.map((at) => gone.filter((other) => other >= at && other < at + minuteMs).length),
    );
    expect(most).toBe(5);
    live = { ...live, streams: [] };
    const alone = paceFor(stream, deps);
    for (let i = 0; i < 10; i += 1) expect((await goesWithin(alone, 0)).went).toBe(true);
  });

  test('lets a live poll of the same upstream pass, and gets on all the same', async () => {
    live = { ...live, streams: [{ source: 'audit', state: 'polling' }] };
    const pace = paceFor(stream, deps);

    expect((await goesWithin(pace, 2_000)).went).toBe(false);

    const another = { source: 'firewall', state: 'polling' };
    expect((await goesWithin(paceFor(stream, deps), 10_000)).went).toBe(true);
    live = { ...live, streams: [another] };
    expect((await goesWithin(paceFor(stream, deps), 0)).went).toBe(true);
  });

  test('waits for as long as sinks leave the spool half full', async () => {
    gauge = { bytes: 600 * mebibyte, oldest: 0, end: 100 };
    live = { ...live, sinks: [{ ...siem, position: 0, sent: 0, state: 'retrying' }] };
    const { went, going } = await goesWithin(paceFor(stream, deps), minuteMs);
    expect(went).toBe(false);

    live = { ...live, sinks: [{ ...siem, position: 100, sent: 100, state: 'waiting' }] };
    await clock.advance(1_000);
    await going;
  });

  test('waits for a sink that takes events and is behind, not for one that is down', async () => {
    gauge = { bytes: mebibyte, oldest: 0, end: 100_000 };
    live = { ...live, sinks: [{ ...siem, position: 0, sent: 0, state: 'sending' }] };
    expect((await goesWithin(paceFor(stream, deps), minuteMs)).went).toBe(false);

    live = { ...live, sinks: [{ ...siem, position: 0, sent: 0, state: 'retrying' }] };
    expect((await goesWithin(paceFor(stream, deps), 0)).went).toBe(true);
  });

  test('does not wait for a sink that finishes its sent events later', async () => {
    gauge = { bytes: mebibyte, oldest: 0, end: 100_000 };
    live = { ...live, sinks: [{ ...siem, position: 0, sent: 99_000, state: 'sending' }] };

    expect((await goesWithin(paceFor(stream, deps), 0)).went).toBe(true);
  });
});
