// The rules by which changes and audit events are matched, one row each. Times are seconds; a reading ends each second from
// 1 to 100, `within` is 5 s, and the trail is read to 100.

import { expect, test } from 'vitest';
import { type Extent, judgeOpen } from '../../src/drift/judge.ts';
import { lastBefore, type WatchedStream } from '../../src/drift/readings.ts';
import type { DriftCheckpoint, OpenChange, OpenEvent, OpenItem } from '../../src/drift/state.ts';

const s = 1_000;
const stream: WatchedStream = {
  ...{ name: 'fw/c-1', source: 'fw', company: 'c-1' },
  reading: {
    confirmAfterMs: 2 * s,
    settleMs: 10 * s,
    removalsAfter: 2,
    removals: true,
    sweepMs: 0,
  },
};
const readings = Array.from({ length: 100 }, (_, n) => (n + 1) * s);
const known = { matched: true, alone: 0, types: ['rule'] };

const checkpoint = (more: Partial<DriftCheckpoint> = {}): DriftCheckpoint => ({
  ...{ version: 1, kind: 'drift', next: 0, since: 0 },
  ...{ readings: { 'fw/c-1': readings }, sources: { fw: known } },
  ...more,
});
const extent = (more: Partial<Extent> = {}): Extent => ({
  ...{ watched: [stream], failing: new Set(), trailReadTo: 100 * s, withinMs: 5 * s },
  ...more,
});
const change = (more: Partial<OpenChange> = {}): OpenChange => ({
  ...{ is: 'change', uid: 'c', source: 'fw', stream: 'fw/c-1', company: 'c-1', keys: ['r1', 'p1'] },
  ...{ operation: 'updated', kind: 'rule', name: 'r1', from: 38 * s, to: 40 * s, state: 'open' },
  ...more,
});
const event = (at: number, more: Partial<OpenEvent> = {}): OpenEvent => ({
  ...{ is: 'event', uid: `e${at}`, source: 'audit', company: null, keys: ['r1'], type: 'rule' },
  ...{ action: 'rule.update', actor: 'ana', at: at * s, operation: 'updated', state: 'open' },
  ...more,
});

interface Case {
  readonly items: readonly OpenItem[];
  readonly reported: readonly string[];
  readonly before?: Partial<DriftCheckpoint>;
  readonly now?: Partial<Extent>;
}

const early = { before: { readings: { 'fw/c-1': readings.slice(0, 41) } } };

test.each<readonly [string, Case]>([
  ['a change without an event', { items: [change()], reported: ['unexplained c'] }],
  ['an event of the same entity', { items: [change(), event(39)], reported: [] }],
  ['an event of its parent', { items: [change(), event(39, { keys: ['p1'] })], reported: [] }],
  [
    'an event of another entity',
    {
      items: [change(), event(39, { keys: ['r2'], type: 'other' })],
      reported: ['unexplained c'],
    },
  ],
  [
    'an event of another company’s',
    {
      items: [change(), event(39, { company: 'c-2' })],
      reported: ['unexplained c'],
    },
  ],
  ['an event at the window’s begin', { items: [change(), event(33)], reported: [] }],
  [
    'an event before it',
    {
      items: [change(), event(32, { type: 'other' })],
      reported: ['unexplained c'],
    },
  ],
  ['an event at the window’s end', { items: [change(), event(45)], reported: [] }],
  [
    'an event behind it',
    {
      items: [change(), event(46, { type: 'other' })],
      reported: ['unexplained c'],
    },
  ],
  [
    'a removal after the event of its making',
    {
      items: [change({ operation: 'deleted' }), event(39, { operation: 'created', type: 'other' })],
      reported: ['unexplained c'],
    },
  ],
  [
    'a removal that its trail calls an update',
    {
      items: [change({ operation: 'deleted' }), event(39)],
      reported: [],
    },
  ],
  ['two changes, one event', { items: [change(), change({ uid: 'd' }), event(39)], reported: [] }],
  ['one change, two events', { items: [change(), event(38), event(39)], reported: [] }],
  ['late events are waited for', { items: [change()], reported: [], now: { trailReadTo: 49 * s } }],
  [
    'and no longer',
    { items: [change()], reported: ['unexplained c'], now: { trailReadTo: 50 * s } },
  ],
  ['a trail that fails', { items: [change()], reported: [], now: { trailReadTo: null } }],
  [
    'a configuration that fails',
    {
      items: [change(), event(20)],
      reported: [],
      now: { failing: new Set(['fw/c-1']) },
    },
  ],
  [
    'a change from before it was watched',
    { items: [change()], reported: [], before: { since: 34 * s } },
  ],
  ['a change of an unknown time', { items: [change({ from: null })], reported: [] }],
  ['a change that was reported', { items: [change({ state: 'done' })], reported: [] }],
  ['an event that no reading shows', { items: [event(40)], reported: ['unseen e40'] }],
  ['an event that a later reading shows', { items: [event(40)], reported: [], ...early }],
  [
    'an event of an entity that is not known to be watched',
    { items: [event(40, { type: 'x' })], reported: [] },
  ],
  ['an event that may not be a change', { items: [event(40, { operation: null })], reported: [] }],
  [
    'an event of a company that is not read',
    { items: [event(40, { company: 'c-9' })], reported: [] },
  ],
  [
    'an event from before the first reading',
    {
      items: [event(4)],
      reported: [],
      before: { readings: { 'fw/c-1': readings } },
    },
  ],
  [
    'a removal waits for its settling',
    {
      items: [event(85, { operation: 'deleted' })],
      reported: [],
      now: { trailReadTo: 100 * s },
    },
  ],
  ['if an update would be reported', { items: [event(85)], reported: ['unseen e85'] }],
  [
    'what is made and gone between readings',
    {
      items: [event(40, { operation: 'created' }), event(40.2, { operation: 'deleted' })],
      reported: ['unseen e40 may cancel', 'unseen e40.2 may cancel'],
    },
  ],
  [
    'a removal that no source reports',
    {
      items: [event(40, { operation: 'deleted' })],
      reported: [],
      now: { watched: [{ ...stream, reading: { ...stream.reading, removals: false } }] },
    },
  ],
  [
    'a policy that differs with its rule',
    {
      items: [change(), change({ uid: 'p', keys: ['p1'], kind: 'policy', to: 41 * s })],
      reported: ['unexplained c'],
    },
  ],
  [
    'a policy that differs by itself',
    { items: [change({ uid: 'p', keys: ['p1'], kind: 'policy' })], reported: ['unexplained p'] },
  ],
  [
    'two far from each other',
    { items: [event(20), event(60)], reported: ['unseen e20', 'unseen e60'] },
  ],
])('%s', (_, { items, reported, before, now }) => {
  const verdicts = judgeOpen(items, checkpoint(before), extent(now));
  const texts = verdicts.findings.map((one) =>
    one.is === 'unseen'
      ? `unseen ${one.event.uid}${one.mayCancel ? ' may cancel' : ''}`
      : `${one.is} ${one.change.uid}`,
  );
  expect(texts).toEqual(reported);
  // Reported once: the rest reports nothing more.
  const left = new Map(items.map((item) => [item.uid, item]));
  for (const item of verdicts.kept) left.set(item.uid, item);
  for (const { uid } of verdicts.dropped) left.delete(uid);
  const again = judgeOpen([...left.values()], verdicts.checkpoint, extent(now));
  expect(again.findings).toEqual([]);
});

const nothing = { sources: {} };
const alone = (n: number) =>
  Array.from({ length: n }, (_, at) => change({ uid: `c${at}`, keys: [`id${at}`] }));

test('nothing is reported before a change has found its event, and then waiting items are', () => {
  const first = judgeOpen(alone(19), checkpoint(nothing), extent());
  expect(first.findings).toEqual([]);
  const items = [...first.kept, change({ uid: 'met' }), event(39)];
  const then = judgeOpen(items, first.checkpoint, extent());
  expect(then.findings).toHaveLength(19);
  expect(then.findings.every(({ is }) => is === 'unexplained')).toBe(true);
});

test('twenty that find none are reported as one, and then nothing is, until one does', () => {
  const first = judgeOpen(alone(25), checkpoint(nothing), extent());
  expect(first.findings.map(({ is }) => is)).toEqual(['unmatchable']);
  const more = alone(30).slice(25);
  const second = judgeOpen([...first.kept, ...more], first.checkpoint, extent());
  expect(second.findings).toEqual([]);
  const items = [
    ...second.kept,
    change({ uid: 'met' }),
    event(39),
    change({ uid: 'x', keys: ['x'] }),
  ];
  const third = judgeOpen(items, second.checkpoint, extent());
  expect(third.findings).toMatchObject([{ is: 'unexplained', change: { uid: 'x' } }]);
});

test('a match teaches the names of its objects', () => {
  const { checkpoint: after } = judgeOpen(
    [change(), event(39, { type: 'fw_rule' })],
    checkpoint(),
    extent(),
  );
  expect(after.sources.fw?.types).toEqual(['rule', 'fw_rule']);
});

test('items that no later one can match are released', () => {
  const later = { trailReadTo: 1_000 * s };
  const items = [change({ state: 'done' }), event(39, { state: 'shown' }), event(98)];
  const { dropped } = judgeOpen(items, checkpoint(), extent(later));
  expect(dropped.map(({ uid }) => uid).sort()).toEqual(['c', 'e39']);
});

test.each([
  ['created', 0, 38],
  ['updated', 0, 36],
  ['deleted', 0, 28],
  ['updated', 30, 6],
] as const)('%s with a sweep of %d s can be as old as from %d', (operation, sweep, from) => {
  const swept = { ...stream, reading: { ...stream.reading, sweepMs: sweep * s } };
  expect(lastBefore(readings, { operation, to: 40 * s }, swept)).toBe(from * s);
});

test('before the first readings nothing is known', () => {
  expect(lastBefore(readings.slice(0, 2), { operation: 'updated', to: 3 * s }, stream)).toBeNull();
});
