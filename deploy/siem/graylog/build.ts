// The content pack for Graylog: a stream, a pipeline with one rule for each detection, and event definitions that raise the
// alerts. A pipeline rule marks the message (`sluice_alert_NAME`), because the searches of Graylog have no regular expressions
// over several lines, and leading wildcards are off by default.

import {
  type Atom,
  changedName,
  entryPatternOf,
  type Language,
  patternOf,
  type Rule,
  sigmaRules,
  written,
} from '../rule-conditions.ts';

const streamId = '6f3f1a52-0f0b-5d5e-9d35-6c1d1c0f7a01';
const pipelineId = '6f3f1a52-0f0b-5d5e-9d35-6c1d1c0f7a02';
const priorities: Readonly<Record<string, number>> = { low: 1, medium: 2, high: 3, critical: 3 };
const serverVersion = '>=5.0.0';
const minuteMs = 60_000;

/** The field of a message for a field of a rule. */
const fields: Readonly<Record<string, string>> = {
  'metadata.event_code': 'metadata_event_code',
  status: 'status',
  'resources.type': 'sluice_target_type',
  'resources.name': 'sluice_target_name',
  'unmapped.conflicts': 'sluice_conflicts',
  'unmapped.approval.state': 'sluice_approval',
};

const language: Language = {
  and: '&&',
  or: '||',
  not: (text) => (text.startsWith('(') ? `!${text}` : `!(${text})`),
  atom,
};

function atom(one: Atom, isNegated: boolean): string {
  const changed = changedName(one.field);
  const field = changed ? `sluice_${changed.isState ? 'state' : 'change'}` : fields[one.field];
  if (field === undefined) throw new Error(`there is no field of Graylog for ${one.field}`);
  if (one.comparison === 'gte')
    return `to_double($message.${field}, -1.0) >= ${Number(one.values[0])}.0`;
  const pattern = changed ? entryPatternOf(changed.name, one, isNegated) : patternOf(one);
  // In a text of a rule, a backslash stands for itself only if doubled.
  const text = `(?i)${pattern}`.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  return `regex("${text}", to_string($message.${field}, "")).matches == true`;
}

/** The field that marks a message which a rule has found. */
function alertField(name: string): string {
  return name.replace(/^sluice_/, 'sluice_alert_');
}

/** The source of a pipeline rule. */
function pipelineRule({ name, level, condition }: Rule): string {
  return `rule "${name}"
when
  has_field("uid") && ${written(condition, language)}
then
  set_field("${alertField(name)}", "${level}");
end
`;
}

type Value = string | number | boolean;

function reference(value: Value) {
  const type = typeof value === 'number' ? 'integer' : typeof value;
  return { '@type': type, '@value': value };
}

function referenced(members: Readonly<Record<string, Value>>) {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name, reference(value)]),
  );
}

function entity(name: string, id: string, data: object) {
  const constraints = [{ type: 'server-version', version: serverVersion }];
  return { v: '1', type: { name, version: '1' }, id, data, constraints };
}

function stream() {
  return entity('stream', streamId, {
    ...referenced({ title: 'sluice', description: 'Events of sluice', disabled: false }),
    ...referenced({ matching_type: 'AND', default_stream: false, remove_matches: false }),
    stream_rules: [
      referenced({ type: 'PRESENCE', field: 'uid', value: '', inverted: false, description: '' }),
      referenced({
        type: 'PRESENCE',
        field: 'metadata_log_name',
        value: '',
        inverted: false,
        description: '',
      }),
    ],
    outputs: [],
    alarm_callbacks: [],
    alert_conditions: [],
  });
}

function pipeline(rules: readonly Rule[]) {
  const source = `pipeline "sluice"
stage 0 match either
${rules.map(({ name }) => `rule "${name}";`).join('\n')}
end
`;
  return entity('pipeline', pipelineId, {
    ...referenced({ title: 'sluice', description: 'Detections on events of sluice', source }),
    connected_streams: [reference(streamId)],
  });
}

interface Definition {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly level: string;
  readonly query: string;
  readonly groupBy: readonly string[];
  /** The number of messages that raise an alert in the searched time. */
  readonly atLeast: number;
  readonly withinMs: number;
}

function eventDefinition(one: Definition) {
  const isGrouped = one.groupBy.length > 0;
  const count = { id: 'count-', type: 'count', field: null };
  const condition = {
    expr: '>=',
    left: { expr: 'number-ref', ref: 'count-' },
    right: { expr: 'number', value: one.atLeast },
  };
  const template = (text: string) => ({
    data_type: 'string',
    providers: [{ type: 'template-v1', template: text, require_values: false }],
  });
  return entity('event_definition', one.id, {
    ...referenced({ title: one.title, description: one.description }),
    ...referenced({ priority: priorities[one.level] ?? 2, alert: true, is_scheduled: true }),
    config: {
      type: 'aggregation-v1',
      query: reference(one.query),
      streams: [streamId],
      group_by: one.groupBy,
      series: isGrouped ? [count] : [],
      conditions: { expression: isGrouped ? condition : null },
      search_within_ms: one.withinMs,
      execute_every_ms: minuteMs,
      event_limit: 100,
    },
    field_spec: isGrouped
      ? {}
      : { message: template('${source.message}'), uid: template('${source.uid}') },
    key_spec: isGrouped ? [] : ['uid'],
    notification_settings: { grace_period_ms: 5 * minuteMs, backlog_size: 5 },
    notifications: [],
    storage: [{ type: 'persist-to-streams-v1', streams: ['000000000000000000000002'] }],
  });
}

/** An alert for each message that a rule has marked. */
function definitionOf({ name, id, title, description, level }: Rule): Definition {
  const query = `_exists_:${alertField(name)}`;
  // Twice the interval: a message that is indexed late is found as well, and its key avoids a second alert.
  return {
    id,
    title,
    description: description.trim(),
    level,
    query,
    groupBy: [],
    atLeast: 1,
    withinMs: 2 * minuteMs,
  };
}

/** Graylog Open has no sequence of events: the success after the failures is for the analyst to find. */
const failedLogins: Definition = {
  id: '6a4f6a7e-52cf-5d0b-8a3e-3d6a7a4c2b11',
  title: 'Failed logins of one person',
  description:
    'One person has ten failed logins from one address within ten minutes. Search for a success of the same person.',
  level: 'high',
  query: 'class_uid:3002 AND status:Failure',
  groupBy: ['user_name', 'src_endpoint_ip'],
  atLeast: 10,
  withinMs: 10 * minuteMs,
};

/** The files by name. */
export function graylogFiles(): ReadonlyMap<string, string> {
  const rules = sigmaRules();
  const pack = {
    v: '1',
    id: '6f3f1a52-0f0b-5d5e-9d35-6c1d1c0f7a00',
    rev: 1,
    name: 'sluice',
    summary: 'Stream, pipeline and alerts for events of sluice',
    description: 'See docs/siem/graylog.md.',
    vendor: 'sluice',
    url: '',
    parameters: [],
    entities: [
      stream(),
      pipeline(rules),
      ...rules.map((rule) =>
        // The rule and its event definition are two entities.
        entity('pipeline_rule', rule.id.replace(/^.{8}/, '5eed0001'), {
          ...referenced({ title: rule.name, description: rule.title, source: pipelineRule(rule) }),
        }),
      ),
      ...[...rules.map(definitionOf), failedLogins].map(eventDefinition),
    ],
  };
  return new Map([
    ['graylog/content-pack.json', `${JSON.stringify(pack, null, 2)}\n`],
    ['graylog/pipeline-rules.txt', rules.map(pipelineRule).join('\n')],
  ]);
}
