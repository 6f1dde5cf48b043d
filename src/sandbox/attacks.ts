// Attacks planted in the audit events (`sluice sandbox --attacks`), so that detection rules have something to find. Every
// other block of 16 events has one attack and its near misses: the same action by an approved change, or a similar action
// that is harmless. Ordinary events that a rule would find get an approval. Invariant: an event's content is a pure
// function of its index, so a test knows which events an attack consists of.
import type { Scene } from './audit-records.ts';
import { ADMINS, AGENTS, DLP_RULES, POLICIES } from './company.ts';
import { Random } from './random.ts';

/** The names of the planted attacks, as the detection rules are called. */
export const ATTACKS = [
  'role_raised',
  'policy_rolled_back',
  'policy_conflicts_forced',
  'dlp_rule_weakened',
  'known_bad_excluded',
  'firewall_any_any',
  'logins_failed_then_success',
  'secret_regenerated',
  'agent_without_approval',
  'incident_suppressed',
  'webhook_redirected',
] as const;

/** One planted attack. */
export type AttackName = (typeof ATTACKS)[number];

/** An event of a block: part of an attack, or a near miss. */
export interface Planted {
  readonly attack: AttackName;
  readonly isAttack: boolean;
  readonly scene: Scene;
}

/** Reports of scheduled changes take the last event of a block and the first two of the next one. */
export const BLOCK = 16;
const FIRST_OFFSET = 2;
const OFFSETS = BLOCK - 3;
const SALT = 0xa77ac;
const KNOWN_BAD = ['update.evil-cdn.example', 'login.paypa1-secure.example'] as const;
const OWN_HOOK = 'https://hooks.example.com/sluice';
const FOREIGN_HOOK = 'https://collect.attacker.example/in?.example.com';

/** Lists of events that make a block. */
type Block = readonly (readonly [isAttack: boolean, scene: Scene])[];

const APPROVAL = { state: 'approved', ticket: 'CHG-20417', by: 'change-board@example.com' };

/** The scene of an approved change. */
function approved(scene: Scene): Scene {
  return { ...scene, details: { ...scene.details, approval: APPROVAL } };
}

/** An ordinary scene, approved if it does what an attack does. */
export function guarded(scene: Scene): Scene {
  return /^(policy|dlp|admin|api_key)\./.test(scene.action) ? approved(scene) : scene;
}

/** True for the blocks that have an attack; agents run in the others. */
function isAttackBlock(index: number): boolean {
  return Math.floor(index / BLOCK) % 2 === 1;
}

/** The planted event at this index; null for an ordinary one. */
export function plantedAt(seed: number, index: number): Planted | null {
  const at = (index % BLOCK) - FIRST_OFFSET;
  if (!isAttackBlock(index) || at < 0 || at >= OFFSETS) return null;
  const turn = Math.floor(index / BLOCK / 2);
  // The last block of a cycle has logins that only look like an attack.
  const attack = ATTACKS[turn % (ATTACKS.length + 1)];
  const random = new Random(seed, SALT, turn);
  const block = attack === undefined ? loginsOnly(random) : BLOCKS[attack](random);
  const one = block[at];
  if (one === undefined) return null;
  const [isAttack, scene] = one;
  return {
    attack: attack ?? 'logins_failed_then_success',
    isAttack,
    scene: { ...scene, plain: true },
  };
}

const BLOCKS: Readonly<Record<AttackName, (random: Random) => Block>> = {
  role_raised: roleRaised,
  policy_rolled_back: rolledBack,
  policy_conflicts_forced: conflictsForced,
  dlp_rule_weakened: dlpWeakened,
  known_bad_excluded: excluded,
  firewall_any_any: anyAny,
  logins_failed_then_success: bruteForced,
  secret_regenerated: regenerated,
  agent_without_approval: unapproved,
  incident_suppressed: suppressed,
  webhook_redirected: redirected,
};

function roleRaised(random: Random): Block {
  const { id, name, email } = random.pick(ADMINS);
  const raised = (to: string, from = 'soc_analyst'): Scene => ({
    action: 'admin.role_changed',
    module: 'platform',
    severity: 'high',
    resource: { type: 'admin', id, name, email },
    changes: [{ field: 'role', from, to }],
    summary: `role of ${name} changed to ${to}`,
  });
  return [
    [true, raised('owner')],
    [false, approved(raised('owner'))],
    [false, raised('read_only', 'owner')],
  ];
}

function policyScene(random: Random, action: string, conflicts: number): Scene {
  const name = random.pick(POLICIES);
  const revision = 2 + random.below(140);
  return {
    action,
    module: 'platform',
    severity: 'medium',
    resource: { type: 'policy', id: name, name, revision },
    changes: [{ field: 'revision', from: revision, to: revision - 1 }],
    summary: `policy ${name} is now at revision ${revision - 1}, ${conflicts} conflicting rules`,
    details: { conflicts, validated_by: 'validator-3' },
  };
}

function rolledBack(random: Random): Block {
  return [
    [true, policyScene(random, 'policy.rollback', 0)],
    [false, approved(policyScene(random, 'policy.rollback', 0))],
    [false, { ...policyScene(random, 'policy.rollback', 0), outcome: 'denied' }],
  ];
}

function conflictsForced(random: Random): Block {
  return [
    [true, policyScene(random, 'policy.update', 1)],
    [true, policyScene(random, 'policy.publish', 12)],
    [false, approved(policyScene(random, 'policy.publish', 12))],
    [false, policyScene(random, 'policy.update', 0)],
  ];
}

function dlpWeakened(random: Random): Block {
  const rule = (changes: Scene['changes'], action = 'dlp.rule.update'): Scene => ({
    action,
    module: 'platform',
    severity: 'medium',
    resource: { type: 'dlp_rule', id: `dlp_${random.hex(4)}`, name: random.pick(DLP_RULES) },
    ...(changes !== undefined && { changes }),
    summary: 'a DLP rule was changed',
  });
  const off = [
    { field: 'inline', from: false, to: true },
    { field: 'enabled', from: true, to: false },
  ];
  return [
    [true, rule(off)],
    [true, rule([{ field: 'action', from: 'block', to: 'log' }])],
    [true, rule([], 'dlp.rule.disable')],
    [false, approved(rule(off))],
    // The values of the attack, at other fields.
    [
      false,
      rule([
        { field: 'enabled', from: false, to: true },
        { field: 'inline', from: true, to: false },
      ]),
    ],
    [false, rule([{ field: 'action', from: 'log', to: 'block' }])],
    [false, { ...rule(off), resource: { type: 'saved_search', id: 's1', name: 'mine' } }],
  ];
}

function excluded(random: Random): Block {
  const entry = (name: string, action = 'exclusion_list_entry.create'): Scene => ({
    action,
    module: 'platform',
    severity: 'low',
    resource: { type: action.split('.')[0], id: random.hex(6), name },
    summary: `entry ${name}`,
  });
  const bad = random.pick(KNOWN_BAD);
  return [
    [true, entry(bad)],
    [false, approved(entry(bad))],
    [false, entry(`${bad}.harmless.example`)],
    [false, entry('updates.vendor.example')],
    [false, entry(bad, 'block_list_entry.create')],
  ];
}

function anyAny(random: Random): Block {
  const rule = (after: object, action = 'firewall.rule.create'): Scene => ({
    action,
    module: 'platform',
    severity: 'medium',
    resource: { type: 'firewall_rule', id: `fr-${random.hex(4)}`, name: 'temporary' },
    summary: 'a firewall rule was changed',
    details: { after },
  });
  const any = { source: ['any'], destination: ['any'], services: ['any'], action: 'accept' };
  return [
    [true, rule(any)],
    [true, rule(any, 'firewall.rule.update')],
    [false, approved(rule(any))],
    [false, rule({ ...any, action: 'drop' })],
    [false, rule({ ...any, source: ['obj-1007'] })],
    [false, rule({ ...any, services: ['tcp/443'] })],
    [false, rule(any, 'firewall.rule.delete')],
  ];
}

function login(random: Random, who: number, ip: string, isSuccess: boolean): Scene {
  const { id, name, email, role } = ADMINS[who % ADMINS.length] ?? random.pick(ADMINS);
  return {
    action: 'session.login',
    module: 'platform',
    severity: isSuccess ? 'info' : 'medium',
    outcome: isSuccess ? 'success' : 'failure',
    actor: { type: 'admin', id, name, email, role },
    sourceIp: ip,
    resource: { type: 'session', id: `ses_${random.hex(8)}`, name: 'operations portal' },
    summary: `${name} ${isSuccess ? 'signed in' : 'could not sign in: bad_password'}`,
  };
}

function addressOf(random: Random): string {
  return `198.51.100.${1 + random.below(254)}`;
}

function bruteForced(random: Random): Block {
  const [who, ip] = [random.below(ADMINS.length), addressOf(random)];
  return Array.from({ length: OFFSETS }, (_, n) => [
    true,
    login(random, who, ip, n === OFFSETS - 1),
  ]);
}

/** Failures only, and a person who signs in after a few. */
function loginsOnly(random: Random): Block {
  const [who, ip] = [random.below(ADMINS.length), addressOf(random)];
  return Array.from({ length: OFFSETS }, (_, n) => [
    false,
    n < 10 ? login(random, who, ip, false) : login(random, who + 1, ip, n === OFFSETS - 1),
  ]);
}

function regenerated(random: Random): Block {
  const secret = (action: string, type = 'api_client'): Scene => ({
    action,
    module: 'platform',
    severity: 'high',
    resource: { type, id: `${type}_${random.hex(6)}`, name: 'siem-export' },
    summary: `${action} of siem-export`,
  });
  return [
    [true, secret('RegenerateClientSecret')],
    [true, secret('api_client.secret_regenerated')],
    [false, approved(secret('RegenerateClientSecret'))],
    [false, secret('report.regenerated', 'report')],
    [false, secret('api_client.secret_viewed')],
  ];
}

function unapproved(random: Random): Block {
  const agent = random.pick(AGENTS);
  const step = (run: string, action: string, actor: object = {}): Scene => ({
    action,
    module: 'intelligence',
    severity: 'medium',
    actor: { type: 'agent', id: agent.id, name: agent.name, ...actor },
    resource: { type: 'agent_run', id: run, name: agent.replicates },
    summary: `${agent.name}: ${action}`,
    details: { run: { run_id: run, autonomy: agent.autonomy, requires_approval: true } },
  });
  const bad = `run_${random.hex(8)}`;
  const good = `run_${random.hex(8)}`;
  const proposed = `run_${random.hex(8)}`;
  const { id, name, email, role } = random.pick(ADMINS);
  const admin = { type: 'admin', id, name, email, role };
  return [
    [false, step(good, 'agent.run.started')],
    [false, step(bad, 'agent.run.started')],
    [false, step(bad, 'agent.action.proposed')],
    [false, step(good, 'agent.action.proposed')],
    [false, step(good, 'agent.action.approved', admin)],
    [true, step(bad, 'agent.action.executed')],
    [false, step(proposed, 'agent.action.proposed')],
    [false, step(good, 'agent.action.executed')],
    [false, step(proposed, 'agent.action.rejected', admin)],
  ];
}

function suppressed(random: Random): Block {
  const incident = (action: string, changes: Scene['changes'] = []): Scene => ({
    action,
    module: 'mc',
    severity: 'high',
    resource: { type: 'incident', id: `INC-${20_000 + random.below(9_000)}`, severity: 'sev1' },
    changes,
    summary: `incident: ${action}`,
  });
  const change = (from: string, to: string) => [{ field: 'state', from, to }];
  return [
    [true, incident('incident.suppressed')],
    [true, incident('incident.update', change('open', 'suppressed'))],
    [false, approved(incident('incident.suppressed'))],
    [false, incident('incident.update', change('suppressed', 'open'))],
    [false, incident('incident.acknowledged')],
  ];
}

function redirected(random: Random): Block {
  const hook = (changes: Scene['changes'], action = 'webhook.update'): Scene => ({
    action,
    module: 'platform',
    severity: 'medium',
    resource: { type: 'webhook', id: `wh_${random.hex(4)}`, name: 'siem' },
    ...(changes !== undefined && { changes }),
    summary: 'a webhook was changed',
  });
  const to = (url: string, from = OWN_HOOK) => [{ field: 'url', from, to: url }];
  return [
    [true, hook(to(FOREIGN_HOOK))],
    [true, hook(to(FOREIGN_HOOK, ''), 'export.destination_changed')],
    [false, approved(hook(to(FOREIGN_HOOK)))],
    [false, hook(to(`${OWN_HOOK}/v2`))],
    [false, hook(to(OWN_HOOK, FOREIGN_HOOK))],
    [false, hook([{ field: 'active', from: true, to: false }])],
    [false, { ...hook(to(FOREIGN_HOOK)), resource: { type: 'bookmark', id: 'b1', name: 'mine' } }],
  ];
}
