// The report on plain facts: lag, waits, and which of thousands of streams are shown.

import { describe, expect, test } from 'vitest';
import { History } from '../../src/watch/history.ts';
import type { StatusMoment } from '../../src/watch/live.ts';
import { type Observed, reportedTo, type StreamFilter, statusOf } from '../../src/watch/report.ts';
import type { LiveStream } from '../../src/watch/status-facts.ts';
import { aFailure, aMoment, anAilment, aSink, aSpool, aStream, at } from './a-moment.ts';

const now = Date.UTC(2026, 0, 2);

function aReport(moment: StatusMoment, parts: Partial<Observed & StreamFilter> = {}) {
  const history = new History();
  history.observe(moment, now, 0);
  const observed = {
    moment,
    history,
    ailments: [],
    now,
    startedAt: now,
    readyShare: 0.5,
    forms: null,
    ...parts,
  };
  return reportedTo(statusOf(observed), { find: '', streamsMax: 100, ...parts });
}

function streamOf(parts: Partial<LiveStream>, moment: Partial<StatusMoment> = {}) {
  const [reported] = aReport(aMoment({ ...moment, streams: [aStream(parts)] })).streams;
  return reported;
}

test.each<[string, Partial<LiveStream>, number | null]>([
  ['the time since the tail was reached', { caught_up_at: at(now - 70_000) }, 70_000],
  ['never below 0', { caught_up_at: at(now + 70_000) }, 0],
  ['not known in the first reading', { caught_up_at: null, order: 'newest_first' }, null],
  [
    'the age of what was read, where the oldest come first',
    { caught_up_at: null, order: 'oldest_first', newest_record_at: at(now - 3_600_000) },
    3_600_000,
  ],
])('lag_ms is %s', (_, parts, lag) => {
  expect(streamOf(parts)?.lag_ms).toBe(lag);
});

describe('waits_for', () => {
  const budget = { path: '/audit', wait_ms: 61_500, limit: 60, remaining: 0 };
  const full = aSpool({ bytes: 10, max_bytes: 10 });

  test.each<[Partial<LiveStream>, Partial<StatusMoment>, string | null]>([
    [{ state: 'waiting' }, {}, 'its schedule'],
    [{ state: 'retrying' }, {}, 'its next attempt'],
    [{ state: 'halted' }, {}, 'an operator'],
    [{ state: 'waiting', next_poll_at: at(now + 1) }, {}, 'its schedule'],
    [{ state: 'waiting', next_poll_at: at(now - 1) }, {}, 'its turn among the streams'],
    [{ state: 'retrying', next_poll_at: at(now - 1) }, {}, 'its turn among the streams'],
    [{ state: 'polling' }, {}, null],
    [{ state: 'polling', budget }, {}, 'its turn at edge (up to 62 s)'],
    [{ state: 'polling', budget }, { spool: full }, 'room in the spool'],
  ])('%j', (parts, watched, waits) => {
    expect(streamOf(parts, watched)?.waits_for).toBe(waits);
  });

  test('the budget is shown beside it', () => {
    expect(streamOf({ budget })?.budget).toEqual({
      ...{ path: '/audit', wait_ms: 61_500, limit: 60, remaining: 0 },
    });
  });
});

test('next_poll_at is shown while there is one', () => {
  expect(streamOf({ next_poll_at: at(now) })?.next_poll_at).toBe('2026-01-02T00:00:00.000Z');
  expect(streamOf({ next_poll_at: null })?.next_poll_at).toBeNull();
});

test('of too many streams the worst are shown, worst first; the sums are of all', () => {
  const streams = [
    ...Array.from({ length: 200 }, (_, index) =>
      aStream({ name: `fine-${index}`, caught_up_at: at(now - index) }),
    ),
    aStream({ name: 'new', caught_up_at: null }),
    aStream({ name: 'failing', error: aFailure() }),
    aStream({ name: 'stuck', error: aFailure() }),
  ];
  const ailments = [anAilment('stuck', 'not_advancing')];

  const report = aReport(aMoment({ streams }), { ailments, streamsMax: 5 });

  const names = report.streams.map(({ name }) => name);
  expect(names).toEqual(['stuck', 'failing', 'new', 'fine-199', 'fine-198']);
  expect([report.streams_total, report.streams_found]).toEqual([203, 203]);
  expect(report.sources).toEqual([
    {
      ...{ name: 'audit', upstream: 'edge', records_per_s: 0 },
      ...{ streams: 203, streams_failing: 2, streams_unwell: 1 },
    },
  ]);
  expect(report.upstreams[0]).toMatchObject({ streams: 203, streams_failing: 2 });
});

test('of thousands of reasons the first are shown, and the total', () => {
  const ailments = Array.from({ length: 3_000 }, (_, index) => anAilment(`s-${index}`, 'halted'));

  const report = aReport(aMoment(), { ailments });

  expect([report.ready, report.reasons_total, report.attention_total]).toEqual([false, 3_000, 1]);
  expect(report.reasons).toHaveLength(50);
  expect(report.reasons[49]).toEqual({
    ...{ part: 'stream', name: 's-49', reason: 'halted', message: 's-49 is unwell' },
  });
});

test('the data for a reader each second are bounded, also if ten thousand streams fail', () => {
  const error = aFailure('upstream answered 403 '.repeat(20));
  const streams = Array.from({ length: 10_000 }, (_, index) =>
    aStream({ name: `web_logs/c-${index}`, state: 'halted', error }),
  );
  const ailments = streams.map(({ name }) => anAilment(name, 'halted', error));

  const text = JSON.stringify(aReport(aMoment({ streams }), { ailments }));

  expect(text.length).toBeLessThan(150_000);
});

test('streams that fit keep the order of the config, whatever their state', () => {
  const streams = [aStream({ name: 'a' }), aStream({ name: 'b', error: aFailure() })];

  expect(aReport(aMoment({ streams })).streams.map(({ name }) => name)).toEqual(['a', 'b']);
});

test('dead letters are shown with their reasons', () => {
  const dead_letter_reasons = [{ reason: 'too long', count: 3, last_at: at(now) }];

  const [sink] = aReport(
    aMoment({ sinks: [aSink({ dead_letters: 9, dead_letter_reasons })] }),
  ).sinks;

  expect(sink).toMatchObject({
    dead_letters: 9,
    dead_letter_reasons: [{ reason: 'too long', count: 3, last_at: '2026-01-02T00:00:00.000Z' }],
  });
});
