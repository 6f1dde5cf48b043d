// The typed fields of the ecs format that rules and dashboards need, from records as upstream sends them.

import { describe, expect, test } from 'vitest';
import { ecsLooks } from '../../formats/ecs.ts';
import { type OwnFields, ownFieldsOf } from '../../formats/ecs-own.ts';
import { compileNormaliser, type Mapping } from '../../src/normalise/normalise.ts';
import { aContext, aUid } from '../normalise/ocsf.ts';
import { anEvent } from '../support/an-event.ts';
import { readEcs } from './ecs-reader.ts';
import { makeFormat } from './make-format.ts';

const normalise = compileNormaliser('audit', { time: ['timestamp'], id: 'id' });
const format = makeFormat('ecs');

function ecsOf(record: object) {
  const event = anEvent();
  const whole = { id: 'e1', action: 'dlp.rule.update', source_ip: '203.0.113.7', ...record };
  const ocsf = normalise(JSON.parse(JSON.stringify(whole)), event.uid, event.context);
  return readEcs(String(format.encode({ ...event, ocsf })));
}

describe('ecs has typed fields of sluice', () => {
  test('for a change: target, actor and a flat list of new values', () => {
    const { fields, sluice } = ecsOf({
      actor: { type: 'admin', name: 'ann', role: 'owner' },
      resource: { type: 'dlp_rule', id: 'dlp_1', name: 'Cards' },
      changes: [
        { field: 'enabled', from: true, to: false },
        { field: 'inline', from: false, to: true },
        { field: 'action', from: 'log', to: 'log' },
        { field: 'channels', from: ['web'], to: ['web', 'mail'] },
        { field: 'limits', from: null, to: { files: 5 } },
      ],
      conflicts: 3,
    });

    expect(sluice).toMatchObject({
      target: { type: 'dlp_rule', uid: 'dlp_1', name: 'Cards' },
      actor: { kind: 'user' },
      change: ['enabled=false', 'inline=true', 'limits.files=5', 'channels=mail'],
      conflicts: 3,
    });
    expect(fields.get('user.roles')).toEqual(['owner']);
    expect(fields.get('event.ingested')).toBe('2026-03-04T05:06:37.000Z');
  });

  test('for an agent: its kind and its run', () => {
    const agent = { type: 'agent', id: 'ag-1', name: 'triage' };
    const resource = { type: 'agent_run', id: 'run_1' };

    expect(ecsOf({ actor: agent, resource }).sluice).toMatchObject({
      actor: { kind: 'agent' },
      run: 'run_1',
    });
    expect(ecsOf({ actor: agent, run: { run_id: 'run_2' } }).sluice).toMatchObject({
      run: 'run_2',
    });
    expect(ecsOf({ actor: { type: 'system', name: 'cp' } }).sluice).toMatchObject({
      actor: { kind: 'system' },
    });
  });

  test('and none of what is unknown', () => {
    const { sluice } = ecsOf({ conflicts: 'some', actor: {} });

    for (const name of ['target', 'actor', 'change', 'run', 'conflicts'])
      expect(sluice).not.toHaveProperty(name);
  });

  test('for a created object: all of its values', () => {
    const { sluice } = ecsOf({
      action: 'rule.create',
      source_ip: undefined,
      resource: { type: 'rule', id: 'r1' },
      after: { source: 'any', ports: [80, 443] },
    });

    expect(sluice.change).toEqual(['source=any', 'ports=80', 'ports=443']);
  });

  test('for a change beside long lists and texts, which hide nothing', () => {
    const members = (letter: string) => Array.from({ length: 12_000 }, (_, i) => `${letter}${i}`);
    const { sluice } = ecsOf({
      resource: { type: 'dlp_rule', id: 'dlp_1' },
      changes: [
        { field: 'domains', from: members('a'), to: members('b') },
        { field: 'url', from: '', to: `https://evil.example/${'x'.repeat(5_000)}` },
        { field: 'enabled', from: true, to: false },
      ],
    });

    const { change = [] } = sluice as OwnFields;
    expect(change.slice(1, 4)).toEqual(['enabled=false', 'domains=b0', 'domains=b1']);
    expect(change[0]).toMatch(/^url=https:\/\/evil\.example\/x{999}$/);
    expect(change).toHaveLength(10_000);
  });

  test('and looks at long lists once, not once for each pair of values', () => {
    const list = (letter: string) => Array.from({ length: 2_000 }, (_, i) => `${letter}${i}`);
    const event = anEvent();
    const record = {
      action: 'rule.update',
      before: { list: list('a') },
      after: { list: list('b') },
    };
    const whole = { id: 'e1', resource: { type: 'rule', id: 'r1' }, ...record };
    const ocsf = normalise(whole, event.uid, event.context);

    expect(ecsLooks({ ...event, ocsf }).length).toBeLessThan(10_000);
  });

  test.each([
    [{ role: 'owner' }],
    [{ roles: ['owner'] }],
    [{ user: { name: 'bob', role: 'owner' } }],
  ])("and no role that may be the target's: %j", (granted) => {
    const { fields } = ecsOf({ action: 'user.role_assigned', actor: { name: 'ann' }, ...granted });

    expect(fields.has('user.roles')).toBe(false);
  });

  test.each([
    ['https://evil.example\\@trusted.example/', 'evil.example'],
    ['https://trusted.example@x@evil.example/', 'evil.example'],
    ['https://ev\til.example/', 'evil.example'],
    ['https://[::1]:8/', '[::1]'],
    ['kafka://Broker:9092', 'broker'],
    ['https://', undefined],
  ])('for the URL %j: the host that a client would reach', (url, host) => {
    expect(ecsOf({ actor: { name: 'ann' }, url }).fields.get('url.domain')).toBe(host);
  });

  test('for a URL: the whole, and its host', () => {
    const { fields } = ecsOf({
      actor: { name: 'ann' },
      url: 'https://ann@Hooks.Evil.example:8443/x?y',
    });

    expect(Object.fromEntries(fields)).toMatchObject({
      'url.original': 'https://ann@Hooks.Evil.example:8443/x?y',
      'url.full': 'https://ann@Hooks.Evil.example:8443/x?y',
      'url.domain': 'hooks.evil.example',
    });
  });
});

describe('changes of records that are no audit events', () => {
  const made = (kind: 'log' | 'drift', record: object, mapping?: Mapping) =>
    ownFieldsOf(
      compileNormaliser(kind, { time: [], id: null, ...(mapping && { mapping }) })(
        JSON.parse(JSON.stringify(record)),
        aUid,
        aContext(kind),
      ),
    ).change;
  const list = [
    { field: 'enabled', from: true, to: false },
    { field: 'action', from: 'block', to: 'log' },
  ];
  const rule = { entity_kind: 'rule', entity_id: 'r-7', observed_at: '2026-03-04T05:06:07Z' };
  const entity: Mapping = { class: 'entity_management', fields: { 'entity.name': 'name' } };

  test.each([
    ['a log', 'log', { user: 'ann', changes: list }, undefined],
    [
      'a log with before and after',
      'log',
      { before: { enabled: true }, after: { enabled: false, action: 'log' } },
      undefined,
    ],
    ['a mapped log', 'log', { name: 'x', user: 'ann', modified_properties: list }, entity],
    [
      'a created object',
      'drift',
      { ...rule, change: 'created', after: { enabled: false, action: 'log' } },
      undefined,
    ],
    [
      'a changed object',
      'drift',
      {
        ...rule,
        change: 'updated',
        before: { enabled: true, kept: 1 },
        after: { enabled: false, action: 'log', kept: 1 },
      },
      undefined,
    ],
    [
      'a changed object with a mapping',
      'drift',
      {
        ...rule,
        change: 'updated',
        before: { name: 'x', enabled: true },
        after: { name: 'x', enabled: false, action: 'log' },
      },
      entity,
    ],
  ] as const)('%s has a list of its new values', (_, kind, record, mapping) => {
    expect(made(kind, record, mapping)).toEqual(['enabled=false', 'action=log']);
  });

  test.each([
    [
      'an object at the first reading',
      'drift',
      { ...rule, change: 'state', after: { enabled: false } },
    ],
    ['a deleted object', 'drift', { ...rule, change: 'deleted', before: { enabled: false } }],
    ['a log whose changes are a number', 'log', { changes: 3, after: '2026-01-01' }],
    ['a log whose list is of another kind', 'log', { changes: [{ field: 'a' }, 5] }],
  ] as const)('%s has none', (_, kind, record) => {
    expect(made(kind, record)).toBeUndefined();
  });
});
