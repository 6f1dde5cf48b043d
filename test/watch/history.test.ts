// Rates and the hour's ring, fed with a journey whose numbers are known.

import { expect, test } from 'vitest';
import { History, stepMs, stepsMax } from '../../src/watch/history.ts';
import { aMoment, aSink, aSpool, aStream } from './a-moment.ts';

/** A journey that reads 10 records a second, passes 4, and so falls behind. */
function at(second: number) {
  return aMoment({
    streams: [aStream({ records: 10 * second, polls: Math.floor(second / 5) })],
    sinks: [aSink({ position: 4 * second, backlog: 6 * second })],
    spool: aSpool({ bytes: 100 * second, max_bytes: 1e9 }),
  });
}

test('History returns rates over the last half a minute', () => {
  const history = new History();

  for (let second = 0; second <= 120; second += 1) {
    history.observe(at(second), 1_000 * second, 1_000 * second);
  }

  expect(history.readRate('audit')).toBe(10);
  expect(history.sinkRate('siem')).toBe(4);
  expect(history.backlogRate('siem')).toBe(6);
  expect(history.spoolRate).toBe(100);
  expect(history.polledAt('audit')).toBe(120_000);
});

test('History forgets a burst after half a minute', () => {
  const history = new History();
  const still = aMoment({ streams: [aStream({ records: 1_000 })] });

  history.observe(aMoment({ streams: [aStream({ records: 0 })] }), 0, 0);
  for (let second = 2; second <= 60; second += 2) history.observe(still, 0, 1_000 * second);

  expect(history.readRate('audit')).toBe(0);
});

test('History keeps a step each five seconds and no more than an hour of them', () => {
  const history = new History();

  for (let second = 0; second <= 5_000; second += 1) {
    history.observe(at(second), 1_000 * second, 1_000 * second);
  }

  const samples = history.samples;
  expect(samples).toHaveLength(stepsMax);
  expect(samples.at(-1)).toEqual({
    at: 5_000_000,
    read: 10,
    spool_bytes: 500_000,
    sinks: { siem: { rate: 4, backlog: 30_000 } },
  });
  expect((samples[1]?.at ?? 0) - (samples[0]?.at ?? 0)).toBe(stepMs);
});

test('History holds no charts for more sinks than it can draw', () => {
  const history = new History();
  const sinks = Array.from({ length: 100 }, (_, index) => aSink({ name: `s${index}` }));

  history.observe(aMoment({ sinks }), 0, 0);
  history.observe(aMoment({ sinks }), 5_000, 5_000);

  expect(Object.keys(history.samples[0]?.sinks ?? {})).toHaveLength(32);
});

test('History treats a stream that counts from 0 again as restarted', () => {
  const history = new History();
  const others = aStream({ name: 'other', records: 5_000 });
  const rates: number[] = [];

  for (let second = 0; second <= 60; second += 1) {
    // A reload restarts one stream from nothing after half a minute, and removes another.
    const records = 10 * (second < 30 ? 100 + second : second - 30);
    const streams = second < 30 ? [aStream({ records }), others] : [aStream({ records })];
    history.observe(aMoment({ streams }), 1_000 * second, 1_000 * second);
    rates.push(history.readRate('audit'), history.readRateInAll);
  }

  expect(Math.min(...rates)).toBe(0);
  expect(history.readRate('audit')).toBe(10);
  expect(history.readRateInAll).toBe(10);
});
