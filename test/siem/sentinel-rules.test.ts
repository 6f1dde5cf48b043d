// The queries of Microsoft Sentinel over the rows that the sink writes: each rule finds its planted attacks among
// thousands of events and nothing else, and each ASIM parser has the words of its schema. The queries run in the tests' own part of
// Kusto (kql.ts); Microsoft's parser checks them in sentinel.test.ts.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { columns, rowForm } from '../../connectors/sinks/sentinel/rows.ts';
import { kqlFunctions } from '../../deploy/siem/sentinel/build.ts';
import { workbookPanels } from '../../deploy/siem/sentinel/workbook.ts';
import type { Event } from '../../src/contracts/event.ts';
import { makeFormat } from '../formats/make-format.ts';
import { everyKind } from './every-kind.ts';
import { type KqlDatabase, type Row, runKql } from './kql.ts';
import { fewerEvents, type JudgedEvent, sigmaJson, sigmaRules } from './planted-events.ts';

const functions = kqlFunctions();
const form = rowForm(makeFormat('json'), 'dead_letter');
const arm = JSON.parse(
  readFileSync(new URL('../../deploy/siem/sentinel/azuredeploy.json', import.meta.url), 'utf8'),
);
const queryOf = (id: string): string =>
  arm.resources.find(({ name }: { name: string }) => name.includes(id)).properties.query;

/** The row of an event as the table has it: each column is there, and times are numbers. */
function rowOf(event: Event): Row {
  const sent = JSON.parse(String(form.encode(event)));
  const empty = { string: '', dynamic: null, int: null, datetime: null };
  const values = Object.entries(columns).map(([name, type]) => {
    const value = sent[name] ?? empty[type];
    return [name, type === 'datetime' && value !== null ? Date.parse(value) : value];
  });
  return Object.fromEntries(values);
}

const databaseOf = (events: readonly Event[]): KqlDatabase => {
  const rows = events.map(rowOf);
  // Each row twice: the service removes no repeats.
  return { tables: { Sluice_CL: [...rows, ...rows] }, functions };
};

describe('among thousands of events', () => {
  let events: readonly JudgedEvent[];
  let database: KqlDatabase;

  beforeAll(async () => {
    events = await fewerEvents();
    database = databaseOf(events.map(({ event }) => event));
  }, 120_000);

  test.each(sigmaRules)('%s finds its attacks and nothing else', (name) => {
    const query = queryOf(sigmaJson('converted/kusto.json').rules[name].id);

    const found = runKql(query, database).map(({ EventUid }) => EventUid);
    const planted = events.filter(({ rule }) => rule === name).map(({ event }) => event.uid);

    expect(planted.length).toBeGreaterThan(0);
    expect(found.toSorted()).toEqual(planted.toSorted());
  });

  test.each([
    ['sluice_agent_without_approval', ({ RunId }: Row) => RunId],
    [
      'sluice_logins_failed_then_success',
      ({ ActorUsername, SrcIpAddr }: Row) => `${ActorUsername} ${SrcIpAddr}`,
    ],
  ])('%s finds its groups and nothing else', (name, groupOf) => {
    const found = runKql(queryOf(sigmaJson(`written/${name}.json`).id), database).map(groupOf);
    const planted = events.filter(({ rule }) => rule === name).map(({ group }) => group);

    expect(planted.length).toBeGreaterThan(0);
    expect([...new Set(found)].toSorted()).toEqual([...new Set(planted)].toSorted());
  });
});

describe('over events of every kind', () => {
  let events: readonly Event[];
  let database: KqlDatabase;

  beforeAll(async () => {
    events = await everyKind();
    database = databaseOf(events);
  });

  const severity = { EventSeverity: ['High', 'Informational', 'Low', 'Medium'] };
  test.each([
    [
      'AuditEvent',
      [3001, 3004, 6003],
      {
        ...severity,
        EventType: ['Create', 'Delete', 'Disable', 'Enable', 'Other', 'Read', 'Set'],
        EventResult: ['Failure', 'NA', 'Partial', 'Success'],
        ObjectType: ['Configuration Atom', 'Other', 'Policy Rule'],
        ActorUserType: ['', 'Admin', 'Application', 'Regular'],
      },
    ],
    [
      'Authentication',
      [3002],
      {
        ...severity,
        EventType: ['Logoff', 'Logon'],
        EventResult: ['Failure', 'NA', 'Success'],
        EventResultDetails: ['', 'Incorrect password', 'Other', 'Session expired', 'User locked'],
      },
    ],
    [
      'NetworkSession',
      [4001],
      {
        ...severity,
        DvcAction: ['Allow', 'Deny', 'Drop', 'Reset'],
        EventResult: ['Failure', 'Success'],
        NetworkProtocol: ['ICMP', 'TCP', 'UDP'],
      },
    ],
    ['AlertEvent', [2004], { ...severity, AlertStatus: ['Active', 'Closed'] }],
  ])('%s has each of its events once, with the words of the schema', (name, classes, words) => {
    const rows = runKql(`vim${name}Sluice()`, database);

    const expected = events.filter(({ ocsf }) => classes.includes(Number(ocsf.class_uid)));
    expect(rows.map(({ EventUid }) => EventUid).toSorted()).toEqual(
      expected.map(({ uid }) => uid).toSorted(),
    );
    for (const [column, allowed] of Object.entries(words)) {
      const found = new Set(rows.map((row) => row[column]));
      expect(allowed, column).toEqual(expect.arrayContaining([...found]));
      expect(found.size, column).toBeGreaterThan(0);
    }
    expect(runKql(`ASim${name}Sluice(disabled=true)`, database)).toEqual([]);
  });

  test.each([
    ['vimAuditEventSluice(eventtype_in=dynamic(["Delete"]))', 'EventType', 'Delete'],
    ['vimAuditEventSluice(eventresult="Failure")', 'EventResult', 'Failure'],
    ['vimAuthenticationSluice(eventresult="Success")', 'EventResult', 'Success'],
    ['vimNetworkSessionSluice(dstportnumber=443)', 'DstPortNumber', 443],
    ['vimNetworkSessionSluice(dvcaction=dynamic(["Deny"]))', 'DvcAction', 'Deny'],
    ['vimAlertEventSluice(eventseverity_has_any=dynamic(["High"]))', 'EventSeverity', 'High'],
  ])('%s filters', (query, column, value) => {
    const rows = runKql(query, database);

    expect(new Set(rows.map((row) => row[column]))).toEqual(new Set([value]));
    expect(rows.length).toBeLessThan(runKql(query.replace(/\(.*/, '()'), database).length);
  });

  test('a filter on a property that the events lack finds no event', () => {
    expect(
      runKql('vimAlertEventSluice(attacktactics_has_any=dynamic(["Impact"]))', database),
    ).toEqual([]);
  });

  test.each(workbookPanels.map(({ title, query }) => [title, query]))(
    'the panel "%s" has values',
    (_, query) => {
      const rows = runKql(query.replace(/\n\| top .*/, ''), database);

      expect(rows.length).toBeGreaterThan(0);
      const column = /by (?:bin\([^)]*\), )?(\w+)/.exec(query)?.[1] ?? '';
      expect(rows.some((row) => row[column] !== '' && row[column] !== null)).toBe(true);
    },
  );
});
