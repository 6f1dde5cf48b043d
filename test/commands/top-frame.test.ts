// A screen of top, from a status.

import { describe, expect, test } from 'vitest';
import { frameLines } from '../../src/commands/shared/top-frame.ts';
import { History } from '../../src/watch/history.ts';
import { statusOf } from '../../src/watch/report.ts';
import { aFailure, aMoment, anAilment, aSink, aSpool, aStream } from '../watch/a-moment.ts';

describe('a screen of top', () => {
  function aStanding(count: number) {
    const error = aFailure('\u001b]0;x\u0007');
    const streams = Array.from({ length: count }, (_, at) =>
      aStream({ name: `s-${at}`, ...(at === count - 1 ? { error } : {}) }),
    );
    const history = new History();
    const moment = aMoment({
      streams,
      spool: aSpool({ bytes: 1, max_bytes: 100, events: 2 }),
      sinks: [aSink({ state: 'sending', backlog: 4 })],
    });
    const ailments = [anAilment('s-0', 'halted')];
    const now = Date.UTC(2026, 0, 31, 8, 1);
    const whole = {
      moment,
      history,
      ailments,
      now,
      startedAt: now - 60_000,
      readyShare: 0.5,
      forms: null,
    };
    const statusView = statusOf(whole);
    const [sink] = statusView.sinks;
    if (sink === undefined) throw new Error('there is a sink');
    return {
      ...statusView,
      spool: { ...statusView.spool, full_in_ms: 90_000 },
      sinks: [{ ...sink, events_per_s: 2, drained_in_ms: 2_000 }],
    };
  }

  test('fits its space, with failures first and the number left out', () => {
    const reported = frameLines(aStanding(500), 22);

    const names = reported.flatMap((line) => /^s-\d+/.exec(line) ?? []);
    expect(reported.length).toBeLessThanOrEqual(22);
    expect(reported[0]).toMatch(/ready +up 1m 0s +500 streams/);
    expect(names[0]).toBe('s-499');
    expect(names[1]).toBe('s-0');
    expect(reported).toContain(`and ${500 - names.length} more`);
    expect(reported.join('\n')).toMatch(/^siem +syslog +sending +2 +4 +2s/m);
    expect(reported.join('\n')).toMatch(/^spool: 1 B of 100 B, 2 events held, full in 1m 30s/m);
  });

  test('shows all where there is room, cleaned', () => {
    const reported = frameLines(aStanding(3), 1_000);

    expect(reported.flatMap((line) => /^s-\d+/.exec(line) ?? [])).toEqual(['s-2', 's-0', 's-1']);
    expect(reported.join('')).not.toMatch(/[\u0000-\u001f]/);
  });
});
