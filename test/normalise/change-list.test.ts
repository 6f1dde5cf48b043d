// Lists of changes in audit records as two sides, and the verbs and states that detection rules need.

import { describe, expect, test } from 'vitest';
import { sidesOf } from '../../src/contracts/change-list.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { aContext, aUid } from './ocsf.ts';

const normalise = compileNormaliser('audit', { time: ['timestamp'], id: 'id' });
const drift = compileNormaliser('drift', { time: [], id: 'id' });
const rule = { type: 'dlp_rule', id: 'dlp_1', name: 'Cards' };
const list = [
  { field: 'enabled', from: true, to: false },
  { field: 'action', from: 'block', to: 'log' },
];

function audited(more: object) {
  const record = { id: 'e1', action: 'dlp.rule.update', actor: { name: 'ann' }, ...more };
  return normalise(JSON.parse(JSON.stringify(record)), aUid, aContext('audit'));
}

describe('a list of changes', () => {
  test.each([
    [list],
    [
      [
        { Field: 'enabled', old_value: true, new_value: false },
        { Field: 'action', old_value: 'block', new_value: 'log' },
      ],
    ],
    [
      [
        { path: 'enabled', before: true, after: false, kind: 'bool' },
        { path: 'action', previous: 'block', current: 'log' },
      ],
    ],
  ])('has two sides: %j', (value) => {
    expect(sidesOf(value)).toEqual({
      before: { enabled: true, action: 'block' },
      after: { enabled: false, action: 'log' },
    });
  });

  test.each([
    [[]],
    ['enabled'],
    [['enabled']],
    [[{ field: 'enabled' }]],
    [[{ from: 1, to: 2 }]],
    [[{ field: '', from: 1, to: 2 }]],
    [[...list, 'and more']],
  ])('is none: %j', (value) => {
    expect(sidesOf(value)).toBeUndefined();
  });

  test('may be long: no number of other changes hides one', () => {
    const others = Array.from({ length: 1_000 }, (_, i) => ({ field: `f${i}`, from: 1, to: 2 }));

    expect(sidesOf([...others, ...list])).toMatchObject({
      before: { f999: 1, enabled: true },
      after: { f999: 2, enabled: false },
    });
  });

  test('may name a field several times, which then has a list of values', () => {
    const added = ['a', 'b'].map((to) => ({ field: 'member', from: null, to }));

    expect(sidesOf([...list, ...added])).toEqual({
      before: { enabled: true, action: 'block', member: [null, null] },
      after: { enabled: false, action: 'log', member: ['a', 'b'] },
    });
  });

  test('has the first of several values for one side, also if it is null', () => {
    expect(sidesOf([{ field: 'x', from: null, old: 5, to: null, new: 7 }])).toEqual({
      before: { x: null },
      after: { x: null },
    });
  });

  test('may name any field', () => {
    const sides = sidesOf([{ field: '__proto__', from: 1, to: 2 }]);

    expect(Object.keys(sides?.after ?? {})).toEqual(['__proto__']);
  });

  test('is in the event before and after, and as sent', () => {
    const api = audited({ resource: rule, source_ip: '203.0.113.7', changes: list });
    const entity = audited({ resource: rule, changes: list });

    const before = { enabled: true, action: 'block' };
    const after = { enabled: false, action: 'log' };
    expect(api).toMatchObject({ resources: [{ data: { before, after } }] });
    expect(entity).toMatchObject({ entity: { data: before }, entity_result: { data: after } });
    for (const event of [api, entity]) expect(event.unmapped).toEqual({ changes: list });
  });

  test('does not replace the sides that a record has', () => {
    const event = audited({
      resource: rule,
      source_ip: '203.0.113.7',
      changes: list,
      new: { x: 1 },
    });

    expect(event.resources).toMatchObject([{ data: { after: { x: 1 } } }]);
  });

  test('without a target is only as sent', () => {
    const event = audited({ source_ip: '203.0.113.7', changes: list });

    expect(event).not.toHaveProperty('resources');
    expect(event.unmapped).toEqual({ changes: list });
  });
});

test.each([
  'policy.rollback',
  'RegenerateClientSecret',
  'incident.suppressed',
  'incident.acknowledged',
  'agent.action.executed',
  'agent.action.proposed',
  'agent.action.gated',
  'dlp.rule.disable',
])('%s is an update', (action) => {
  const event = audited({ action, resource: rule, source_ip: '203.0.113.7' });

  expect(event).toMatchObject({ class_uid: 6003, activity_id: 3 });
});

test('entity_result has the new state of a created or updated object', () => {
  const changeOf = (more: object) =>
    drift(
      { entity_kind: 'rule', entity_id: 'r1', observed_at: '2026-01-02T03:04:05Z', ...more },
      aUid,
      aContext('drift'),
    );
  const after = { action: 'allow', source: 'any' };

  const created = changeOf({ change: 'created', after });
  const updated = changeOf({ change: 'updated', before: { action: 'deny', source: 'any' }, after });
  const listed = changeOf({ change: 'state', after });

  for (const event of [created, updated])
    expect(event.entity_result).toMatchObject({ data: after });
  // Fields that exist stay.
  expect(created.entity).toMatchObject({ data: after });
  expect(listed).not.toHaveProperty('entity_result');
});
