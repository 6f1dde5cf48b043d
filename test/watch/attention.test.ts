// The items that need an operator's attention, and that similar ones are reported once.

import { describe, expect, test } from 'vitest';
import { commandOf } from '../../src/terminal/command-text.ts';
import type { UpstreamEnd } from '../../src/upstream/ends.ts';
import { type AttentionFacts, attentionLines, attentionOf } from '../../src/watch/attention.ts';
import type { Ailment } from '../../src/watch/health.ts';
import type { StatusMoment } from '../../src/watch/live.ts';
import { endFacts } from '../../src/watch/upstream-ends.ts';
import {
  aFailure,
  aMoment,
  anAilment,
  anAilmentOf,
  aSink,
  aSpool,
  aStream,
  at,
} from './a-moment.ts';

const now = Date.UTC(2026, 0, 2);
const day = 86_400_000;

function matters(moment: Partial<StatusMoment>, ailments: readonly Ailment[] = []) {
  return attentionOf(aMoment(moment), { ailments, now });
}

test('attentionOf has nothing where nothing waits for a person, whatever fails for now', () => {
  const failing = aStream({ state: 'retrying', error: aFailure() });

  expect(matters({ streams: [failing], sinks: [aSink({ error: aFailure() })] })).toEqual([]);
});

test('attentionOf reports one ailment with its error and the next step', () => {
  const [matter, ...others] = matters({}, [anAilment('audit', 'halted', aFailure('denied'))]);

  expect(matter).toEqual({
    ...{ mood: 'bad', who: 'Stream audit', what: 'is unwell', message: 'denied', next: 'Look.' },
  });
  expect(others).toEqual([]);
});

test('attentionOf reports thousands that fail for one reason once, whatever each message is', () => {
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

test('attentionOf has one line for a company whose lists fail in different ways', () => {
  const error = (next: string) => ({ ...aFailure('refused'), next });
  const first = { upstream: 'ops', company: 'c-0' };
  const other = { upstream: 'ops', company: 'c-1' };
  const ailments = [
    anAilmentOf(first, 'web/c-0', 'halted', error('Grant web.')),
    anAilmentOf(first, 'dns/c-0', 'not_advancing', error('Grant dns.')),
    anAilmentOf(first, 'fw/c-0/objects', 'not_advancing', error('Grant fw.')),
    anAilmentOf(other, 'web/c-1', 'not_advancing', error('Wait.')),
  ];
  const lost = {
    ...{ condition: 'source.scope_lost', stream: 'web/c-0', message: 'the company is denied' },
    observed_at: new Date(now - 1).toISOString(),
  };

  const reported = matters({ conditions: [lost] }, ailments);

  expect(reported.map(({ who, what }) => [who, what])).toEqual([
    ['3 streams of company c-0', 'are not read: web/c-0, dns/c-0, fw/c-0/objects'],
    ['Stream web/c-1', 'is unwell'],
  ]);
});

test.each([
  [
    'with a slash in its id',
    { upstream: 'ops', company: 'a/b' },
    { upstream: 'ops', company: 'a/c' },
  ],
  [
    'of one id in two upstreams',
    { upstream: 'ops', company: 'a' },
    { upstream: 'old', company: 'a' },
  ],
])('attentionOf has a line for each company %s', (_, one, another) => {
  const [halted, slow] = ['Grant.', 'Wait.'].map((next) => ({ ...aFailure('no'), next }));
  const ailments = [one, another].flatMap((owner, i) => [
    anAilmentOf(owner, `web${i}/${owner.company}`, 'halted', halted),
    anAilmentOf(owner, `dns${i}/${owner.company}`, 'not_advancing', slow),
  ]);

  const reported = matters({}, ailments);

  expect(reported.map(({ who, what }) => [who, what])).toEqual(
    [one, another].map(({ company }, i) => [
      `2 streams of company ${company}`,
      `are not read: web${i}/${company}, dns${i}/${company}`,
    ]),
  );
});

test('attentionOf has one line for a company of which one stream fails as those of another company do', () => {
  const mixed = { upstream: 'ops', company: 'c-9' };
  const slow = { upstream: 'ops', company: 'c-11' };
  const reset = { ...aFailure('reset'), next: 'Wait.' };
  const reported = matters({}, [
    anAilmentOf(mixed, 'dns/c-9', 'not_advancing', { ...aFailure('503'), next: 'Retry.' }),
    anAilmentOf(mixed, 'web/c-9', 'not_advancing', reset),
    anAilmentOf(slow, 'web/c-11', 'not_advancing', reset),
  ]);

  expect(reported.map(({ who }) => who)).toEqual(['2 streams of company c-9', 'Stream web/c-11']);
});

test('attentionOf names the failure of a company whose streams all fail alike', () => {
  const owner = { upstream: 'ops', company: 'c-1' };
  const error = { ...aFailure('refused'), next: 'Grant.' };
  const reported = matters({}, [
    anAilmentOf(owner, 'web/c-1', 'halted', error),
    anAilmentOf(owner, 'dns/c-1', 'halted', error),
  ]);

  expect(reported.map(({ who, what }) => [who, what])).toEqual([
    ['2 streams', 'are halted: web/c-1, dns/c-1'],
  ]);
});

test('attentionOf has a line for each failure that many companies share', () => {
  const errors = ['Wait.', 'Retry.'].map((next) => ({ ...aFailure('down'), next }));
  const ailments = Array.from({ length: 30 }, (_, i) => ({
    upstream: 'ops',
    company: `c-${i}`,
  })).flatMap((owner) =>
    errors.map((error, n) => anAilmentOf(owner, `s${n}/${owner.company}`, 'not_advancing', error)),
  );

  expect(matters({}, ailments).map(({ who }) => who)).toEqual(['30 streams', '30 streams']);
});

test('attentionOf names dead letters, with the reason and the next step', () => {
  const dead_letter_reasons = [{ reason: 'too long', count: 3, last_at: at(now) }];

  expect(matters({ sinks: [aSink({ dead_letters: 3_000, dead_letter_reasons })] })).toEqual([
    {
      ...{ mood: 'warn', who: 'Sink siem', what: 'has refused 3,000 events for good' },
      message: 'too long',
      next: expect.stringContaining('sluice dead-letters list --sink siem'),
    },
  ]);
});

test('attentionOf names conditions for a day, those of one kind together', () => {
  const found = (stream: string, ageMs: number) => ({
    ...{ condition: 'source.gap', stream, message: `between two pages of ${stream}` },
    observed_at: new Date(now - ageMs).toISOString(),
  });

  const reported = matters({ conditions: [found('a', 1), found('b', 2), found('c', day)] });

  expect(reported.map(({ who, what, message }) => [who, what, message])).toEqual([
    ['source.gap', 'was found in the last day in 2 streams: a, b', 'between two pages of a'],
  ]);
});

test.each<[string, Partial<StatusMoment>, string | undefined]>([
  ['a spool that fills up', { spool: filled(85) }, 'The spool is 85 % full'],
  ['not one with room', { spool: filled(79) }, undefined],
  [
    'filters that failed',
    { filters: [{ route: 'routes[1]', source: 'audit', failures: 1, why: 'No such key' }] },
    'The filter of routes[1] could not judge 1 event of audit since the start, and let them pass',
  ],
  [
    'an upstream that ends soon',
    ending({ endsMs: now + 89.5 * day, from: 'config' }),
    'Upstream edge ends on 2026-04-01, in 89 days',
  ],
  ['not one that ends later', ending({ endsMs: now + 90.5 * day, from: 'config' }), undefined],
  ['not one that never ends', ending({ endsMs: null, from: 'default' }), undefined],
  [
    'an upstream on its last day',
    ending({ endsMs: now + day / 2, from: 'config' }),
    'Upstream edge ends on 2026-01-02, in less than a day',
  ],
  [
    'an upstream that has ended',
    ending({ endsMs: now - day, from: 'config' }),
    'Upstream edge ended on 2026-01-01',
  ],
  [
    'a header with an earlier date than the config',
    ending({
      ...{ endsMs: now + 200 * day, from: 'config' },
      earlier: { endpoint: '/v1/x', endsMs: now + 100 * day },
    }),
    'Upstream edge announces an earlier end than its config: 2026-04-12',
  ],
])('attentionOf names %s', (_, watched, requested) => {
  const [matter] = matters(watched);

  expect(matter && `${matter.who} ${matter.what}`).toBe(requested);
  if (matter !== undefined) expect([matter.mood, typeof matter.next]).toEqual(['warn', 'string']);
});

test('attentionOf reports a full spool once', () => {
  const full: Ailment = {
    ...{ part: 'spool', name: 'spool', reason: 'full', error: null },
    ...{ what: 'is full', message: 'the spool is full' },
  };

  expect(matters({ spool: filled(100) }, [full])).toEqual([
    {
      ...{ mood: 'bad', who: 'The spool', what: 'is full', message: null },
      next: 'Look why siem does not accept its events, or raise state.max_bytes.',
    },
  ]);
});

function filled(bytes: number, full_in_ms: number | null = null): StatusMoment['spool'] {
  return aSpool({ bytes, max_bytes: 100, full_in_ms });
}

function ending(end: Pick<UpstreamEnd, 'endsMs' | 'from'> & Partial<UpstreamEnd>) {
  const facts = endFacts('edge', { endpoint: null, earlier: null, ...end }, { now, moved: false });
  return { upstreams: [{ ...facts, base_url: '', throttles: [], end_of_life: [] }] };
}

test('attentionOf names the endpoint of a date, and the setting that corrects it', () => {
  const end = { endsMs: now + day, from: 'sunset', endpoint: '/v1/x' } as const;

  expect(matters(ending(end))).toMatchObject([
    {
      message: 'The date is named by the Sunset header of /v1/x.',
      next: expect.stringContaining('set upstreams.edge.ends to a date or to never'),
    },
  ]);
});

test('attentionOf reports a sink’s warning about a receiver that accepts its events', () => {
  const notice = { what: 'the receiver never closes', next: 'Look at confirm.' };

  expect(matters({ sinks: [aSink({ notice })] })).toEqual([
    { mood: 'warn', who: 'Sink siem', message: null, ...notice },
  ]);
});

test('attentionOf reports a spool that is full soon, and not one that has time', () => {
  const soon = matters({ spool: filled(10, 160_000) });
  const later = matters({ spool: filled(10, 2 * 3_600_000) });

  expect(soon.map(({ mood, who, what }) => [mood, who, what])).toEqual([
    ['warn', 'The spool', 'is 10 % full, and full within 3 min at this pace'],
  ]);
  expect(later).toEqual([]);
});

test('attentionOf reports a config that was refused first', () => {
  const reload_refused = {
    at: at(now),
    code: 'config_invalid',
    message: 'c.yaml:1:1: x',
    next: 'Mend.',
  };

  const [first] = matters({ reload_refused, spool: filled(85) });

  expect(first).toMatchObject({ mood: 'bad', who: 'The config', message: 'c.yaml:1:1: x' });
});

test('attentionOf reports at once a list that may be read in part, though reading continues', () => {
  const doubt = { ...aFailure('the answer shows a next page'), code: 'paging_suspected' };

  expect(matters({ streams: [aStream({ error: doubt })] })).toMatchObject([
    { mood: 'bad', who: 'Stream audit', what: 'may be read in part', message: doubt.message },
  ]);
});

describe('without a history', () => {
  const { streams, spool, sinks } = aMoment();
  const reported = (parts: Partial<AttentionFacts>) =>
    attentionOf({ streams, spool, sinks, ...parts }).map(
      ({ mood, who, what, message }) => `${mood}: ${who} ${what}: ${message}`,
    );

  test('nothing is reported if nothing fails', () => {
    expect(reported({})).toEqual([]);
  });

  test('faults that need an operator come first, and every failure is reported', () => {
    const error = aFailure('it said no');

    const lines = reported({
      streams: [
        aStream({ name: 'a', state: 'retrying', error }),
        aStream({ name: 'b', state: 'halted', error }),
        // As a database has it of which nothing runs.
        { name: 'c', state: 'stopped', error: { ...error, code: 'paging_suspected' } },
      ],
      sinks: [aSink({ state: 'refused', error }), aSink({ name: 'post', error })],
    });

    expect(lines).toEqual([
      'bad: Sink siem refuses everything; its events stay in the spool: it said no',
      'bad: Stream b is halted: it said no',
      'bad: Stream c may be read in part: it said no',
      'warn: Sink post accepts nothing; its events stay in the spool: it said no',
      'warn: Stream a is not read: it said no',
    ]);
  });

  test('a full spool is reported with the sink that it waits for', () => {
    const [full] = attentionOf({
      ...{ streams, spool: { bytes: 100, max_bytes: 100 } },
      sinks: [aSink({ name: 'fast' }), aSink({ name: 'slow', backlog: 9 })],
    });

    expect(full?.what).toContain('is full (100 of 100 bytes): polling waits');
    expect(full?.next).toContain('why slow does not accept its events');
  });
});

describe('attentionLines', () => {
  const lines = (moment: Partial<StatusMoment>, most?: number) =>
    attentionLines(
      attentionOf(aMoment(moment), { ailments: [], command: commandOf("it's mine.yaml") }),
      most === undefined ? {} : { most },
    );

  test('says so when there is nothing to look at', () => {
    expect(lines({})).toEqual(['nothing needs attention']);
  });

  test('names the command for dead letters so that a shell reads it back', () => {
    expect(lines({ sinks: [aSink({ dead_letters: 1 })] })).toEqual([
      ' ! Sink siem has refused 1 event for good',
      `   Look why, then send them again or drop them: npx sluice dead-letters list -c 'it'\\''s mine.yaml' --sink siem`,
    ]);
  });

  test('reports no more than fit, and how many are left out', () => {
    const sinks = ['a', 'b', 'c'].map((name) =>
      aSink({ name, notice: { what: 'has a receiver that never closes', next: 'Look.' } }),
    );

    expect(lines({ sinks }, 1)).toEqual([
      ' ! Sink a has a receiver that never closes',
      '   Look.',
      '   and 2 more, below',
    ]);
  });

  test('keeps upstream’s text from controlling the terminal', () => {
    const error = { ...aFailure('no\u001b[2J\nok'), next: 'a\u202eb' };
    const moment = aMoment({ streams: [aStream({ name: 'a\r', error })] });

    const reported = attentionLines(attentionOf(moment));

    expect(reported.join('')).not.toMatch(/[\u0000-\u001f\u202e]/);
    expect(reported).toHaveLength(2);
  });
});

test('attentionOf names a stream whose entities differ at each reading', () => {
  const unstable = { entities: 2, examples: [{ kind: 'host', id: 'h-1', path: 'load' }] };
  const compared = { volatile: [], unstable, flaps: 0 };

  const found = matters({ streams: [aStream({ compared }), aStream({ name: 'other' })] });

  expect(found).toMatchObject([
    {
      ...{ mood: 'warn', who: 'Stream audit', message: 'load of host h-1' },
      what: 'has 2 entities with a value that differs at each reading',
    },
  ]);
});
