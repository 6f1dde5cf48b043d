// The words by which products say what they decided, as OCSF's ids and as each format has them.

import { describe, expect, test } from 'vitest';
import { udmForm } from '../../connectors/sinks/google-secops/udm.ts';
import type { Event, OcsfEvent, RecordKind } from '../../src/contracts/event.ts';
import type { JsonObject } from '../../src/contracts/json.ts';
import { compileNormaliser, type Mapping } from '../../src/normalise/normalise.ts';
import { makeFormat } from '../formats/make-format.ts';
import { anEvent } from '../support/an-event.ts';
import { aContext, aUid, hasShared, loadCheck, sharedNote } from './ocsf.ts';

const flow = (fields: Mapping['fields']): Mapping => ({
  class: 'network_activity',
  fields: { 'src_endpoint.ip': 'client_ip', 'dst_endpoint.ip': 'server_ip', ...fields },
});

function ocsfOf(record: JsonObject, mapping: Mapping, kind: RecordKind = 'log') {
  return compileNormaliser(kind, { time: [], id: 'id', mapping })(record, aUid, aContext(kind));
}

function flowOf(action: string, fields: Mapping['fields'] = { action: 'action' }) {
  return ocsfOf({ client_ip: '10.1.1.1', server_ip: '203.0.113.9', action }, flow(fields));
}

function asEvent(ocsf: OcsfEvent): Event {
  return { ...anEvent(), ocsf };
}

function encoded(type: string, event: Event): string {
  return String(makeFormat(type).encode(event));
}

const words: readonly (readonly [words: string, action: number, disposition: number])[] = [
  ['allow allowed accept accepted permit permitted pass passed', 1, 1],
  ['block blocked deny denied', 2, 2],
  ['drop dropped', 2, 6],
  ['reject rejected', 2, 25],
  ['reset reset-both', 2, 21],
  ['quarantine quarantined', 2, 3],
  ['log logged monitor monitored', 3, 17],
  ['alert alerted', 3, 19],
  ['redirect redirected', 4, 7],
];
const every = words.flatMap(([row, action, disposition]) =>
  row.split(' ').map((word) => [word, action, disposition] as const),
);

describe('the decision of a device', () => {
  test.each(every)('%s has OCSF ids, in any case', (word, action_id, disposition_id) => {
    const capital = word.slice(0, 1).toUpperCase() + word.slice(1);
    for (const written of [word, word.toUpperCase(), capital]) {
      for (const attribute of ['action', 'action_id', 'disposition', 'disposition_id']) {
        const event = flowOf(written, { [attribute]: 'action' });
        expect(event).toMatchObject({ action_id, disposition_id });
      }
    }
  });

  test('an unknown word is Other, and stays as it was', () => {
    const event = flowOf('tarpit');

    expect(event).toMatchObject({ action_id: 99, action: 'tarpit' });
    expect(event.disposition_id).toBeUndefined();
  });

  test('both attributes mapped are each their own', () => {
    const mapping = flow({ action: 'action', disposition: 'what' });
    const record = { client_ip: '10.1.1.1', action: 'deny', what: 'alert' };

    expect(ocsfOf(record, mapping)).toMatchObject({ action_id: 2, disposition_id: 19 });
  });

  test.each([
    ['permit', 'allowed', 'success'],
    ['Reset', 'denied', 'failure'],
    ['QUARANTINE', 'denied', 'failure'],
    ['log', null, 'unknown'],
  ])('%s is of that type and outcome in ECS', (word, type, outcome) => {
    const types = ['allowed', 'denied'].filter((one) => one === type);
    for (const [mapping, category] of [
      [flow({ action: 'action' }), 'network'],
      [
        { ...flow({ action: 'action', 'http_request.user_agent': 'ua' }), class: 'http_activity' },
        'web',
      ],
      [
        { class: 'detection_finding', fields: { 'finding_info.title': 't', action: 'action' } },
        'intrusion_detection',
      ],
    ] as const) {
      const ocsf = ocsfOf({ client_ip: '10.1.1.1', ua: 'curl', t: 'x', action: word }, mapping);
      const { event } = JSON.parse(encoded('ecs', asEvent(ocsf)));
      expect(event.category).toContain(category);
      expect(event.type.filter((one: string) => /allowed|denied/.test(one))).toEqual(types);
      expect(event.outcome).toBe(category === 'intrusion_detection' ? undefined : outcome);
    }
  });

  test('CEF, LEEF, GELF and UDM have it too', () => {
    const event = asEvent(flowOf('drop'));

    expect(encoded('cef', event)).toMatch(/ act=Dropped .* outcome=failure/);
    expect(encoded('leef', event)).toMatch(/\^act=Dropped\^.*\^outcome=failure/);
    expect(JSON.parse(encoded('gelf', event))).toMatchObject({
      _disposition: 'Dropped',
      _action_id: 2,
    });
    const { udm } = JSON.parse(String(udmForm.encode(event)));
    expect(udm.securityResult[0]).toMatchObject({ action: ['BLOCK'], actionDetails: 'Dropped' });
  });

  test('the content of a changed firewall rule is its configuration', () => {
    const rule = { id: 'r-1', name: 'dns', action: 'deny', source: 'any' };
    const change = {
      ...{ change: 'updated', entity_kind: 'rule', entity_id: 'r-1', changed: ['action'] },
      ...{ before: { ...rule, action: 'allow' }, after: rule, observed_at: '2026-01-01T00:00:00Z' },
    };
    const mapping: Mapping = {
      class: 'entity_management',
      fields: { 'entity.name': 'name', action: 'action', disposition: 'action' },
    };
    for (const own of [undefined, mapping]) {
      const reading = { time: [], id: null, ...(own && { mapping: own }) };
      const ocsf = compileNormaliser('drift', reading)(change, aUid, aContext('drift'));
      const event = asEvent(ocsf);
      expect([ocsf.action_id, ocsf.disposition_id]).toEqual([undefined, undefined]);
      expect(JSON.parse(encoded('ecs', event)).event).toMatchObject({
        type: ['change'],
        outcome: 'unknown',
      });
      expect(encoded('cef', event)).not.toMatch(/ act=(deny|Denied|Blocked)/);
    }
  });

  test.skipIf(!hasShared)(`every word makes a valid event${sharedNote}`, async () => {
    const check = await loadCheck();
    for (const [word] of every) {
      for (const attribute of ['action', 'disposition_id']) {
        expect(check(flowOf(word, { [attribute]: 'action' }))).toEqual({
          errors: [],
          warnings: [],
        });
      }
    }
  });
});
