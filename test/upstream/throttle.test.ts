import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Throttle } from '../../src/upstream/throttle.ts';

const served = { refused: false } as const;
const refused = { refused: true } as const;

describe('Throttle: ceilings', () => {
  test('in no window are more requests sent than the ceiling allows, whatever the order of calls', () => {
    const ceiling = fc.record({
      requests: fc.integer({ min: 1, max: 8 }),
      perMs: fc.integer({ min: 1, max: 2_000 }),
    });
    const idle = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3_000 }));
    fc.assert(
      fc.property(
        fc.array(ceiling, { minLength: 1, maxLength: 3 }),
        fc.array(idle, { minLength: 1, maxLength: 120 }),
        (ceilings, idles) => {
          const throttle = new Throttle({ ceilings, random: Math.random });
          const sent: number[] = [];
          let now = 0;
          for (const idleMs of idles) {
            now += idleMs;
            now += throttle.delayAt(now);
            expect(throttle.delayAt(now)).toBe(0);
            throttle.take(now);
            sent.push(now);
          }

          for (const { requests, perMs } of ceilings) {
            for (const start of sent) {
              const within = sent.filter((time) => time >= start && time < start + perMs).length;
              expect(within).toBeLessThanOrEqual(requests);
            }
          }
        },
      ),
    );
  });

  test('a whole window’s worth may go at once', () => {
    const throttle = new Throttle({ ceilings: [{ requests: 3, perMs: 1_000 }], random: () => 0 });

    const delays = [0, 0, 0, 0].map((now) => {
      const delay = throttle.delayAt(now);
      if (delay === 0) throttle.take(now);
      return delay;
    });

    expect(delays).toEqual([0, 0, 0, 1_000]);
  });
});

describe('Throttle: answers', () => {
  test('a Retry-After is never shortened and hardly lengthened', () => {
    const days = 30 * 86_400_000;
    fc.assert(
      fc.property(
        fc.integer({ min: 1_000, max: days }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (retryAfterMs, chance) => {
          const throttle = new Throttle({ random: () => chance });

          throttle.observe({ refused: true, retryAfterMs }, 500);

          expect(throttle.delayAt(500)).toBeGreaterThanOrEqual(retryAfterMs);
          expect(throttle.delayAt(500)).toBeLessThanOrEqual(retryAfterMs + 5_000);
        },
      ),
    );
  });

  test('A19: refusals without Retry-After wait longer each time, and from the start after a success', () => {
    const throttle = new Throttle({ random: () => 0.5 });
    let now = 0;
    const waits: number[] = [];
    for (let time = 0; time < 4; time++) {
      throttle.observe(refused, now);
      waits.push(throttle.delayAt(now));
      now += throttle.delayAt(now);
    }

    throttle.observe(served, now);
    throttle.observe(refused, now);

    expect(waits).toEqual([1_500, 2_500, 4_500, 8_500]);
    expect(throttle.delayAt(now)).toBe(1_500);
  });

  test('waits continue to grow if another request is answered each time, and restart if the rejected one is', () => {
    const throttle = new Throttle({ random: () => 0.5 });
    let now = 0;
    const waits: number[] = [];
    const refuse = (request: string) => {
      throttle.observe(refused, now, request);
      waits.push(throttle.delayAt(now));
      now += throttle.delayAt(now);
    };

    for (let time = 0; time < 3; time++) {
      throttle.observe(served, now, 'page 1');
      refuse('page 2');
    }
    throttle.observe(served, now, 'page 2');
    refuse('page 3');
    now += 60_000;
    throttle.observe(served, now, 'page 1');
    refuse('page 4');

    expect(waits).toEqual([1_500, 2_500, 4_500, 1_500, 1_500]);
  });

  test('a reset that is past is no licence to hammer', () => {
    const throttle = new Throttle({ random: () => 0.5 });
    const waits: number[] = [];
    for (let time = 0, now = 0; time < 3; time++) {
      throttle.observe({ refused: true, resetMs: 1_000 }, now);
      waits.push(throttle.delayAt(now));
      now += throttle.delayAt(now);
    }

    expect(waits).toEqual([1_500, 2_500, 4_500]);
  });

  test('Retry-After: 0 is no licence to hammer', () => {
    const throttle = new Throttle({ random: () => 0 });

    throttle.observe({ refused: true, retryAfterMs: 0 }, 0);

    expect(throttle.delayAt(0)).toBe(1_000);
  });

  test('refusals of requests under way together count as one', () => {
    const throttle = new Throttle({ random: () => 0.5 });

    for (let answer = 0; answer < 16; answer++) throttle.observe(refused, answer);

    expect(throttle.delayAt(0)).toBe(1_500);
  });

  test('none remaining on a success waits for the reset, or the given pause where none is said', () => {
    const withReset = new Throttle({ random: () => 0, pauseMs: 7_000 });
    const without = new Throttle({ random: () => 0, pauseMs: 7_000 });

    withReset.observe({ refused: false, limit: 60, remaining: 0, resetMs: 12_000 }, 0);
    without.observe({ refused: false, limit: 60, remaining: 0 }, 0);

    expect(withReset.delayAt(2_000)).toBe(10_000);
    expect(without.delayAt(2_000)).toBe(5_000);
    expect(without.budget()).toEqual({ limit: 60, remaining: 0 });
  });

  test('Retry-After on a 503 is kept too', () => {
    const throttle = new Throttle({ random: () => 0 });

    throttle.observe({ refused: false, retryAfterMs: 20_000 }, 0);

    expect(throttle.delayAt(0)).toBe(20_000);
  });
});
