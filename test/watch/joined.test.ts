// The statuses of several shards as one: counts are added, and the worst state of a sink is shown.

import { expect, test } from 'vitest';
import { joinedMoment } from '../../src/watch/joined.ts';
import { idleMoment, type StatusMoment } from '../../src/watch/live.ts';
import type { LiveSink } from '../../src/watch/status-facts.ts';

const early = '2026-01-01T00:00:00.000Z';
const late = '2026-01-02T00:00:00.000Z';
const refusal = {
  code: 'sink_refused',
  message: 'no',
  next: 'ask',
  upstream_code: null,
  request_id: null,
  trace_id: null,
};

function aSink(facts: Partial<LiveSink> = {}): LiveSink {
  return {
    ...{ name: 'lake', type: 'kafka', state: 'idle', well: true, position: 10, backlog: 1 },
    ...{
      up_to: late,
      drained_in_ms: null,
      events_per_s: 0,
      delivered: 5,
      due_in_ms: null,
      retries: 2,
    },
    ...{
      dead_letters: 1,
      dead_letter_reasons: [],
      error: null,
      notice: null,
      suspects: null,
      set_aside: [],
    },
    ...facts,
  };
}

function aMoment(sink: LiveSink, facts: Partial<StatusMoment> = {}): StatusMoment {
  return {
    ...idleMoment(100, ''),
    standing_by: null,
    sinks: [sink],
    refused: new Map([['lake', 3]]),
    ...facts,
  };
}

test('a sink has the counts of all, and the state, error and time of the worst', () => {
  const refused = aSink({ state: 'refused', error: refusal, up_to: early, due_in_ms: 7 });
  const spool = {
    well: false,
    bytes: 9,
    max_bytes: 100,
    events: 4,
    end: 6,
    oldest_at: early,
    full_in_ms: null,
  };
  const joined = joinedMoment(
    [aMoment(aSink()), aMoment(refused, { spool, logLinesLost: 2 })],
    100,
    '',
  );

  expect(joined.sinks).toEqual([
    aSink({
      ...{ state: 'refused', error: refusal, up_to: early, position: 20, backlog: 2 },
      ...{ delivered: 10, retries: 4, dead_letters: 2, due_in_ms: 7 },
    }),
  ]);
  expect(joined.spool).toEqual({ ...spool, max_bytes: 200 });
  expect([joined.refused.get('lake'), joined.logLinesLost, joined.standing_by]).toEqual([
    6,
    2,
    null,
  ]);
});

test('a sink is settled up to no time while one of its parts is not', () => {
  const joined = joinedMoment([aMoment(aSink()), aMoment(aSink({ up_to: null }))], 100, '');
  expect(joined.sinks[0]?.up_to).toBeNull();
});

test('a process without a shard is on standby', () => {
  expect(joinedMoment([], 100, 'others have them')).toMatchObject({
    standing_by: 'others have them',
    sinks: [],
  });
});
