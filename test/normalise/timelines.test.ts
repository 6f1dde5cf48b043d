// What is read of each ticket, incident, investigation and change: who acted, how it ended, and when.

import { describe, expect, test } from 'vitest';
import {
  changesSource,
  incidentTimelineSource,
  investigationsSource,
  ticketEventsSource,
} from '../../connectors/sources/timelines.ts';
import type { SourceDefinition } from '../../src/contracts/definition.ts';
import type { PageContext } from '../../src/contracts/event.ts';
import type { Json, JsonObject } from '../../src/contracts/json.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { auditRecord } from '../../src/sandbox/audit-records.ts';
import { settingsOf } from '../support/plain-upstream.ts';
import { aContext, aUid, hasShared, loadCheck, sharedNote } from './ocsf.ts';

function eventOf(source: SourceDefinition, record: Json, its: Partial<PageContext> = {}) {
  const reading = source.reading(settingsOf(source, { each: { ids: ['x-1'] } }));
  return compileNormaliser('log', reading)(record, aUid, {
    ...aContext('log'),
    ...{ parent: 'x-1', ...its },
  });
}

describe.each([
  ['ticket_events', ticketEventsSource],
  ['incident_timeline', incidentTimelineSource],
] as const)('%s', (_, source) => {
  test.each<[JsonObject, JsonObject]>([
    ...[
      'author actor user created_by performed_by initiator principal operator by',
      'added_by updated_by changed_by requester user_name username login',
    ]
      .join(' ')
      .split(' ')
      .map((name): [JsonObject, JsonObject] => [{ [name]: 'anna' }, { user: { name: 'anna' } }]),
    [
      { author: { name: 'Anna', email: 'anna@example.com' } },
      { user: { email_addr: 'anna@example.com' } },
    ],
    [{ performed_by: { type: 'agent', id: 'ag-1' } }, { app_uid: 'ag-1' }],
    [{ agent: { name: 'triage-agent' } }, { app_name: 'triage-agent' }],
    [{ author: 'anna', user: 'bob' }, { user: { name: 'anna' } }],
  ])('finds the actor in %j', (people, actor) => {
    const event = eventOf(source, { id: 'n-1', timestamp: '2026-01-01T00:00:00Z', ...people });

    expect(event).toMatchObject({ class_uid: 3004, actor });
  });

  test('does not take the subject of a ticket for a person', () => {
    const event = eventOf(source, { id: 'n-1', subject: 'Rule change' });

    expect(event.actor).toBeUndefined();
    expect(event.unmapped).toMatchObject({ subject: 'Rule change' });
  });
});

describe('changes', () => {
  test.each([
    ['COMPLETED', 1, 'Success'],
    ['FAILED', 2, 'Failure'],
    ['RUNNING', 99, 'RUNNING'],
  ])('%s has its status', (status, status_id, caption) => {
    expect(eventOf(changesSource, { change_id: 'c', status })).toMatchObject({
      ...{ status_id, status: caption, activity_name: status },
    });
  });
});

describe('investigations', () => {
  const created_at = '2026-01-01T00:00:00Z';

  test.each([
    [{ created_at }, undefined],
    [{ created: created_at, created_time: created_at }, undefined],
    [{ created_at, updated_at: '2026-02-01T00:00:00Z' }, '2026-02-01T00:00:00Z'],
    [{ created_at, lastModified: '2026-02-02T00:00:00Z' }, '2026-02-02T00:00:00Z'],
    [{ created_at, meta: { last_updated: '2026-02-03T00:00:00Z' } }, '2026-02-03T00:00:00Z'],
  ])('an update of %j has its own time or that of its reading', (times, expected) => {
    const record = { id: 'i-1', name: 'Beaconing', ...times };
    const event = eventOf(investigationsSource, record, { isUpdate: true });

    expect(event.activity_name).toBe('Update');
    expect(event.time).toBe(
      expected === undefined ? aContext('log').fetchedAt : Date.parse(expected),
    );
    expect(event.metadata.original_time).toBe(expected);
    expect(JSON.stringify(event.unmapped)).toContain(created_at);
    if ('created_at' in times)
      expect(eventOf(investigationsSource, { id: 'i-1', created_at }).time).toBe(
        Date.parse(created_at),
      );
  });
});

test('a status that no word is known for is Other, and signs are none', () => {
  const normalise = compileNormaliser('log', { id: 'id', time: [] });
  const of = (status: string) => normalise({ status }, aUid, aContext('log'));

  expect(of('waiting_for_customer')).toMatchObject({
    status_id: 99,
    status: 'waiting_for_customer',
  });
  expect(of('-')).toMatchObject({ status_id: 0 });
});

test.skipIf(!hasShared)(`each is a valid event${sharedNote}`, async () => {
  const check = await loadCheck();
  const sources = [ticketEventsSource, incidentTimelineSource, investigationsSource, changesSource];
  for (let index = 0; index < 40; index += 1) {
    const record = JSON.parse(
      auditRecord({ seed: 3, index, id: `"e${index}"`, timeMs: 1_790_000_000_000 }),
    );
    for (const source of sources) {
      for (const isUpdate of [false, true]) {
        const event = eventOf(source, record, isUpdate ? { isUpdate } : {});
        expect(check(event)).toEqual({ errors: [], warnings: [] });
      }
    }
  }
});
