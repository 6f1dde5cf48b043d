// What an operator is told to look at, and that what is alike is told once.

import { expect, test } from 'vitest';
import { mattersOf } from '../../src/watch/attention.ts';
import type { Ailment } from '../../src/watch/health.ts';
import type { Watched } from '../../src/watch/watched.ts';
import { aFailure, anAilment, aSink, aStream, aWatched } from './a-watched.ts';

const now = Date.UTC(2026, 0, 2);
const day = 86_400_000;

function matters(
  watched: Partial<Watched>,
  ailments: readonly Ailment[] = [],
  fullInMs: number | null = null,
) {
  return mattersOf(aWatched(watched), ailments, { now, fullInMs });
}

test('mattersOf has nothing where nothing waits for a person, whatever fails for now', () => {
  const failing = aStream({ state: 'retrying', error: aFailure() });

  expect(matters({ streams: [failing], sinks: [aSink({ error: aFailure() })] })).toEqual([]);
});

test('mattersOf tells one ailment with its error and what to do', () => {
  const [matter, ...others] = matters({}, [anAilment('audit', 'halted', aFailure('denied'))]);

  expect(matter).toEqual({
    ...{ mood: 'bad', who: 'Stream audit', what: 'is unwell', message: 'denied', next: 'Look.' },
  });
  expect(others).toEqual([]);
});

test('mattersOf tells thousands that fail for one reason once, whatever each message says', () => {
  const halted = Array.from({ length: 9_000 }, (_, index) =>
    anAilment(`s-${index}`, 'halted', aFailure(`s-${index} is denied; trace_id ${index}`)),
  );
  const other = anAilment('x', 'halted', { ...aFailure(), next: 'Ask.' });

  const [first, second, ...others] = matters({}, [...halted, other]);

  expect(first).toMatchObject({
    ...{ who: '9,000 streams', message: 's-0 is denied; trace_id 0' },
    what: 'are halted: s-0, s-1, s-2, s-3, s-4 and 8,995 more',
  });
  expect(second).toMatchObject({ who: 'Stream x', next: 'Ask.' });
  expect(others).toEqual([]);
});

test('mattersOf names dead letters, with why and what to do', () => {
  const letterReasons = [{ reason: 'too long', count: 3, lastAt: now }];

  expect(matters({ sinks: [aSink({ lettersHeld: 3_000, letterReasons })] })).toEqual([
    {
      ...{ mood: 'warn', who: 'Sink siem', what: 'has refused 3,000 events for good' },
      message: 'too long',
      next: expect.stringContaining('sluice dead-letters list --sink siem'),
    },
  ]);
});

test('mattersOf names conditions for a day, those of one kind together', () => {
  const found = (stream: string, ageMs: number) => ({
    ...{ condition: 'source.gap', stream, message: `between two pages of ${stream}` },
    observedAt: new Date(now - ageMs).toISOString(),
  });

  const told = matters({ conditions: [found('a', 1), found('b', 2), found('c', day)] });

  expect(told.map(({ who, what, message }) => [who, what, message])).toEqual([
    ['source.gap', 'was found in the last day in 2 streams: a, b', 'between two pages of a'],
  ]);
});

test.each<[string, Partial<Watched>, string | undefined]>([
  ['a spool that fills up', { spool: aSpool(85) }, 'The spool is 85 % full'],
  ['not one with room', { spool: aSpool(79) }, undefined],
  [
    'filters that failed',
    { filterFailures: [{ route: 'routes[1]', source: 'audit', failures: 1, why: 'No such key' }] },
    'The filter of routes[1] could not judge 1 event of audit since the start, and let them pass',
  ],
  [
    'an endpoint that is gone soon',
    aSunset(now + 30 * day),
    'Upstream edge serves /v1/x until 2026-02-01',
  ],
  ['not one that is there for long', aSunset(now + 100 * day), undefined],
  ['not one without a date', aSunset(null), undefined],
])('mattersOf names %s', (_, watched, wanted) => {
  const [matter] = matters(watched);

  expect(matter && `${matter.who} ${matter.what}`).toBe(wanted);
  if (matter !== undefined) expect([matter.mood, typeof matter.next]).toEqual(['warn', 'string']);
});

test('mattersOf tells a full spool once', () => {
  const full: Ailment = {
    ...{ part: 'spool', name: 'spool', reason: 'full', error: null },
    ...{ what: 'is full', message: 'the spool is full' },
  };

  expect(matters({ spool: aSpool(100) }, [full])).toEqual([
    { mood: 'bad', who: 'The spool', what: 'is full', message: null, next: null },
  ]);
});

function aSpool(bytes: number): Watched['spool'] {
  return { bytes, bytesMax: 100, oldest: 0, end: 1, oldestAt: 0 };
}

function aSunset(sunsetMs: number | null): Partial<Watched> {
  const endOfLife = [{ endpoint: '/v1/x', deprecationMs: null, sunsetMs }];
  return { upstreams: [{ name: 'edge', baseUrl: '', throttles: [], endOfLife }] };
}

test('mattersOf tells what a sink says of a far side that takes its events', () => {
  const notice = { what: 'the receiver never closes', next: 'Look at confirm.' };

  expect(matters({ sinks: [aSink({ notice })] })).toEqual([
    { mood: 'warn', who: 'Sink siem', message: null, ...notice },
  ]);
});

test('mattersOf tells a spool that is full soon, and not one that has time', () => {
  const soon = matters({ spool: aSpool(10) }, [], 160_000);
  const later = matters({ spool: aSpool(10) }, [], 2 * 3_600_000);

  expect(soon.map(({ mood, who, what }) => [mood, who, what])).toEqual([
    ['warn', 'The spool', 'is 10 % full, and all of it within 3 min at this pace'],
  ]);
  expect(later).toEqual([]);
});

test('mattersOf tells a config that was refused first', () => {
  const reloadRefused = {
    at: now,
    code: 'config_invalid',
    message: 'c.yaml:1:1: x',
    next: 'Mend.',
  };

  const [first] = matters({ reloadRefused, spool: aSpool(85) });

  expect(first).toMatchObject({ mood: 'bad', who: 'The config', message: 'c.yaml:1:1: x' });
});
