import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../src/tools/clock.ts';
import { manualClock } from '../support/manual-clock.ts';

test('systemClock: a sleep lasts at least as long as requested', async () => {
  const clock = systemClock();
  const start = clock.monotonic();

  await clock.sleep(25);

  expect(clock.monotonic() - start).toBeGreaterThanOrEqual(25);
});

test('systemClock: an aborted sleep rejects with the reason and leaves no listener', async () => {
  const stop = new AbortController();
  const clock = systemClock();

  const sleep = clock.sleep(2 ** 40, stop.signal);
  stop.abort(new Error('enough'));

  await expect(sleep).rejects.toThrow('enough');
  await expect(clock.sleep(1, stop.signal)).rejects.toThrow('enough');
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
});

test('systemClock: a finished sleep leaves no listener', async () => {
  const stop = new AbortController();

  await systemClock().sleep(1, stop.signal);

  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
});

test('systemClock: thirty days are slept in slices of an hour, never overflowing a timer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const spans: number[] = [];
    const setTimer = globalThis.setTimeout;
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((wake: () => void, ms: number) => {
      spans.push(ms);
      return setTimer(wake, ms);
    }) as typeof setTimeout); // only the two arguments that the clock passes
    let awake = false;
    const sleep = systemClock()
      .sleep(30 * 86_400_000)
      .then(() => {
        awake = true;
      });

    await vi.advanceTimersByTimeAsync(30 * 86_400_000 - 1);
    const early = awake;
    await vi.advanceTimersByTimeAsync(1);
    await sleep;

    expect(early).toBe(false);
    expect(Math.max(...spans)).toBe(3_600_000);
    expect(spans).toHaveLength(30 * 24);
  } finally {
    vi.restoreAllMocks();
    vi.useRealTimers();
  }
});

test('systemClock: a wait that is no number is refused, not slept through', async () => {
  await expect(systemClock().sleep(Number.NaN)).rejects.toMatchObject({ code: 'broken_invariant' });
});

test('manualClock: wakes sleepers in the order they are due', async () => {
  const clock = manualClock(0);
  const woken: string[] = [];
  void clock.sleep(20).then(() => woken.push(`b at ${clock.monotonic()}`));
  void clock.sleep(10).then(async () => {
    woken.push(`a at ${clock.monotonic()}`);
    await clock.sleep(5);
    woken.push(`c at ${clock.monotonic()}`);
  });

  await clock.advance(20);

  expect(woken).toEqual(['a at 10', 'c at 15', 'b at 20']);
  expect(clock.now()).toBe(20);
  expect(clock.sleepers).toBe(0);
  expect(await clock.advanceToNext()).toBeNull();
});
