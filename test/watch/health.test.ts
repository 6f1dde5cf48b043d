// When the journey is well and when it is not, with a journey of states and times as input.

import { expect, test } from 'vitest';
import { Health, isReady, type Patience } from '../../src/watch/health.ts';
import type { StatusMoment } from '../../src/watch/live.ts';
import type { ShardShare } from '../../src/watch/status-facts.ts';
import { aFailure, aMoment, aSink, aSpool, aStream } from './a-moment.ts';

const patience: Patience = {
  intervals: 5,
  streamMs: 60_000,
  calendarStreamMs: 300_000,
  failingSinkMs: 10_000,
  silentSinkMs: 300_000,
};

/** What is said after each of these moments. */
function after(...moments: readonly (readonly [ms: number, moment: Partial<StatusMoment>])[]) {
  const health = new Health(patience);
  return moments.map(([ms, moment]) => {
    health.observe(aMoment({ streams: [], ...moment }), ms);
    return health.ailments.map(({ part, name, reason }) => `${part} ${name} ${reason}`);
  });
}

const every = (ms: number | null) => new Map([['audit', ms]]);

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

test('Health has no patience with a shard whose worker does not run', () => {
  const cluster = (failing: ShardShare['failing']) => ({
    cluster: {
      share: { owned: [3], running: failing.length === 0 ? [3] : [], failing },
      ...{ takeovers: 0, answeredAt: null, commitMs: null },
    },
  });
  const error = { code: 'disk_full', message: 'no space', next: 'Free some.' };

  expect(
    after(
      [0, cluster([{ shard: 3, sink: null, ends: 0, error: null }])],
      [1, cluster([{ shard: 3, sink: null, ends: 2, error }])],
      [2, cluster([])],
    ),
  ).toEqual([['shard 3 not_running'], ['shard 3 not_running'], []]);
});

test('Health names a sink that refuses everything at once, and one that has ended', () => {
  const found = after(
    [0, { sinks: [aSink({ state: 'refused', error: aFailure() })] }],
    [1, { sinks: [aSink({ state: 'stopped' })] }],
  );

  expect(found).toEqual([['sink siem refused'], ['sink siem stopped']]);
});

test.each([
  ['one refused event turns nothing red', 1, []],
  [
    'two refused events do, after the patience for a sink that fails',
    2,
    ['sink siem not_delivering'],
  ],
])('Health: %s', (_what, refused, expected) => {
  const suspects = { events: 40, refused, stuck: true, first: [] };
  const sink = aSink({ state: 'retrying', backlog: 40, error: aFailure(), suspects });

  const found = after([0, {}], [1_000, { sinks: [sink] }], [60_000, { sinks: [sink] }]);

  expect(found.at(-1)).toEqual(expected);
});

test('Health names a sink that says nothing and passes nothing', () => {
  const silent = { sinks: [aSink({ state: 'sending', backlog: 5 })] };

  expect(after([0, silent], [300_000, silent], [300_001, silent])).toEqual([
    [],
    [],
    ['sink siem not_delivering'],
  ]);
});

test('Health leaves a sink alone while it finishes its sent events later, and no longer', () => {
  const waiting = (ms: number) => ({
    sinks: [aSink({ state: 'sending', backlog: 5, due_in_ms: ms })],
  });

  const found = after([0, waiting(900_000)], [899_999, waiting(1)], [1_200_001, waiting(-300_000)]);

  expect(found).toEqual([[], [], ['sink siem not_delivering']]);
});

test('Health leaves a sink alone that has nothing to do', () => {
  expect(after([0, { sinks: [aSink()] }], [9_000_000, { sinks: [aSink()] }])).toEqual([[], []]);
});

test('Health waits for a stream as long as its interval explains', () => {
  const often = { streams: [aStream()], intervals: every(1_000) };
  const seldom = { streams: [aStream()], intervals: every(60_000) };

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
    streams: [aStream({ state: 'polling', caught_up_at: null, records })],
  });

  expect(after([0, reading(1)], [50_000, reading(2)], [100_000, reading(3)]).flat()).toEqual([]);
});

test('Health does not mistake a calendar’s pause for a stall', () => {
  const intervals = every(null);
  const waiting = { streams: [aStream()], intervals };
  const failing = {
    streams: [aStream({ state: 'retrying', error: aFailure() })],
    intervals,
  };

  const found = after(
    [0, waiting],
    [9_000_000, waiting],
    [9_100_000, failing],
    [9_300_001, failing],
  );

  expect(found).toEqual([[], [], [], ['stream audit not_advancing']]);
});

test('Health names a halted stream and a full spool at once, with the error', () => {
  const health = new Health(patience);

  health.observe(
    aMoment({
      streams: [aStream({ state: 'halted', error: aFailure('its checkpoint does not fit') })],
      spool: aSpool({ bytes: 10, max_bytes: 10 }),
    }),
    0,
  );

  expect(health.ailments.map(({ message }) => message)).toEqual([
    expect.stringContaining('the spool is full (10 of 10 bytes)'),
    'audit is halted: its checkpoint does not fit',
  ]);
});

test('Health expects nothing of a stream whose API has ended, and of its successor as of any other', () => {
  const ended = aStream({ ended: true });
  const successor = aStream({ name: 'later' });
  const streams = [ended, successor];
  const intervals = new Map([
    ['audit', 1_000],
    ['later', 1_000],
  ]);

  expect(after([0, { streams, intervals }], [3_600_000, { streams, intervals }])).toEqual([
    [],
    ['stream later not_advancing'],
  ]);
});

const halted = (name: string, code = 'upstream_denied') =>
  aStream({ name, state: 'halted', error: { ...aFailure(), code } });

const both = [aStream({ name: 'a' }), aStream({ name: 'b' })];

test.each<[string, Partial<StatusMoment>, number, boolean]>([
  ['nothing to read', {}, 1, true],
  ['half of the streams', { streams: [aStream({ name: 'a' }), halted('b')] }, 0.5, true],
  ['less than half', { streams: [aStream({ name: 'a' }), halted('b'), halted('c')] }, 0.5, false],
  [
    'a stream that upstream limits counts as advancing',
    { streams: [halted('a', 'upstream_throttled'), halted('b')] },
    0.5,
    true,
  ],
  ['no stream at all, whatever the share', { streams: [halted('a')] }, 0, false],
  [
    'a sink that refuses everything, while all streams advance',
    { streams: both, sinks: [aSink({ state: 'refused' })] },
    0,
    false,
  ],
  [
    'a full spool, while all streams advance',
    { streams: both, spool: aSpool({ bytes: 100, max_bytes: 100 }) },
    0,
    false,
  ],
])('isReady: %s', (_what, moment, share, expected) => {
  const health = new Health(patience);
  const whole = aMoment({ streams: [], ...moment });
  health.observe(whole, 0);

  expect(isReady(health.ailments, { streams: whole.streams, share })).toBe(expected);
});
