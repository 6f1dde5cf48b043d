// Audit events as `/v1/audit/events` serves them: actions of admins and agents of the invented company. The document
// shows no fields, so the shape follows real platforms: nested actor, resource and network, a list of changes, about
// 700 bytes. Invariant: a record is a pure function of seed, index, id and time. A few are unusual on purpose
// (unusual.ts).
import {
  ADMINS,
  AGENTS,
  DLP_RULES,
  POLICIES,
  publicAddress,
  SITES,
  USER_AGENTS,
} from './company.ts';
import { Random } from './random.ts';
import { unusual, unusualSummary } from './unusual.ts';

/** The identity of a record: `id` is JSON text (so an integer id can exceed 2^53), null for none. */
export interface RecordContext {
  readonly seed: number;
  readonly index: number;
  readonly id: string | null;
  readonly timeMs: number;
}

interface Change {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** The content of an audit event, without identity and frame. */
export interface Scene {
  readonly action: string;
  readonly module: string;
  readonly severity?: string;
  readonly outcome?: string;
  readonly actor?: object;
  readonly resource: object;
  readonly changes?: readonly Change[];
  readonly summary: string;
  readonly details?: object;
  /** Default: any address. */
  readonly sourceIp?: string;
  /** Not made unusual. */
  readonly plain?: boolean;
}

const SALT = 0xa0d17;

/**
 * The exact JSON text of audit event `index`; `reported` is the change or attack it reports, if any; `ordinary` changes
 * all other events.
 */
export function auditRecord(
  place: RecordContext,
  reported: Scene | null = null,
  ordinary: (scene: Scene) => Scene = (scene) => scene,
): string {
  const { seed, index } = place;
  const random = new Random(seed, SALT, index);
  const scene = reported ?? agentScene(seed, index) ?? ordinary(random.pick(SCENES)(random));
  const site = random.pick(SITES);
  const body = {
    timestamp: timestamp(place.timeMs, index),
    action: scene.action,
    module: scene.module,
    severity: scene.severity ?? 'info',
    outcome: scene.outcome ?? 'success',
    actor: scene.actor ?? adminActor(random),
    resource: scene.resource,
    network: {
      source_ip: scene.sourceIp ?? publicAddress(random),
      source_port: 1024 + random.below(64_000),
      user_agent: random.pick(USER_AGENTS),
      geo: { city: site.name, region: site.region },
    },
    changes: scene.changes ?? [],
    request_id: `req_${random.hex(8)}${random.hex(8)}`,
    summary: (scene.plain ? null : unusualSummary(index)) ?? scene.summary,
    ...scene.details,
  };
  const text = JSON.stringify(body);
  const whole = place.id === null ? text : `{"id":${place.id},${text.slice(1)}`;
  return scene.plain ? whole : unusual(whole, index);
}

/** RFC 3339 in UTC; some without a fraction or with microseconds, as in mixed fleets. */
export function timestamp(timeMs: number, index: number): string {
  const text = new Date(timeMs).toISOString();
  if (index % 97 === 3) return `${text.slice(0, 19)}Z`;
  if (index % 89 === 5) return `${text.slice(0, 23)}417Z`;
  return text;
}

function adminActor(random: Random): object {
  const { id, name, email, role } = random.pick(ADMINS);
  return {
    type: 'admin',
    id,
    name,
    email,
    role,
    session_id: `ses_${random.hex(8)}`,
    mfa: random.chance(0.9),
  };
}

const SCENES: readonly ((random: Random) => Scene)[] = [
  login,
  login,
  login,
  policyUpdate,
  policyUpdate,
  siteUpdate,
  tunnelState,
  dlpRule,
  incident,
  apiKey,
  roleChange,
];

function login(random: Random): Scene {
  const admin = random.pick(ADMINS);
  const failed = random.chance(0.25);
  const reason = random.pick(['bad_password', 'mfa_timeout', 'account_locked', 'ip_not_allowed']);
  return {
    action: 'session.login',
    module: 'platform',
    severity: failed ? 'medium' : 'info',
    outcome: failed ? 'failure' : 'success',
    actor: { type: 'admin', id: admin.id, name: admin.name, email: admin.email, role: admin.role },
    resource: { type: 'session', id: `ses_${random.hex(8)}`, name: 'operations portal' },
    summary: failed ? `${admin.name} could not sign in: ${reason}` : `${admin.name} signed in`,
    details: {
      auth: {
        method: random.pick(['password+totp', 'sso', 'webauthn']),
        ...(failed && { reason }),
      },
    },
  };
}

function policyUpdate(random: Random): Scene {
  const name = random.pick(POLICIES);
  const revision = 2 + random.below(140);
  const conflicts = random.below(3);
  return {
    action: random.chance(0.15) ? 'policy.rollback' : 'policy.update',
    module: 'platform',
    severity: conflicts > 0 ? 'medium' : 'low',
    resource: { type: 'policy', id: name, name, revision },
    changes: [
      { field: 'revision', from: revision - 1, to: revision },
      { field: 'rules', from: 40 + random.below(9), to: 44 + random.below(9) },
    ],
    summary: `policy ${name} is now at revision ${revision}, ${conflicts} conflicting rules`,
    details: { conflicts, validated_by: 'validator-3' },
  };
}

function siteUpdate(random: Random): Scene {
  const site = random.pick(SITES);
  const to = random.pick([500, 1_000, 2_000, 10_000]);
  return {
    action: random.pick(['site.update', 'site.update', 'site.create', 'site.decommission']),
    module: 'platform',
    severity: 'low',
    resource: { type: 'site', id: site.id, name: site.name, region: site.region },
    changes: [{ field: 'bandwidth_mbps', from: site.bandwidth_mbps, to }],
    summary: `bandwidth of ${site.name} set to ${to} Mbit/s`,
  };
}

function tunnelState(random: Random): Scene {
  const [from, to] = [random.pick(SITES), random.pick(SITES)];
  const up = random.chance(0.6);
  return {
    action: 'tunnel.state_changed',
    module: 'platform',
    severity: up ? 'info' : 'high',
    actor: { type: 'system', id: 'sys_controlplane', name: 'control plane' },
    resource: {
      type: 'tunnel',
      id: `tun_${random.hex(6)}`,
      from: from.id,
      to: to.id,
      protocol: 'wireguard',
      mtu: 1420,
    },
    changes: [{ field: 'state', from: up ? 'down' : 'up', to: up ? 'up' : 'down' }],
    summary: `tunnel ${from.name} -> ${to.name} is ${up ? 'up again' : 'down'}`,
  };
}

function dlpRule(random: Random): Scene {
  const name = random.pick(DLP_RULES);
  return {
    action: random.pick(['dlp.rule.update', 'dlp.rule.create']),
    module: 'platform',
    severity: 'medium',
    resource: {
      type: 'dlp_rule',
      id: `dlp_${random.hex(4)}`,
      name,
      classifier: random.pick(['pattern', 'fingerprint', 'ml']),
    },
    changes: [{ field: 'action', from: 'log', to: random.pick(['block', 'quarantine']) }],
    summary: `DLP rule ${name} changed on channels mail, web`,
    details: { channels: ['mail', 'web'] },
  };
}

function incident(random: Random): Scene {
  const severity = random.pick(['sev1', 'sev2', 'sev3', 'sev3']);
  const site = random.pick(SITES);
  return {
    action: random.pick(['incident.created', 'incident.acknowledged', 'incident.resolved']),
    module: 'mc',
    severity: { sev1: 'critical', sev2: 'high', sev3: 'medium' }[severity] ?? 'medium',
    resource: {
      type: 'incident',
      id: `INC-${20_000 + random.below(9_000)}`,
      severity,
      site_id: site.id,
    },
    summary: `${severity}: ${random.pick(['packet loss', 'beaconing host', 'BGP session lost'])} at ${site.name}`,
    details: { owner: random.pick(ADMINS).email, ack_eta_sec: 60 * (1 + random.below(15)) },
  };
}

function apiKey(random: Random): Scene {
  const refused = random.chance(0.2);
  return {
    action: random.pick(['api_key.created', 'api_key.revoked', 'api_key.used']),
    module: 'platform',
    severity: 'high',
    outcome: refused ? 'denied' : 'success',
    resource: {
      type: 'api_key',
      id: `key_${random.hex(6)}`,
      name: random.pick(['siem-export', 'terraform', 'grafana']),
    },
    summary: refused
      ? 'an API key was refused: scope webhooks:manage missing'
      : 'an API key was issued or used',
    details: { scopes: ['events:read', 'platform:read'] },
  };
}

function roleChange(random: Random): Scene {
  const target = random.pick(ADMINS);
  return {
    action: 'admin.role_changed',
    module: 'platform',
    severity: 'high',
    resource: { type: 'admin', id: target.id, name: target.name, email: target.email },
    changes: [
      { field: 'role', from: target.role, to: random.pick(['owner', 'read_only', 'soc_lead']) },
    ],
    summary: `role of ${target.name} changed`,
  };
}

const AGENT_STEPS: Readonly<Record<number, string>> = {
  3: 'agent.run.started',
  5: 'agent.action.proposed',
  6: 'agent.action.gated',
  9: 'agent.action.approved',
  11: 'agent.action.executed',
};

// Steps of one run share a run_id and are a few events apart, so a run can be followed through the log. An agent that
// may only propose stops before the gate.
function agentScene(seed: number, index: number): Scene | null {
  const block = Math.floor(index / 16);
  const action = AGENT_STEPS[index % 16];
  if (action === undefined || block % 2 === 1) return null;
  const random = new Random(seed, SALT + 1, block);
  const agent = random.pick(AGENTS);
  if (agent.autonomy === 'propose' && index % 16 > 5) return null;
  const site = random.pick(SITES);
  const run = `run_${random.hex(8)}`;
  const admin = random.pick(ADMINS);
  const step = random.pick([
    'disable unused rule',
    'isolate host',
    'move traffic to backup tunnel',
  ]);
  const actor =
    action === 'agent.action.approved'
      ? { type: 'admin', id: admin.id, name: admin.name, email: admin.email, role: admin.role }
      : { type: 'agent', id: agent.id, name: agent.name, on_behalf_of: admin.email };
  return {
    action,
    module: 'intelligence',
    severity: action === 'agent.action.gated' ? 'high' : 'medium',
    actor,
    resource: { type: 'agent_run', id: run, name: agent.replicates, site_id: site.id },
    summary: `${agent.name}: ${step} at ${site.name}`,
    details: {
      run: {
        run_id: run,
        autonomy: agent.autonomy,
        task: step,
        scope: site.id,
        requires_approval: true,
      },
      confidence: Math.round(random.next() * 1000) / 1000,
    },
  };
}
