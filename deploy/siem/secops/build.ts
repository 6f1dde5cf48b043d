// The detection rules for Google SecOps in YARA-L 2.0. The sink `google_secops` sends UDM events, so no parser is needed; the
// facts that UDM has no field for are texts at the top of `additional`, where rules can search them.

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

/** The UDM field for a field of a rule. */
const fields: Readonly<Record<string, string>> = {
  'metadata.event_code': '$e.metadata.product_event_type',
  status: '$e.additional.fields["status"]',
  'resources.type': '$e.additional.fields["target_type"]',
  'resources.name': '$e.additional.fields["target_name"]',
  'unmapped.conflicts': '$e.additional.fields["conflicts"]',
  'unmapped.approval.state': '$e.additional.fields["approval"]',
};

const language: Language = { and: 'and', or: 'or', not: (text) => `not ${text}`, atom };

function atom(one: Atom, isNegated: boolean): string {
  const changed = changedName(one.field);
  const field = changed
    ? `$e.additional.fields["${changed.isState ? 'state' : 'change'}"]`
    : fields[one.field];
  if (field === undefined) throw new Error(`there is no UDM field for ${one.field}`);
  return `re.regex(${field}, \`(?i)${changed ? entryPatternOf(changed.name, one, isNegated) : patternFor(one)}\`)`;
}

function patternFor(one: Atom): string {
  if (one.comparison !== 'gte') return patternOf(one);
  // All values of `additional` are texts.
  if (one.values[0] !== '1')
    throw new Error('only a number of at least 1 can be compared as a text');
  return '^[1-9]';
}

const severities: Readonly<Record<string, string>> = {
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
  critical: 'CRITICAL',
};

function metaOf({
  title,
  description,
  level,
  falsepositives,
  id,
}: Omit<Rule, 'condition' | 'name'>): string {
  const text = (value: string) => JSON.stringify(value.trim().replace(/\s+/g, ' '));
  return `  meta:
    author = "sluice"
    title = ${text(title)}
    description = ${text(description)}
    severity = "${severities[level]}"
    false_positives = ${text(falsepositives.join('; '))}
    rule_id = "${id}"`;
}

/** One rule. */
function yaraRule(rule: Rule): string {
  return `rule ${rule.name} {
${metaOf(rule)}

  events:
    $e.metadata.product_log_id != ""
    ${written(rule.condition, language)}

  outcome:
    $uid = $e.metadata.product_log_id
    $sentence = $e.metadata.description

  condition:
    $e
}
`;
}

const failedLogins = {
  id: '6a4f6a7e-52cf-5d0b-8a3e-3d6a7a4c2b11',
  title: 'Failed logins followed by a success',
  level: 'high',
  description:
    'One person has ten failed logins from one address within ten minutes, and then a successful one.',
  falsepositives: ['A person who has forgotten a password and remembers it at last'],
};

const agentWithoutApproval = {
  id: '0a9a3b55-8a2b-5c60-9f41-9b8f5f0f6c02',
  title: 'AI agent acted without approval',
  level: 'high',
  description: 'A run of an AI agent has an executed action and no approval within a day.',
  falsepositives: [
    'An agent that may act without approval',
    'An approval that is older than a day',
  ],
};

/** Two detections that Sigma cannot express. */
const writtenRules: readonly (readonly [name: string, text: string])[] = [
  [
    'sluice_logins_failed_then_success',
    `rule sluice_logins_failed_then_success {
${metaOf(failedLogins)}

  events:
    $failed.metadata.event_type = "USER_LOGIN"
    $failed.additional.fields["status"] = "Failure"
    $failed.principal.user.user_display_name = $user
    $failed.principal.ip = $ip
    $success.metadata.event_type = "USER_LOGIN"
    $success.additional.fields["status"] = "Success"
    $success.principal.user.user_display_name = $user
    $success.principal.ip = $ip
    $failed.metadata.event_timestamp.seconds < $success.metadata.event_timestamp.seconds

  match:
    $user, $ip over 10m

  condition:
    #failed >= 10 and $success
}
`,
  ],
  [
    'sluice_agent_without_approval',
    `rule sluice_agent_without_approval {
${metaOf(agentWithoutApproval)}

  events:
    $executed.metadata.product_event_type = "agent.action.executed"
    $executed.additional.fields["run"] = $run
    $approved.metadata.product_event_type = "agent.action.approved"
    $approved.additional.fields["run"] = $run

  match:
    $run over 24h

  condition:
    $executed and !$approved
}
`,
  ],
];

/** The files by name. */
export function secopsFiles(): ReadonlyMap<string, string> {
  const rules = [
    ...sigmaRules().map((rule) => [rule.name, yaraRule(rule)] as const),
    ...writtenRules,
  ];
  return new Map(rules.map(([name, text]) => [`secops/rules/${name}.yaral`, text]));
}
