// The ecs format against the published list of ECS fields, and that every value of an event is in it.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ecsFields, ecsVersion } from '../../formats/ecs-fields.ts';
import type { Event } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';
import { classNames, namedClass } from '../../src/normalise/schema.ts';
import { hasShared, loadSamples, sampleNames, sharedNote } from '../normalise/ocsf.ts';
import { anEvent, type EventWishes } from '../support/an-event.ts';
import { sampleMappings } from '../support/sample-mappings.ts';
import { hostileEvent, weirdEvent } from './arbitrary-events.ts';
import { addFound, type Found, foundOf, foundShare } from './carried-share.ts';
import { listed, readEcs } from './ecs-reader.ts';
import { makeFormat } from './make-format.ts';

const format = makeFormat('ecs');
const read = (event: Event) => readEcs(String(format.encode(event)));
const ecsOf = (ocsf: EventWishes['ocsf'] = {}) => {
  const { fields, sluice } = read(anEvent({ ocsf }));
  return { fields: Object.fromEntries(fields), sluice };
};

describe('ecs', () => {
  test.each(ecsFields)('fills $field as the list has it', ({ field, kind }) => {
    const types = {
      text: 'match_only_text',
      lower: 'keyword',
      mac: 'keyword',
      port: 'long',
    } as const;

    expect(listed[field]?.type).toBe(kind in types ? types[kind as keyof typeof types] : kind);
  });

  test('writes fields of the list only, of their types, whatever an event holds', () => {
    fc.assert(
      fc.property(fc.oneof(weirdEvent, hostileEvent), (event) => {
        expect(read(event).fields.get('ecs.version')).toBe(ecsVersion);
      }),
      { numRuns: 300 },
    );
  });

  test('has kinds, categories and types of the closed lists for each class and activity', () => {
    for (const { uid, caption, activities } of classNames.map(namedClass)) {
      for (const activity of Object.keys(activities)) {
        for (const disposition_id of [0, 1, 2, 6]) {
          const category_uid = Math.floor(uid / 1000);
          const ocsf = { class_uid: uid, class_name: caption, category_uid, disposition_id };
          expect(() => ecsOf({ ...ocsf, activity_id: Number(activity) })).not.toThrow();
        }
      }
    }
  });

  test('has actor, action, origin and outcome', () => {
    const { fields } = ecsOf();

    expect(fields).toMatchObject({
      '@timestamp': '2026-03-04T05:06:07.089Z',
      'event.id': anEvent().uid,
      'event.action': 'policy.update',
      'event.category': ['api'],
      'event.type': ['change'],
      'event.outcome': 'success',
      'user.id': 'usr-17',
      'user.email': 'anna.schmidt@example.com',
      'source.ip': '203.0.113.7',
      'organization.id': 'c-1',
      'related.ip': ['203.0.113.7'],
      'related.user': ['usr-17', 'Anna Schmidt', 'anna.schmidt@example.com'],
    });
  });

  test('treats the user of a login as the actor, and any other as the target', () => {
    const user = { name: 'bo', uid: 'u-1' };
    const acting = { actor: { user: { name: 'anna' } } };

    const login = ecsOf({ class_uid: 3002, actor: {}, user }).fields;
    const change = ecsOf({ class_uid: 3001, ...acting, user }).fields;

    expect(login).toMatchObject({ 'user.name': 'bo', 'user.id': 'u-1' });
    expect(login).not.toHaveProperty('user.target.name');
    expect(change).toMatchObject({ 'user.name': 'anna', 'user.target.name': 'bo' });
  });

  test('takes a program that acts by itself for the user, and says that it is none', () => {
    const { fields, sluice } = ecsOf({ actor: { app_name: 'triage', app_uid: 'ag-7' } });

    expect(fields).toMatchObject({ 'user.name': 'triage', 'user.id': 'ag-7' });
    expect(sluice.ocsf).toMatchObject({ actor: { app_name: 'triage', app_uid: 'ag-7' } });
  });

  test('keeps values below sluice that a field does not accept, or that a better source has set', () => {
    const { fields, sluice } = ecsOf({
      src_endpoint: { ip: 'fe80::1%eth0', hostname: 'a.example', mac: '0a:1b:2c:3d:4e:5f' },
      api: { operation: 'rule.add' },
      action: 'Allowed',
      traffic: { bytes_in: 2 ** 60 },
      rcode: { odd: true },
    } as EventWishes['ocsf']);

    expect(fields).toMatchObject({
      'source.domain': 'a.example',
      'source.mac': '0A-1B-2C-3D-4E-5F',
      'event.action': 'Allowed',
      'related.hosts': ['a.example'],
    });
    expect(sluice.ocsf).toMatchObject({
      src_endpoint: { ip: 'fe80::1%eth0', mac: '0a:1b:2c:3d:4e:5f' },
      api: { operation: 'rule.add' },
      traffic: { bytes_in: 2 ** 60 },
      rcode: { odd: true },
    });
  });

  test('reads the first of a list, and keeps the others', () => {
    const evidences = [{ src_endpoint: { ip: '10.0.0.1' } }, { src_endpoint: { ip: '10.0.0.2' } }];

    const one = ecsOf({ src_endpoint: {}, evidences: evidences.slice(0, 1) });
    const two = ecsOf({ src_endpoint: {}, evidences });

    expect(one.fields['source.ip']).toBe('10.0.0.1');
    expect(one.sluice.ocsf).not.toHaveProperty('evidences');
    expect(two.sluice.ocsf).toMatchObject({
      evidences: [{}, { src_endpoint: { ip: '10.0.0.2' } }],
    });
  });

  test.each([Number.NaN, 1e300, 8.64e15, -8.64e15])('has a time where %d is none', (time) => {
    const { fields, sluice } = ecsOf({ time });

    expect(fields['@timestamp']).toBe('2026-03-04T05:06:37.000Z');
    expect(sluice.ocsf).toHaveProperty('time');
  });

  test('has the record as sent if configured', () => {
    const raw = '{ "a": 1 }';

    const { fields } = readEcs(
      String(makeFormat('ecs', { raw_data: true }).encode(anEvent({ raw }))),
    );

    expect(fields.get('event.original')).toBe(raw);
  });
});

describe.skipIf(!hasShared)(`ecs of real records${sharedNote}`, () => {
  test.each(sampleNames)('%s: 97 in 100 values', (name) => {
    const samples: readonly Json[] = loadSamples(name).filter((_, i) => i % 5 === 0);
    const total: Found = { values: 0, standard: 0, own: 0, rest: 0, lost: 0 };
    for (const way of [
      { kind: 'audit' },
      { kind: 'log' },
      { kind: 'log', mapping: sampleMappings[name] },
    ] as const) {
      addFound(total, foundOf(samples, { ...way, format: 'ecs' }));
    }

    expect(foundShare(total)).toBeGreaterThanOrEqual(97);
  });
});
