// What `status` and `top` tell an operator first, and how much of it there may be.

import { describe, expect, test } from 'vitest';
import { frameLines } from '../../src/commands/shared/top-frame.ts';
import { attentionLines, type Standing } from '../../src/watch/attention-lines.ts';
import type { RunningReport } from '../../src/watch/running.ts';

const failure = { code: 'upstream_refused', message: 'it said no', next: 'Ask again.' };
const spool = { bytes: 10, max_bytes: 100 };

function aStream(name: string, parts: Partial<Standing['streams'][number]> = {}) {
  return { name, state: 'waiting', error: null, ...parts };
}

function aSink(name: string, parts: Partial<Standing['sinks'][number]> = {}) {
  const well = { error: null, notice: null };
  return { name, state: 'idle', backlog: 0, dead_letters: 0, ...well, ...parts };
}

function lines(parts: Partial<Standing>): readonly string[] {
  return attentionLines({ streams: [], sinks: [], spool, ...parts }, 'sluice.yaml');
}

describe('attention', () => {
  test('says so when there is nothing to look at', () => {
    const told = lines({ streams: [aStream('a')], sinks: [aSink('b')] });

    expect(told).toEqual(['nothing needs attention']);
  });

  test('begins with what does not mend itself, and says what to do', () => {
    const told = lines({
      streams: [
        aStream('a', { state: 'retrying', error: failure }),
        aStream('b', { state: 'halted', error: { ...failure, next: 'Reset it.' } }),
      ],
      sinks: [aSink('siem', { state: 'refused', backlog: 7, error: failure })],
    });

    expect(told.map((line) => line.trim())).toEqual([
      '!! b is halted: it said no',
      'Reset it.',
      '!! siem refuses everything, 7 events held for it: it said no',
      'Ask again.',
      '! a is not read: it said no',
      'Ask again.',
    ]);
  });

  test('tells of a filter that could not judge events', () => {
    const told = lines({
      filters: [
        { route: 'routes[0]', source: 'audit', failures: 3, why: 'no such key: x' },
        { route: 'routes[1]', source: 'audit', failures: 0, why: null },
      ],
    });

    expect(told.map((line) => line.trim())).toEqual([
      '! the filter of routes[0] could not judge 3 events of audit, and let them pass: no such key: x',
      'Look for attributes in its where that not every event has: has(event.x) asks.',
    ]);
  });

  test('tells what a sink says of a far side that takes its events', () => {
    const notice = { what: 'the receiver never closes', next: 'Look at confirm.' };

    const told = lines({ sinks: [aSink('siem', { notice })] });

    expect(told.map((line) => line.trim())).toEqual([
      '! siem: the receiver never closes',
      'Look at confirm.',
    ]);
  });

  test('tells of streams that fail for one reason together', () => {
    const streams = Array.from({ length: 1_000 }, (_, i) =>
      aStream(`web/c-${i}`, {
        state: 'retrying',
        error: { ...failure, message: `asking for c-${i}: no token` },
      }),
    );

    const told = lines({ streams });

    expect(told).toHaveLength(2);
    expect(told[0]).toBe(
      ' ! web/c-0, web/c-1, web/c-2 and 997 more are not read: asking for c-0: no token',
    );
  });

  test('names the sink that the spool waits for, and the command for dead letters', () => {
    const sinks = [aSink('fast'), aSink('slow', { backlog: 9, dead_letters: 1 })];

    const filling = lines({ sinks, spool: { bytes: 85, max_bytes: 100 } });
    const full = lines({ sinks, spool: { bytes: 100, max_bytes: 100 } });

    expect(filling[0]).toMatch(/^ ! the spool fills up: 85 B of 100 B/);
    expect(filling[1]).toContain('why slow does not take its events');
    expect(full[0]).toMatch(/^!! the spool is full/);
    expect(full.join('\n')).toContain('slow has refused 1 event for good');
    expect(full.join('\n')).toContain('npx sluice dead-letters list -c sluice.yaml --sink slow');
  });

  test('tells no more than there is room for, and how much that leaves out', () => {
    const streams = ['a', 'b', 'c'].map((name) =>
      aStream(name, { state: 'retrying', error: { ...failure, code: name } }),
    );
    const standing = { streams, sinks: [], spool };

    const told = attentionLines(standing, 'sluice.yaml', { most: 1 });

    expect(told).toEqual([' ! a is not read: it said no', '   Ask again.', '   and 2 more, below']);
  });

  test('names the config in a command so that a shell reads it back', () => {
    const standing = { streams: [], sinks: [aSink('siem', { dead_letters: 1 })], spool };

    const told = attentionLines(standing, "it's mine.yaml");

    expect(told[1]).toContain(`dead-letters list -c 'it'\\''s mine.yaml' --sink siem;`);
  });

  test('keeps upstream’s words from steering the terminal', () => {
    const error = { ...failure, message: 'no\u001b[2J\nok', next: 'a\u202eb' };

    const told = lines({ streams: [aStream('a\r', { error })] });

    expect(told.join('')).not.toMatch(/[\u0000-\u001f\u202e]/);
    expect(told).toHaveLength(2);
  });
});

describe('a screen of top', () => {
  function aReport(streams: number): RunningReport {
    const facts = {
      order: 'oldest_first',
      polls: 3,
      records: 5,
      records_per_s: 1.5,
      polled_at: null,
    };
    const times = {
      caught_up_at: null,
      lag_ms: 61_000,
      checkpoint_at: null,
      waits_for: 'its schedule',
    };
    const error = { ...failure, message: '\u001b]0;x\u0007', request_id: null, trace_id: null };
    return {
      at: '2026-01-31T08:01:00.000Z',
      started_at: '2026-01-31T08:00:00.000Z',
      ready: false,
      records_per_s: 3,
      streams: Array.from({ length: streams }, (_, i) => ({
        ...facts,
        ...times,
        name: `s-${i}`,
        state: 'waiting',
        error: i === streams - 1 ? error : null,
      })),
      spool: { bytes: 1, max_bytes: 100, events: 2, full_in_ms: 90_000 },
      sinks: [
        {
          name: 'siem',
          type: 'syslog',
          state: 'sending',
          position: 3,
          backlog: 4,
          drained_in_ms: 2_000,
          events_per_s: 2,
          dead_letters: 0,
          error: null,
          notice: null,
        },
      ],
      conditions: [],
      filters: [],
    };
  }

  test('fits its room, with what fails first and how much is left out', () => {
    const told = frameLines({ report: aReport(500), configFile: 'x.yaml', rows: 22 });

    const names = told.flatMap((line) => /^s-\d+/.exec(line) ?? []);
    expect(told.length).toBeLessThanOrEqual(22);
    expect(told[0]).toMatch(/not ready +up 1m 0s +500 streams/);
    expect(names[0]).toBe('s-499');
    expect(names[1]).toBe('s-0');
    expect(told).toContain(`and ${500 - names.length} more`);
    expect(told.join('\n')).toMatch(/^siem +syslog +sending +2 +4 +2s/m);
    expect(told.join('\n')).toMatch(/^spool: 1 B of 100 B, 2 events held, full in 1m 30s/m);
  });

  test('shows all where there is room, cleaned', () => {
    const told = frameLines({ report: aReport(3), configFile: 'x.yaml', rows: 1_000 });

    expect(told.flatMap((line) => /^s-\d+/.exec(line) ?? [])).toEqual(['s-2', 's-0', 's-1']);
    expect(told.join('')).not.toMatch(/[\u0000-\u001f]/);
  });
});
