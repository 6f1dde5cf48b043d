// When the journey is well and when it is not, told to the health as a journey of states with their times.

import { expect, test } from 'vitest';
import { openHealth, type Patience } from '../../src/watch/health.ts';
import type { Watched } from '../../src/watch/watched.ts';
import { aFailure, aSink, aStream, aWatched } from './a-watched.ts';

const patience: Patience = {
  intervals: 5,
  streamMs: 60_000,
  calendarStreamMs: 300_000,
  failingSinkMs: 10_000,
  silentSinkMs: 300_000,
};

/** What is said after each of these moments. */
function after(...moments: readonly (readonly [ms: number, watched: Partial<Watched>])[]) {
  const health = openHealth(patience);
  return moments.map(([ms, watched]) => {
    health.observe(aWatched({ streams: [], ...watched }), ms);
    return health.ailments().map(({ part, name, reason }) => `${part} ${name} ${reason}`);
  });
}

const failingSink = { sinks: [aSink({ state: 'retrying', backlog: 5, error: aFailure() })] };

test('Health is patient with a sink that fails, then names it, and forgets it when it delivers', () => {
  const found = after(
    [0, {}],
    [1_000, failingSink],
    [10_000, failingSink],
    [10_001, failingSink],
    [20_000, { sinks: [aSink({ state: 'sending', backlog: 4, position: 101, delivered: 101 })] }],
  );

  expect(found).toEqual([[], [], [], ['sink siem not_delivering'], []]);
});

test('Health names a sink that refuses everything at once, and one that has ended', () => {
  const found = after(
    [0, { sinks: [aSink({ state: 'refused', error: aFailure() })] }],
    [1, { sinks: [aSink({ state: 'stopped' })] }],
  );

  expect(found).toEqual([['sink siem refused'], ['sink siem stopped']]);
});

test('Health names a sink that says nothing and passes nothing', () => {
  const silent = { sinks: [aSink({ state: 'sending', backlog: 5 })] };

  expect(after([0, silent], [300_000, silent], [300_001, silent])).toEqual([
    [],
    [],
    ['sink siem not_delivering'],
  ]);
});

test('Health leaves a sink alone that has nothing to do', () => {
  expect(after([0, { sinks: [aSink()] }], [9_000_000, { sinks: [aSink()] }])).toEqual([[], []]);
});

test('Health waits for a stream as long as its interval explains', () => {
  const often = { streams: [aStream({ everyMs: 1_000 })] };
  const seldom = { streams: [aStream({ everyMs: 60_000 })] };

  expect(after([0, often], [60_000, often], [60_001, often])[2]).toEqual([
    'stream audit not_advancing',
  ]);
  expect(after([0, seldom], [300_000, seldom], [300_001, seldom])).toEqual([
    [],
    [],
    ['stream audit not_advancing'],
  ]);
});

test('Health takes new records for progress, also long before the tail is reached', () => {
  const reading = (records: number) => ({
    streams: [aStream({ state: 'polling', caughtUpAt: null, records })],
  });

  expect(after([0, reading(1)], [50_000, reading(2)], [100_000, reading(3)]).flat()).toEqual([]);
});

test('Health does not take a calendar’s pause for standing still', () => {
  const waiting = { streams: [aStream({ everyMs: null })] };
  const failing = { streams: [aStream({ everyMs: null, state: 'retrying', error: aFailure() })] };

  const found = after(
    [0, waiting],
    [9_000_000, waiting],
    [9_100_000, failing],
    [9_300_001, failing],
  );

  expect(found).toEqual([[], [], [], ['stream audit not_advancing']]);
});

test('Health names a halted stream and a full spool at once, with what was told', () => {
  const health = openHealth(patience);

  health.observe(
    aWatched({
      streams: [aStream({ state: 'halted', error: aFailure('its checkpoint does not fit') })],
      spool: { bytes: 10, bytesMax: 10, oldest: 0, end: 1, oldestAt: 0 },
    }),
    0,
  );

  expect(health.ailments().map(({ message }) => message)).toEqual([
    expect.stringContaining('the spool is full (10 of 10 bytes)'),
    'audit is halted: its checkpoint does not fit',
  ]);
});
