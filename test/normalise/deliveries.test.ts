// A webhook's headers are part of its event, beside the body, and never override the body.

import { expect, test } from 'vitest';
import type { Json } from '../../src/contracts/json.ts';
import { compileNormaliser, type Mapping } from '../../src/normalise/normalise.ts';
import { aContext, aUid, hasShared, loadCheck } from './ocsf.ts';

const settings = { id: 'id', time: ['created_at'] };
const delivery = { id: 'dlv-1', event: 'incident.created' };
const body = {
  ...{ id: 'evt-1', created_at: '2026-11-22T12:00:00Z' },
  data: { severity: 'sev1', summary: 'tunnel down' },
};

function eventOf(record: Json, its: Partial<typeof delivery> = {}, mapping?: Mapping) {
  const normalise = compileNormaliser('log', { ...settings, ...(mapping && { mapping }) });
  return normalise(record, aUid, { ...aContext('log'), delivery: { ...delivery, ...its } });
}

const mapping: Mapping = {
  class: 'entity_management',
  fields: { 'entity.uid': 'data.id', message: 'data.summary' },
};

test('without a mapping the event is of the class of its subject, and is named', () => {
  expect(eventOf(body)).toMatchObject({
    class_uid: 3004,
    activity_id: 1,
    time: Date.parse(body.created_at),
    severity_id: 5,
    message: 'tunnel down',
    entity: { name: 'incident' },
    metadata: { event_code: 'incident.created', original_event_uid: 'evt-1' },
    unmapped: { delivery },
  });
});

test.each([
  [
    'site.status_changed',
    { site_id: 'site_zrh', name: 'Zurich', status: 'down' },
    { entity: { uid: 'site_zrh', type: 'site' } },
  ],
  [
    'policy.updated',
    {
      id: 'pol-9',
      name: 'Default policy',
      actor: { type: 'admin', name: 'Anna', ip: '192.0.2.7' },
    },
    {
      class_uid: 6003,
      activity_id: 3,
      actor: { user: { name: 'Anna' } },
      resources: [{ uid: 'pol-9', name: 'Default policy', type: 'policy' }],
    },
  ],
  [
    'agent.action.gated',
    { agent: { id: 'ag-1', name: 'triage-agent' }, run_id: 'run_1', task: 'isolate host' },
    { actor: { app_uid: 'ag-1', app_name: 'triage-agent' }, entity: { uid: 'run_1' } },
  ],
  [
    'incident.created',
    { id: 'INC-1', title: 'beaconing host', severity: 'high', created_by: 'anna' },
    {
      class_uid: 3004,
      severity_id: 4,
      actor: { user: { name: 'anna' } },
      entity: { uid: 'INC-1', name: 'beaconing host', type: 'incident', type_id: 99 },
    },
  ],
])('%s has its subject and its actor, named by body or header', (event, data, expected) => {
  for (const record of [
    { id: 'evt-1', event, data },
    { id: 'evt-1', data },
    { event: { id: 'evt-1', type: event }, payload: data },
  ]) {
    const made = eventOf(record, { event });
    expect(made).toMatchObject({ class_uid: 3004, ...expected });
    expect(made.metadata.event_code).toBe(event);
  }
});

test('the body’s own values come first', () => {
  const record = { ...body, message: 'It is down', delivery: 'by post' };

  expect(eventOf(record)).toMatchObject({
    message: 'It is down',
    unmapped: { delivery: 'by post' },
  });
});

test('headers that were not there say nothing', () => {
  const normalise = compileNormaliser('log', settings);
  const given = { ...aContext('log'), delivery: { id: null, event: null } };

  const event = normalise({ id: 'evt-1' }, aUid, given);

  expect(event).not.toHaveProperty('message');
  expect(event.metadata).not.toHaveProperty('event_code');
});

test.runIf(hasShared).for([
  ['unmapped', undefined],
  ['mapped', mapping],
] as const)('%s it is valid', async ([, mapped]) => {
  const check = await loadCheck();

  for (const record of [body, [], 'text', null]) {
    expect(check(eventOf(record, {}, mapped))).toMatchObject({ errors: [] });
  }
});
