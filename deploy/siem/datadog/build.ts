// The content for Datadog: a log pipeline, the facets to create, and a monitor for each detection. The sink `datadog` sends the
// facts that rules search as `sluice.*`. Datadog compares attributes with regard to case, so the pipeline writes the code of
// the event in lower case to `sluice.event_code`.

import {
  type Atom,
  changedName,
  type Language,
  type Rule,
  sigmaRules,
  written,
} from '../rule-conditions.ts';

/** The attribute of a log for a field of a rule. */
const attributes: Readonly<Record<string, string>> = {
  'metadata.event_code': '@sluice.event_code',
  status: '@ocsf.status',
  'resources.type': '@sluice.target_type',
  'resources.name': '@sluice.target_name',
  'unmapped.conflicts': '@sluice.conflicts',
  'unmapped.approval.state': '@sluice.approval',
};

const language: Language = { and: 'AND', or: 'OR', not: (text) => `-${text}`, atom };

function atom(one: Atom, isNegated: boolean): string {
  const changed = changedName(one.field);
  const attribute = changed
    ? `@sluice.${changed.isState ? 'state' : 'change'}`
    : attributes[one.field];
  if (attribute === undefined) throw new Error(`there is no attribute for ${one.field}`);
  if (one.comparison === 'gte') return `${attribute}:>=${Number(one.values[0])}`;
  const before = one.comparison === 'contains' || one.comparison === 'endswith' ? '*' : '';
  const after = one.comparison === 'contains' || one.comparison === 'startswith' ? '*' : '';
  const values = one.values.map(
    (value) => before + escaped(changed ? `${changed.name}=${value}` : value) + after,
  );
  // A list that was cut may hide the entry.
  if (changed && !isNegated) values.push('…');
  return values.length === 1
    ? `${attribute}:${values[0]}`
    : `${attribute}:(${values.join(' OR ')})`;
}

/** Characters with a meaning in a query. */
function escaped(text: string): string {
  return text.replace(/[\s\\+\-=&|><!(){}[\]^"~*?:/]/g, '\\$&');
}

/** The query of a rule. */
function datadogQuery({ condition }: Rule): string {
  return `source:sluice ${written(condition, language)}`;
}

const pipeline = {
  name: 'sluice',
  is_enabled: true,
  filter: { query: 'source:sluice' },
  processors: [
    {
      type: 'grok-parser',
      name: 'code of the event in lower case',
      is_enabled: true,
      source: 'ocsf.metadata.event_code',
      samples: ['dlp.rule.update'],
      grok: { match_rules: 'code %{data:sluice.event_code:lowercase}', support_rules: '' },
    },
    remapper('ocsf.actor.user.name', 'usr.name'),
    remapper('ocsf.actor.user.uid', 'usr.id'),
    remapper('ocsf.actor.user.email_addr', 'usr.email'),
    remapper('ocsf.src_endpoint.ip', 'network.client.ip'),
    remapper('ocsf.dst_endpoint.ip', 'network.destination.ip'),
    remapper('ocsf.metadata.event_code', 'evt.name'),
  ],
};

/** Copies an attribute to the name of Datadog's standard attribute. */
function remapper(source: string, target: string) {
  return {
    type: 'attribute-remapper',
    name: `${source} to ${target}`,
    is_enabled: true,
    sources: [source],
    source_type: 'attribute',
    target,
    target_type: 'attribute',
    preserve_source: true,
    override_on_conflict: false,
  };
}

const facet = (path: string, name: string, type: 'string' | 'integer' = 'string') => ({
  path,
  name,
  type,
});

const facets = [
  facet('@uid', 'Event uid'),
  facet('@ocsf.class_name', 'Class'),
  facet('@ocsf.activity_name', 'Activity'),
  facet('@ocsf.status', 'Status'),
  facet('@ocsf.severity', 'Severity'),
  facet('@ocsf.metadata.tenant_uid', 'Company'),
  facet('@sluice.event_code', 'Event code'),
  facet('@sluice.target_type', 'Kind of object'),
  facet('@sluice.target_name', 'Object'),
  facet('@sluice.actor_kind', 'Kind of actor'),
  facet('@sluice.change', 'Change'),
  facet('@sluice.state', 'New state'),
  facet('@sluice.run', 'Run of an AI agent'),
  facet('@sluice.approval', 'Approval'),
  facet('@sluice.conflicts', 'Conflicts', 'integer'),
  facet('@usr.name', 'Actor'),
  facet('@network.client.ip', 'Source address'),
];

const priorities: Readonly<Record<string, number>> = { low: 4, medium: 3, high: 2, critical: 1 };

interface Monitor {
  readonly name: string;
  readonly title: string;
  readonly level: string;
  readonly description: string;
  readonly query: string;
  readonly by: readonly string[];
  readonly over: string;
  readonly atLeast: number;
}

function monitor({ name, title, level, description, query, by, over, atLeast }: Monitor) {
  const groups = by.length === 0 ? '' : `.by("${by.join(',')}")`;
  const text = query.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  return {
    name: `sluice: ${title}`,
    type: 'log alert',
    query: `logs("${text}").index("*").rollup("count")${groups}.last("${over}") >= ${atLeast}`,
    message: `${description.trim().replace(/\s+/g, ' ')}\n\n{{log.message}}`,
    tags: ['sluice', `rule:${name}`],
    priority: priorities[level],
    options: {
      thresholds: { critical: atLeast },
      enable_logs_sample: true,
      groupby_simple_monitor: false,
      include_tags: true,
      notify_no_data: false,
      on_missing_data: 'resolve',
    },
  };
}

/** A monitor cannot express a sequence: the success after the failures is for the analyst to find. */
const failedLogins: Monitor = {
  name: 'sluice_logins_failed_then_success',
  title: 'Failed logins of one person',
  level: 'high',
  description:
    'One person has ten failed logins from one address within ten minutes. Search for a success of the same person.',
  query: 'source:sluice @ocsf.class_uid:3002 @ocsf.status:Failure',
  by: ['@ocsf.user.name', '@network.client.ip'],
  over: '10m',
  atLeast: 10,
};

/** The files by name. */
export function datadogFiles(): ReadonlyMap<string, string> {
  const monitors = sigmaRules().map((rule) =>
    monitor({ ...rule, query: datadogQuery(rule), by: ['@uid'], over: '1h', atLeast: 1 }),
  );
  const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;
  return new Map([
    ['datadog/pipeline.json', json(pipeline)],
    ['datadog/facets.json', json(facets)],
    ['datadog/monitors.json', json([...monitors, monitor(failedLogins)])],
  ]);
}
