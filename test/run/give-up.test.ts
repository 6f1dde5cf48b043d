import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { PipelineState } from '../../src/pipeline.ts';
import { patienceMs, timeToGiveUp } from '../../src/run/give-up.ts';
import { manualClock } from '../support/manual-clock.ts';

type Sink = PipelineState['sinks'][number];
type Stream = PipelineState['streams'][number];

const failing = new ExportError('sink_unreachable', 'sending to a: nobody there', {
  next: 'Wait.',
});
const throttled = new ExportError('upstream_throttled', 'reading audit: 429', { next: 'Wait.' });

function aSink(wishes: Partial<Sink>): Sink {
  const sink = { name: 'a', state: 'sending', position: 0, delivered: 0, deadLetters: 0 } as const;
  return {
    ...sink,
    sent: 0,
    retries: 0,
    error: null,
    dueInMs: null,
    notice: null,
    suspects: null,
    setAside: [],
    waitsAside: false,
    ...wishes,
  };
}

function aStream(wishes: Partial<Stream>): Stream {
  const stream = {
    name: 'audit',
    source: 'audit',
    state: 'waiting',
    polls: 1,
    records: 0,
  } as const;
  return { ...stream, skipped: 0, caughtUpAt: null, nextPollAt: null, error: null, ...wishes };
}

/** Watches a state that the test may change; says whether it was given up within so long. */
async function watched(state: () => PipelineState, end: () => number, forMs: number) {
  const clock = manualClock();
  const over = new AbortController();
  let given = false;
  const watching = timeToGiveUp({ clock, state, end }, over.signal).then(
    () => {
      given = true;
    },
    () => undefined,
  );
  await clock.advance(forMs);
  over.abort();
  await watching;
  return given;
}

const caughtUp = aStream({ caughtUpAt: 1 });

test.each([
  { what: 'the only sink behind fails', sinks: [aSink({ error: failing })], streams: [caughtUp] },
  {
    what: 'a sink behind fails and the other has everything',
    sinks: [aSink({ error: failing }), aSink({ name: 'b', position: 9 })],
    streams: [caughtUp],
  },
  {
    what: 'a sink that fails has filled the spool, so that a stream waits',
    sinks: [aSink({ error: failing })],
    streams: [aStream({ state: 'polling' })],
  },
  {
    what: 'every unfinished stream fails',
    sinks: [aSink({ position: 9 })],
    streams: [caughtUp, aStream({ state: 'retrying', error: failing })],
  },
])('timeToGiveUp comes after a minute without progress when $what', async ({ sinks, streams }) => {
  const state = () => ({ sinks, streams, filterFailures: [], transcoded: [], unreadTimes: [] });

  const early = await watched(state, () => 9, patienceMs - 1_000);
  const late = await watched(state, () => 9, patienceMs + 1_000);

  expect([early, late]).toEqual([false, true]);
});

test.each([
  { what: 'a sink behind is at work', sinks: [aSink({})], streams: [caughtUp] },
  {
    what: 'one of two sinks behind is at work',
    sinks: [aSink({ error: failing }), aSink({ name: 'b' })],
    streams: [caughtUp],
  },
  {
    what: 'upstream has told the stream to wait',
    sinks: [aSink({ position: 9 })],
    streams: [aStream({ state: 'retrying', error: throttled })],
  },
])('timeToGiveUp does not come while $what', async ({ sinks, streams }) => {
  const state = () => ({ sinks, streams, filterFailures: [], transcoded: [], unreadTimes: [] });

  const given = await watched(state, () => 9, 10 * patienceMs);

  expect(given).toBe(false);
});

test('timeToGiveUp does not come while a failing sink still gets something delivered', async () => {
  let position = 0;
  const state = () => {
    position += 1;
    const sinks = [aSink({ error: failing, position })];
    return { sinks, streams: [caughtUp], filterFailures: [], transcoded: [], unreadTimes: [] };
  };

  const given = await watched(state, () => 1e9, 5 * patienceMs);

  expect(given).toBe(false);
});
