// What a webhook's headers say is part of its event, beside the body, and never in its place.

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

test('without a mapping the body is in unmapped, and the event is named', () => {
  expect(eventOf(body)).toMatchObject({
    class_uid: 0,
    time: Date.parse(body.created_at),
    message: 'incident.created',
    metadata: { event_code: 'incident.created', original_event_uid: 'evt-1' },
    unmapped: { delivery, data: body.data },
  });
});

test('what the body says of itself comes first', () => {
  const record = { ...body, message: 'It is down', delivery: 'by post' };

  expect(eventOf(record)).toMatchObject({
    message: 'It is down',
    unmapped: { delivery: 'by post' },
  });
});

test('headers that were not there say nothing', () => {
  const normalise = compileNormaliser('log', settings);
  const given = { ...aContext('log'), delivery: { id: null, event: null } };

  const event = normalise(body, aUid, given);

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
