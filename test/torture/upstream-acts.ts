// The faults of upstream in a torture run, while its data grows: the sandbox's faults, for a while each, and what an
// operator of the platform may do. Only faults that the documents allow and that a careful client can survive: none
// that alters a record, since the accounts compare every record with the ledger.

import { setTimeout as delay } from 'node:timers/promises';
import { Random } from '../../src/sandbox/random.ts';
import type {
  FaultRule,
  FaultScript,
  FirewallOrder,
  ListBehaviour,
  Sandbox,
} from '../../src/sandbox/sandbox.ts';
import type { Perform } from './acts.ts';
import type { Act } from './plan.ts';

/** Where faults strike: everything, one API, one list, the token endpoints. */
const places = [
  '/**',
  '/v1/audit/events',
  '/api/logs/**',
  '/api/logs/v1/companies/c-1/events',
  '/api/logs/v1/companies/c-2/web',
  '/api/firewall/**',
];

/** What upstream's acts need of a stage. */
export interface UpstreamStage {
  readonly sandbox: Sandbox;
  /** How the sandbox is throughout, beside what the acts break. */
  readonly options: Pick<FaultScript, 'lists' | 'limits'>;
}

/** Does one act to upstream and undoes it. */
export type PerformUpstream = (stage: UpstreamStage, act: Act) => Promise<void>;

/** A fault at every other request or so, somewhere, for as long as the act lasts. */
function faulty(fault: FaultRule['fault'], at: readonly string[] = places): PerformUpstream {
  return async (stage, act) => {
    const path = at[Math.floor(act.draw * at.length)] ?? '/**';
    await withRules(stage, act, [{ path, probability: 0.5, fault }]);
  };
}

async function withRules(
  stage: UpstreamStage,
  act: Act,
  rules: readonly FaultRule[],
): Promise<void> {
  const { lists = [], limits = [] } = stage.options;
  stage.sandbox.control.setFaults({ rules, lists, limits });
  await delay(act.forMs);
  stage.sandbox.control.setFaults({ lists, limits });
}

const lists = ['/v1/audit/events', '/api/logs/**'];
const tokens = ['/v1/oauth/token', '/api/auth/v1/oauth/v2/token'];

/** The acts of the lane `upstream`. */
export const upstreamActs: Readonly<Record<string, PerformUpstream>> = {
  '429 with Retry-After': faulty({ kind: 'status', status: 429, retry_after: 1 }),
  '429 with a date': faulty({ kind: 'status', status: 429, retry_after: 1, retry_as: 'date' }),
  '429 without Retry-After': faulty({ kind: 'status', status: 429, retry_as: 'absent' }, lists),
  '401, token revoked': faulty('revoke_token'),
  'all tokens revoked': async (stage) => stage.sandbox.control.revokeTokens(),
  '403': faulty(403, ['/api/firewall/**', '/api/logs/v1/companies/c-2/web']),
  '404': faulty(404, ['/api/firewall/**']),
  '500': faulty(500),
  '503': faulty(503),
  '503 at the token endpoint': faulty(503, tokens),
  'token endpoint: odd expires_in': faulty({ kind: 'expires_in', value: null }, tokens),
  'connection reset': faulty('reset'),
  'body truncated': faulty('truncated'),
  'JSON cut': faulty('cut_json'),
  'body slow': faulty({ kind: 'slow', over_ms: 900 }),
  'answer late': faulty({ kind: 'delay', ms: 800 }),
  'no answer': faulty({ kind: 'hang', where: 'before' }),
  'no end of the body': faulty({ kind: 'hang', where: 'mid_body' }),
  'web page': faulty('html'),
  'empty body': faulty('empty_body'),
  'empty object': faulty('empty_object'),
  'error in a 200': faulty('error_in_200'),
  'data is null': faulty({ kind: 'wrong_shape', shape: 'data_null' }, lists),
  'data is missing': faulty({ kind: 'wrong_shape', shape: 'data_missing' }),
  'data is an object': faulty({ kind: 'wrong_shape', shape: 'data_object' }),
  'next_cursor is a number': faulty({ kind: 'wrong_shape', shape: 'next_number' }, lists),
  'next_cursor is missing': faulty({ kind: 'wrong_shape', shape: 'next_missing' }, lists),
  'cursor expired': faulty('expired_cursor', lists),
  'cursor ignored': faulty('cursor_ignored', lists),
  'cursors in a loop': faulty('loop', lists),
  'total is wrong': faulty({ kind: 'wrong_total', total: 3 }, ['/api/logs/**', '/api/firewall/**']),
  redirect: faulty('redirect'),
  'everything down': (stage, act) => withRules(stage, act, [{ path: '/**', fault: 'reset' }]),
};

/** The acts of the lane `data`: upstream's records come and go, in order. */
export const dataActs: Readonly<Record<string, Perform>> = {
  'a burst of audit events': async ({ sandbox }, { draw }) =>
    sandbox.control.grow('/v1/audit/events', 150 + Math.floor(draw * 400)),
  'a burst of logs': async ({ sandbox }, { draw }) =>
    sandbox.control.grow(logLists[Math.floor(draw * logLists.length)] ?? '', 300),
  'retention takes what was delivered': async (stage, { draw }) => {
    const path = logLists[Math.floor(draw * logLists.length)] ?? '';
    const [, company, log] = /companies\/([^/]+)\/(\w+)$/.exec(path) ?? [];
    const filed = stage.filed.read();
    const delivered = new Set(
      filed.filter((event) => event.log === log && event.company === company).map(({ id }) => id),
    );
    let first = 0;
    for (const id of stage.sandbox.ledger().list(path).ids()) {
      if (!delivered.has(id)) break;
      first += 1;
    }
    // The list grows by the clock, also since it was looked at: a tenth of what has arrived stays.
    if (first < 10) return;
    const { size } = stage.sandbox.ledger().list(path);
    stage.sandbox.control.trim(path, size - Math.floor(first * 0.9));
  },
  'an object is added': firewallChange({ kind: 'object', op: 'add' }),
  'an object is changed': firewallChange({ kind: 'object', op: 'change' }),
  'an object is removed': firewallChange({ kind: 'object', op: 'remove' }),
  'a rule is added': firewallChange({ kind: 'rule', op: 'add' }),
  'a rule is changed': firewallChange({ kind: 'rule', op: 'change' }),
  'a rule is moved': firewallChange({ kind: 'rule', op: 'move' }),
  'a rule is removed': firewallChange({ kind: 'rule', op: 'remove' }),
  'a policy is changed': firewallChange({ kind: 'policy', op: 'change' }),
};

const logLists = ['c-1', 'c-2'].flatMap((company) =>
  ['events', 'web'].map((list) => `/api/logs/v1/companies/${company}/${list}`),
);

function firewallChange(order: FirewallOrder): Perform {
  return async ({ sandbox }, { draw }) => {
    sandbox.control.changeFirewall(draw < 0.5 ? 'c-1' : 'c-2', order);
  };
}

/**
 * The behaviour of this seed's lists throughout: order, form of the tail, lateness, cursors' lifetime. A tail that is
 * bound to an earlier state of the list is only detected by reading the whole list again, which a client that has seen
 * a record come through the tail does once a day: such lists here grow at their end alone, and nothing comes late.
 */
export function listsOf(seed: number): readonly ListBehaviour[] {
  const random = new Random(seed, 0x7151);
  return [
    cursorList('/v1/audit/events', random),
    cursorList('/api/logs/v1/companies/c-1/events', random),
    cursorList('/api/logs/v1/companies/c-2/events', random),
    offsetList('/api/logs/v1/companies/c-1/web', random),
    offsetList('/api/logs/v1/companies/c-2/web', random),
  ];
}

function cursorList(path: string, random: Random): ListBehaviour {
  const order = random.pick(['oldest_first', 'oldest_first', 'newest_first', 'mixed'] as const);
  const isFrozen = order === 'oldest_first' && random.chance(0.3);
  return {
    path,
    order,
    tail: random.pick(['null', 'same', 'missing'] as const),
    ...(isFrozen ? { frozen_tail: true } : {}),
    ...(!isFrozen && random.chance(0.5) ? { late: { every: 11, seconds: 2 } } : {}),
    ...(random.chance(0.3) ? { empty_every: 3 } : {}),
    ...(random.chance(0.3) ? { repeat_last: 3 } : {}),
    ...(random.chance(0.4)
      ? { limit_max: 40, limit_over: random.pick(['clamp', 'refuse'] as const) }
      : {}),
    ...(random.chance(0.3)
      ? { cursor_lifetime_s: 5, bad_cursor: random.pick([400, 404, 410, 422] as const) }
      : {}),
    ...(random.chance(0.2) ? { ids: 'integer' } : {}),
  };
}

function offsetList(path: string, random: Random): ListBehaviour {
  const order = random.pick(['oldest_first', 'newest_first'] as const);
  return { path, order, ...(random.chance(0.3) ? { limit_max: 40 } : {}) };
}
