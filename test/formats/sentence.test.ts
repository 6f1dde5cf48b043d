// Every event has one sentence, in every format and sink whose readers look at one text: who did what to what, from
// where, and with what result.

import { describe, expect, test } from 'vitest';
import { datadogForm } from '../../connectors/sinks/datadog/log.ts';
import { udmForm } from '../../connectors/sinks/google-secops/udm.ts';
import { rowForm } from '../../connectors/sinks/sentinel/rows.ts';
import type { Event, RecordKind } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';
import { compileNormaliser, type Mapping } from '../../src/normalise/normalise.ts';
import { auditRecord } from '../../src/sandbox/audit-records.ts';
import { aContext, aUid } from '../normalise/ocsf.ts';
import { anEvent } from '../support/an-event.ts';
import { makeFormat } from './make-format.ts';

function eventOf(record: Json, kind: RecordKind = 'audit', mapping?: Mapping): Event {
  const settings = { time: ['timestamp'], id: 'id', ...(mapping && { mapping }) };
  const ocsf = compileNormaliser(kind, settings)(record, aUid, aContext(kind));
  return { ...anEvent({ kind }), ocsf };
}

const udmOf = (event: Event) => JSON.parse(String(udmForm.encode(event))).udm;
const rowOf = (event: Event) =>
  JSON.parse(String(rowForm(makeFormat('json'), 'dead_letter').encode(event)));

/** What each receiver shows of an event at a glance. */
function shown(event: Event): Readonly<Record<string, string>> {
  const json = (type: string, settings = {}) =>
    JSON.parse(String(makeFormat(type, settings).encode(event)));
  const datadog = datadogForm({ ddsource: 'sluice' }, makeFormat('json'));
  const text = String(makeFormat('syslog', { message: 'text', hostname: 'h' }).encode(event));
  const gelf = json('gelf');
  const otel = json('otel', { encoding: 'json', body: 'message' });
  return {
    syslog: text.replace(/^.*?\] (?:\ufeff)?|\suid=\w+$/g, ''),
    ecs: json('ecs').message,
    gelf: gelf.full_message ?? gelf.short_message,
    otel: otel.resourceLogs[0].scopeLogs[0].logRecords[0].body.stringValue,
    datadog: JSON.parse(String(datadog.encode(event))).message,
    sentinel: rowOf(event).EventMessage,
    secops: udmOf(event).metadata.description,
  };
}

function expectShown(event: Event, sentence: string): void {
  for (const [receiver, text] of Object.entries(shown(event))) {
    expect([receiver, text]).toEqual([receiver, sentence]);
  }
}

const agent = {
  ...{ id: 'e1', action: 'agent.action.executed', source_ip: '192.0.2.7', outcome: 'success' },
  actor: { type: 'agent', id: 'ag-1', name: 'triage-agent' },
  resource: { type: 'agent_run', id: 'run_1', name: 'tier 1 analyst' },
};

describe('the sentence of', () => {
  test('an AI agent’s action names the agent', () => {
    const event = eventOf({ ...agent, summary: 'isolate host at Zurich' });
    const expected =
      'API Activity: agent.action.executed by triage-agent from 192.0.2.7 on tier 1 analyst, Success - isolate host at Zurich';

    expectShown(event, expected);
    expectShown(eventOf(agent), expected.replace(/ - .*/, ''));
    expect(rowOf(event).ActorUsername).toBe('triage-agent');
    expect(udmOf(event).principal).toMatchObject({
      user: { userid: 'ag-1', userDisplayName: 'triage-agent' },
      application: 'triage-agent',
      ip: ['192.0.2.7'],
    });
  });

  test.each([
    ['session.login', 'USER_LOGIN'],
    ['session.logout', 'USER_LOGOUT'],
  ])('a %s names the user who logs in', (action, type) => {
    const actor = { type: 'admin', id: 'usr-1', name: 'Anna' };
    const event = eventOf({ action, actor, source_ip: '192.0.2.7', outcome: 'failure' });

    expectShown(event, `Authentication: ${action} by Anna from 192.0.2.7, Failure`);
    expect(rowOf(event).ActorUsername).toBe('Anna');
    expect(udmOf(event)).toMatchObject({
      metadata: { eventType: type },
      principal: { user: { userid: 'usr-1' }, ip: ['192.0.2.7'] },
      target: { user: { userid: 'usr-1' } },
    });
  });

  test('a finding names its subject, and the decision', () => {
    const mapping: Mapping = {
      class: 'detection_finding',
      fields: {
        'finding_info.title': 'signature',
        disposition: 'action',
        'evidences.src_endpoint.ip': 'client_ip',
        'evidences.dst_endpoint.ip': 'server_ip',
      },
    };
    const record = { signature: 'ET SCAN Nmap', action: 'drop', client_ip: '10.1.1.1' };
    const event = eventOf({ ...record, server_ip: '203.0.113.9' }, 'log', mapping);

    expectShown(event, 'Detection Finding: ET SCAN Nmap, Dropped from 10.1.1.1 to 203.0.113.9');
  });

  test('flows, requests and questions names both ends', () => {
    const ends = { 'src_endpoint.ip': 'a', 'actor.user.name': 'user' };
    const of = (mapping: Mapping) =>
      shown(
        eventOf(
          {
            a: '10.1.1.1',
            b: '203.0.113.9',
            act: 'deny',
            url: 'https://x.example/y',
            q: 'x.example',
            user: 'anna',
          },
          'log',
          mapping,
        ),
      ).ecs;
    const action = 'act';

    expect(
      of({ class: 'network_activity', fields: { ...ends, 'dst_endpoint.ip': 'b', action } }),
    ).toBe('Network Activity: Blocked by anna from 10.1.1.1 to 203.0.113.9');
    expect(
      of({
        class: 'http_activity',
        fields: { ...ends, 'http_request.url.url_string': 'url', action },
      }),
    ).toBe('HTTP Activity: Blocked by anna from 10.1.1.1 on https://x.example/y');
    expect(of({ class: 'dns_activity', fields: { ...ends, 'query.hostname': 'q' } })).toBe(
      'DNS Activity: Query by anna from 10.1.1.1 on x.example',
    );
  });

  test('an account’s change names the account as the changed object', () => {
    const mapping: Mapping = {
      class: 'account_change',
      fields: { 'user.name': 'account', 'actor.user.name': 'by', activity_name: 'what' },
    };

    expect(shown(eventOf({ account: 'bob', by: 'anna', what: 'Lock' }, 'log', mapping)).ecs).toBe(
      'Account Change: Lock by anna on bob',
    );
    expect(shown(eventOf({ account: 'bob', what: 'Lock' }, 'log', mapping)).ecs).toBe(
      'Account Change: Lock on bob',
    );
  });

  test('each of the sandbox’s audit events names the actor, and has the record’s own message', () => {
    for (let index = 0; index < 400; index += 1) {
      const place = { seed: 7, index, id: `"e${index}"`, timeMs: 1_790_000_000_000 + index };
      const record = JSON.parse(auditRecord(place));
      const event = eventOf(record);
      const { name, email, id } = record.actor ?? {};
      for (const [receiver, text] of Object.entries(shown(event))) {
        if (name ?? email ?? id)
          expect([receiver, text]).toEqual([
            receiver,
            expect.stringContaining(` by ${name ?? email ?? id}`),
          ]);
        expect([receiver, text.length > 10]).toEqual([receiver, true]);
        const { message } = event.ocsf;
        if (message !== undefined && /^[\x20-\x7e]*$/.test(message))
          expect([receiver, text]).toEqual([receiver, expect.stringContaining(message)]);
      }
      if (name) expect(rowOf(event).ActorUsername).toBe(name);
    }
  });
});
