// The content for QRadar, for events as LEEF (log source type Universal LEEF) or CEF (Universal CEF): a log source extension
// that fills QRadar's own properties, custom properties with an expression for each format, event mappings, and detections as
// AQL conditions. Invariant: each key that an expression names is a key that sluice writes; a test runs all parts over events.

import {
  type Atom,
  changedName,
  type Language,
  patternOf,
  type Rule,
  sigmaRules,
  written,
} from '../rule-conditions.ts';

/** A key of a line in each format; null: the header field of the event id. */
interface Keys {
  readonly leef: string | null;
  readonly cef: string | null;
}

/** A custom property; several sources are tried in order. */
interface Property {
  readonly name: string;
  readonly type: 'AlphaNumeric' | 'Numeric';
  readonly keys: readonly Keys[];
  /** The name of a list in `sluiceUnmapped`, which is JSON in both formats. */
  readonly list?: string;
}

/** Text up to the next pair. CEF escapes `=` in values, so only a key has one. */
const leefValue = (key: string) => `[|^]${key}=([^^]*)`;
const cefValue = (key: string) => `(?:^|[| ])${key}=(.*?)(?= [A-Za-z0-9]+=|$)`;
const leefEventId = 'LEEF:2\\.0\\|[^|]*\\|[^|]*\\|[^|]*\\|([^|]*)\\|';
const cefEventId =
  'CEF:0\\|(?:\\\\.|[^|\\\\])*\\|(?:\\\\.|[^|\\\\])*\\|(?:\\\\.|[^|\\\\])*\\|((?:\\\\.|[^|\\\\])*)\\|';

const same = (key: string): Keys => ({ leef: key, cef: key });

function property(name: string, ...keys: readonly Keys[]): Property {
  return { name: `sluice ${name}`, type: 'AlphaNumeric', keys };
}

/** The new value of a field of the changed object, as audit records and as collections have it. */
function newValue(name: string): Property {
  const word = name.charAt(0).toUpperCase() + name.slice(1);
  return {
    ...property(
      `New ${word}`,
      same(`sluiceResourcesDataAfter${word}`),
      same(`sluiceEntityResultData${word}`),
    ),
    list: `(?:resources\\.data\\.after|entity_result\\.data)\\.${name}`,
  };
}

const ofRules = {
  'metadata.event_code': property('Event Code', { leef: null, cef: null }),
  status: property('Outcome', same('outcome')),
  'resources.type': property('Object Type', { leef: 'resourceType', cef: 'cs3' }),
  'resources.name': property('Object', { leef: 'resource', cef: 'cs4' }),
  'unmapped.conflicts': { ...property('Conflicts', same('sluiceConflicts')), type: 'Numeric' },
  'unmapped.approval.state': property('Approval', same('sluiceApprovalState')),
} as const satisfies Readonly<Record<string, Property>>;

const newValues = [
  'role',
  'enabled',
  'action',
  'state',
  'url',
  'source',
  'destination',
  'service',
  'services',
];

/** All custom properties. */
const properties: readonly Property[] = [
  property('Uid', { leef: 'uid', cef: 'cs6' }),
  property('Class', same('cat')),
  property('Action', same('act')),
  property('Company', { leef: 'tenant', cef: 'cs2' }),
  property('Actor Id', same('suid')),
  property('Object Id', { leef: 'resourceUid', cef: 'cs5' }),
  property('Agent Run', same('sluiceRunRunId')),
  property('Severity', same('sluiceSeverity')),
  property('Message', same('msg')),
  property('Truncated', same('sluiceTruncated')),
  ...Object.values(ofRules),
  ...newValues.map(newValue),
];

interface Expression {
  readonly format: 'leef' | 'cef' | 'any';
  /** For an expression of the type LEEF or CEF; undefined: only the regular expression can be used. */
  readonly key?: string;
  readonly regex: string;
  readonly captureGroup: 1;
}

function expressionsOf({ keys, list }: Property): readonly Expression[] {
  const pairs = keys.flatMap(({ leef, cef }): readonly Expression[] => [
    {
      format: 'leef',
      ...(leef !== null && { key: leef }),
      regex: leef === null ? leefEventId : leefValue(leef),
      captureGroup: 1,
    },
    {
      format: 'cef',
      ...(cef !== null && { key: cef }),
      regex: cef === null ? cefEventId : cefValue(cef),
      captureGroup: 1,
    },
  ]);
  if (list === undefined) return pairs;
  return [...pairs, { format: 'any', regex: `"${list}":\\["?([^"\\],]*)`, captureGroup: 1 }];
}

/** QRadar's own properties in a log source extension, by the name of the matcher field. */
const ownFields: Readonly<Record<string, Keys>> = {
  EventName: { leef: null, cef: null },
  EventCategory: same('cat'),
  SourceIp: same('src'),
  SourcePort: { leef: 'srcPort', cef: 'spt' },
  SourceMAC: { leef: 'srcMAC', cef: 'smac' },
  DestinationIp: same('dst'),
  DestinationPort: { leef: 'dstPort', cef: 'dpt' },
  DestinationMAC: { leef: 'dstMAC', cef: 'dmac' },
  Protocol: same('proto'),
  UserName: { leef: 'usrName', cef: 'suser' },
};

/** The log source extension. A pattern that finds nothing leaves the value of QRadar's own parser. */
function extensionXml(): string {
  const patterns: string[] = [];
  const matchers: string[] = [];
  for (const [field, { leef, cef }] of Object.entries(ownFields)) {
    const regexes = [
      leef === null ? leefEventId : leefValue(leef),
      cef === null ? cefEventId : cefValue(cef),
    ];
    for (const [at, regex] of regexes.entries()) {
      const id = `${field}_${at === 0 ? 'LEEF' : 'CEF'}`;
      patterns.push(`  <pattern id="${id}" xmlns=""><![CDATA[${regex}]]></pattern>`);
      matchers.push(
        `    <matcher field="${field}" order="${at + 1}" pattern-id="${id}" capture-group="1"/>`,
      );
    }
  }
  return `<?xml version="1.0" encoding="UTF-8"?>
<device-extension xmlns="event_parsing/device_extension">
${patterns.join('\n')}
  <match-group order="1" description="events of sluice as LEEF or CEF" xmlns="">
${matchers.join('\n')}
  </match-group>
</device-extension>
`;
}

const language: Language = {
  and: 'AND',
  or: 'OR',
  not: (text) => (text.startsWith('(') ? `NOT ${text}` : `NOT (${text})`),
  atom,
};

function atom(one: Atom): string {
  const name = changedName(one.field)?.name;
  const known =
    name !== undefined
      ? newValue(name)
      : (ofRules as Readonly<Record<string, Property>>)[one.field];
  if (known === undefined || !properties.some(({ name: of }) => of === known.name))
    throw new Error(`there is no custom property for ${one.field}`);
  if (one.comparison === 'gte') return `"${known.name}" >= ${Number(one.values[0])}`;
  // IMATCHES compares the whole value, without regard to case.
  const inner = patternOf(one).replace(/^\^|\$$/g, '');
  const before = one.comparison === 'contains' || one.comparison === 'endswith' ? '.*' : '';
  const after = one.comparison === 'contains' || one.comparison === 'startswith' ? '.*' : '';
  return `"${known.name}" IMATCHES '${before}${inner}${after}'`;
}

/** The condition of a rule in AQL. */
function aqlCondition({ condition }: Rule): string {
  return written(condition, language);
}

const searchStart =
  `SELECT DATEFORMAT(devicetime, 'yyyy-MM-dd HH:mm:ss') AS "Time", username, sourceip, "sluice Event Code", "sluice Object", "sluice Uid"\n` +
  'FROM events\n';

/** AQL groups events, and cannot express their order. */
const failedLogins = `SELECT username, sourceip, COUNT(*) AS "Failures"
FROM events
WHERE "sluice Class" IMATCHES 'Authentication' AND "sluice Outcome" IMATCHES 'failure'
GROUP BY username, sourceip
HAVING "Failures" >= 10
LAST 10 MINUTES`;

/** QRadar's categories by OCSF class; null: choose one of the high-level category. */
const categories: readonly (readonly [cat: string, high: string, low: string | null])[] = [
  ['API Activity', 'Audit', 'General Audit Event (19001)'],
  ['Entity Management', 'Audit', 'General Audit Event (19001)'],
  ['Authentication', 'Authentication', null],
  ['Network Activity', 'Access', 'Misc Network Communication Event (4005)'],
  ['HTTP Activity', 'Access', 'Misc Network Communication Event (4005)'],
  ['DNS Activity', 'Access', 'Misc Network Communication Event (4005)'],
  ['Detection Finding', 'Suspicious Activity', null],
  ['Application Lifecycle', 'System', null],
];

function mappingsCsv(): string {
  const rows = categories.map(([cat, high, low]) => `"${cat}","${high}","${low ?? ''}"`);
  return `event category (cat),high-level category,low-level category\n${rows.join('\n')}\n`;
}

/** The files by name. */
export function qradarFiles(): ReadonlyMap<string, string> {
  const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;
  const custom = properties.map((one) => ({
    name: one.name,
    type: one.type,
    expressions: expressionsOf(one),
  }));
  const rules = sigmaRules().map((rule) => ({
    name: rule.name,
    title: rule.title,
    level: rule.level,
    falsepositives: rule.falsepositives,
    condition: aqlCondition(rule),
  }));
  const searches = sigmaRules().map(
    (rule) =>
      `-- ${rule.title} (${rule.level})\n${searchStart}WHERE ${aqlCondition(rule)}\nLAST 24 HOURS\n`,
  );
  return new Map([
    ['qradar/log-source-extension.xml', extensionXml()],
    ['qradar/custom-properties.json', json(custom)],
    ['qradar/event-mappings.csv', mappingsCsv()],
    ['qradar/rules.json', json(rules)],
    [
      'qradar/searches.aql',
      [...searches, `-- Failed logins of one person (high)\n${failedLogins}\n`].join('\n'),
    ],
  ]);
}
