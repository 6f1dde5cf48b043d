// The content for Microsoft Sentinel: its files are those of the present sources; the template is whole, and has the columns of
// the sink; each query passes Microsoft's own parser of Kusto; each column and each path into an event exists in the events of
// the tests. No Azure was available.

import { readdirSync, readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { beforeAll, describe, expect, test } from 'vitest';
import { columns } from '../../connectors/sinks/sentinel/rows.ts';
import { asimSchemas } from '../../deploy/siem/sentinel/asim.ts';
import { kqlFunctions, sentinelFiles } from '../../deploy/siem/sentinel/build.ts';
import { workbookPanels } from '../../deploy/siem/sentinel/workbook.ts';
import { type CheckedQuery, kustoParser } from '../support/kusto.ts';
import { everyKind } from './every-kind.ts';
import { sigmaJson, sigmaRules } from './planted-events.ts';
import { templateSchema } from './template-schema.ts';

const dir = new URL('../../deploy/siem/sentinel/', import.meta.url);
const stored = (path: string) => readFileSync(new URL(path, dir), 'utf8');
const arm = JSON.parse(stored('azuredeploy.json'));
const resourcesOf = (type: string) =>
  arm.resources.filter((one: { type: string }) => one.type.endsWith(type));

test('the files are those of the present sources', () => {
  const files = sentinelFiles();

  expect(
    readdirSync(new URL('parsers/', dir))
      .map((file) => `parsers/${file}`)
      .toSorted(),
  ).toEqual([...files.keys()].filter((path) => path.startsWith('parsers/')).toSorted());
  for (const [path, text] of files) {
    const hint = 'run deploy/siem/sentinel/build.ts';
    if (path.endsWith('.json')) expect(JSON.parse(stored(path)), hint).toEqual(JSON.parse(text));
    else expect(stored(path), hint).toBe(text);
  }
});

describe('the template', () => {
  test('has the shape of each resource', () => {
    const validate = new Ajv({ allErrors: true, strict: false }).compile(templateSchema);

    validate(arm);

    expect(validate.errors ?? []).toEqual([]);
  });

  test('declares the columns of the sink in the table and in the stream', () => {
    const [table] = resourcesOf('/workspaces/tables');
    const [rule] = resourcesOf('/dataCollectionRules');
    const expected = Object.entries(columns).map(([name, type]) => ({ name, type }));

    expect(table.properties.schema.columns).toEqual(expected);
    expect(rule.properties.streamDeclarations['Custom-Sluice'].columns).toEqual(expected);
    expect(rule.properties.dataFlows).toEqual([
      expect.objectContaining({ streams: ['Custom-Sluice'], outputStream: 'Custom-Sluice_CL' }),
    ]);
    expect(table.properties.schema.name).toBe('Sluice_CL');
  });

  test('uses declared parameters only, and each of them', () => {
    const used = new Set(
      [...JSON.stringify(arm).matchAll(/parameters\('(\w+)'\)/g)].map(([, name]) => name),
    );

    expect([...used].toSorted()).toEqual(Object.keys(arm.parameters).toSorted());
  });

  test('has each resource once, and depends on resources that it has', () => {
    const ids = arm.resources.map(
      (one: { type: string; name: string }) => `${one.type} ${one.name}`,
    );
    const names = arm.resources.map(({ name }: { name: string }) => name).join(' ');

    expect(new Set(ids).size).toBe(ids.length);
    for (const { dependsOn = [] } of arm.resources)
      for (const id of dependsOn) {
        const last = /'(\w+)'\)+\]$/.exec(id)?.[1] ?? '';
        expect(names, id).toContain(last);
      }
  });

  test('has every rule, disabled, by its id', () => {
    const rules = resourcesOf('/alertRules');
    const expected = [
      ...sigmaRules.map((name) => sigmaJson('converted/kusto.json').rules[name].id),
      ...readdirSync(new URL('../sigma/written/', dir)).map(
        (file) => sigmaJson(`written/${file}`).id,
      ),
    ];

    expect(
      rules.map(({ name }: { name: string }) => /([0-9a-f-]{36})'\)\]$/.exec(name)?.[1]).toSorted(),
    ).toEqual(expected.toSorted());
    for (const { properties } of rules) expect(properties.enabled).toBe(false);
  });

  test('replaces a function that may exist only on request', () => {
    for (const { name, condition } of resourcesOf('/savedSearches'))
      if (/Custom'/.test(name)) expect(condition).toBe("[parameters('createCustomUnions')]");
      else expect(condition).toBeUndefined();
  });
});

describe('in the parser of Kusto', () => {
  let check: (query: string) => CheckedQuery;
  const functions = kqlFunctions();

  beforeAll(async () => {
    check = await kustoParser({ tables: { Sluice_CL: columns }, functions });
  }, 120_000);

  test('an unknown column and an unknown function are found', () => {
    expect(check('SluiceEvents | where EventCodes == "x"').faults).toHaveLength(1);
    expect(check('vimAuditEventSluice(eventtypes_in=dynamic([]))').faults.length).toBeGreaterThan(
      0,
    );
  });

  test.each(functions.map(({ name }) => name))('the function %s is right', (name) => {
    const one = functions.find((other) => other.name === name);

    // The body of a declared function is analysed only where the query has it.
    const inline = check(`let f = (${one?.parameters}) {\n${one?.body}\n};\nf()`);

    expect(inline.faults).toEqual([]);
    expect(check(`${name}()`).columns.size).toBeGreaterThan(10);
  });

  test.each(asimSchemas.map(({ name }) => name))(
    '%s has the columns that its schema needs',
    (name) => {
      const filtering = check(`vim${name}Sluice()`).columns;
      const plain = check(`ASim${name}Sluice()`).columns;

      expect([...filtering]).toEqual([...plain]);
      for (const [column, type] of Object.entries({ ...commonColumns, ...neededColumns[name] }))
        expect(filtering.get(column), column).toBe(type);
      expect([...filtering.keys()]).not.toContain('Event');
    },
  );

  test.each([
    ...resourcesOf('/alertRules').map(
      (one: { properties: { displayName: string; query: string } }) => [
        one.properties.displayName,
        one.properties.query,
      ],
    ),
    ...workbookPanels.map(({ title, query }) => [title, query]),
  ])('the query of %s is right', (_, query) => {
    expect(check(query).faults).toEqual([]);
  });

  test('the entities of a rule are columns of its result', () => {
    for (const { properties } of resourcesOf('/alertRules'))
      for (const { fieldMappings } of properties.entityMappings ?? [])
        for (const { columnName } of fieldMappings)
          expect([...check(properties.query).columns.keys()]).toContain(columnName);
  });

  test('the custom unions pass each parameter that they have', () => {
    for (const { properties } of resourcesOf('/savedSearches')) {
      const { functionParameters = '', query, displayName } = properties;
      const inline = check(`let f = (${functionParameters}) {\n${query}\n};\nf()`);
      expect(inline.faults, displayName).toEqual([]);
    }
  });
});

test('each path into an event is in an event of the tests', async () => {
  const known = new Set<string>();
  for (const { ocsf } of await everyKind()) addPaths(ocsf, '', known);
  const texts = [
    ...kqlFunctions().map(({ body }) => body),
    ...resourcesOf('/alertRules').map(
      (one: { properties: { query: string } }) => one.properties.query,
    ),
    ...workbookPanels.map(({ query }) => query),
  ].join('\n');
  // A name that is a keyword of Kusto is in brackets.
  const paths = [...texts.matchAll(/\bEvent\.([\w.[\]']+)/g)].map(([, path = '']) =>
    path.replace(/\['(\w+)'\]/g, '.$1').replace(/\[0\]/g, '[]'),
  );

  expect(paths.length).toBeGreaterThan(40);
  // OCSF has it; the records of the tests lack it.
  for (const path of paths) if (path !== 'status_detail') expect([...known], path).toContain(path);
});

function addPaths(value: unknown, path: string, into: Set<string>): void {
  if (path !== '') into.add(path);
  if (Array.isArray(value)) for (const one of value) addPaths(one, `${path}[]`, into);
  else if (typeof value === 'object' && value !== null)
    for (const [name, one] of Object.entries(value))
      addPaths(one, path === '' ? name : `${path}.${name}`, into);
}

const commonColumns = {
  TimeGenerated: 'datetime',
  EventCount: 'int',
  EventStartTime: 'datetime',
  EventEndTime: 'datetime',
  EventType: 'string',
  EventProduct: 'string',
  EventVendor: 'string',
  EventSchema: 'string',
  EventSchemaVersion: 'string',
  EventSeverity: 'string',
  Dvc: 'string',
};
const neededColumns: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  AuditEvent: {
    EventResult: 'string',
    Operation: 'string',
    Object: 'string',
    ObjectType: 'string',
    NewValue: 'string',
    OldValue: 'string',
    ActorUsername: 'string',
    SrcIpAddr: 'string',
    SrcPortNumber: 'int',
  },
  Authentication: { EventResult: 'string', TargetUsername: 'string', SrcIpAddr: 'string' },
  NetworkSession: {
    EventResult: 'string',
    DvcAction: 'string',
    SrcIpAddr: 'string',
    DstIpAddr: 'string',
    DstPortNumber: 'int',
    SrcBytes: 'long',
    NetworkProtocol: 'string',
  },
  AlertEvent: { EventUid: 'string', AlertId: 'string', AlertName: 'string', AlertStatus: 'string' },
};
