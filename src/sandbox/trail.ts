// Assigns audit events to changes. A clock step has its audit event by arithmetic. A control call uses the next event.
// The firewall, which has its own schedule, uses the events at one remainder per company: each reports the changes
// since the previous one. Changes that a script or control call marks as unexplained are not reported.
import type { Scene } from './audit-records.ts';
import type { ListBehaviour } from './behaviour.ts';
import type { Collection, SandboxChange } from './collection.ts';
import type { Firewall, FirewallChange } from './firewall.ts';
import type { SandboxGrowth } from './growth.ts';
import { saltOf } from './random.ts';
import type { Steps } from './steps.ts';

/** The inputs of the trail. */
export interface TrailPlan {
  readonly growth: SandboxGrowth;
  readonly start: number;
  readonly every: number;
  readonly steps: Steps;
  /** In the order of their turns. */
  readonly collections: readonly Collection[];
  readonly firewalls: ReadonlyMap<string, Firewall>;
  readonly behaviour: (path: string) => ListBehaviour;
  readonly now: () => number;
}

/** The audit trail of all changes. */
export class Trail {
  readonly #plan: TrailPlan;
  /** Changes by control calls, by the audit event that reports them. */
  readonly #claimed = new Map<number, SandboxChange>();
  #lastClaimed = -1;

  constructor(plan: TrailPlan) {
    this.#plan = plan;
  }

  /** Assigns the next free audit event to this change. */
  claim(change: SandboxChange): void {
    const { growth, now, steps } = this.#plan;
    let index = Math.max(growth.sizeAt(now()), this.#lastClaimed + 1);
    while (steps.reportedBy(index) !== null) index += 1;
    this.#claimed.set(index, change);
    this.#lastClaimed = index;
  }

  /** The change that an audit event reports; null: none. */
  sceneAt(auditIndex: number): Scene | null {
    const { steps, collections } = this.#plan;
    const reported = steps.reportedBy(auditIndex);
    const collection = reported === null ? undefined : collections[reported.turn];
    const change = collection?.changeAt(reported?.step ?? 0) ?? this.#claimed.get(auditIndex);
    if (change === undefined) return this.#firewallScene(auditIndex);
    const of = collections.find(({ plan }) => plan.path === change.path);
    return of === undefined || !change.explained ? null : sceneOf(change, of);
  }

  #firewallScene(auditIndex: number): Scene | null {
    const { every, firewalls, growth, start, behaviour, now } = this.#plan;
    if (every < 2 || auditIndex < start) return null;
    const [fromMs, toMs] = [growth.timeOf(auditIndex - every), growth.timeOf(auditIndex)];
    for (const [turn, [company, firewall]] of [...firewalls].entries()) {
      if ((auditIndex - start) % every !== turn % (every - 1)) continue;
      const change = firewall.changeWithin(fromMs, toMs, now());
      if (change === null) continue;
      const list = change.kind === 'object' ? 'objects' : 'policies';
      const path = `/api/firewall/v1/companies/${company}/${list}`;
      const { unexplained_every: silent } = behaviour(path);
      const isSilent = silent !== undefined && saltOf(`${change.id} ${change.at}`) % silent === 0;
      return isSilent ? null : firewallScene(change, company);
    }
    return null;
  }
}

const VERBS = { created: 'create', updated: 'update', deleted: 'delete' } as const;

function sceneOf(change: SandboxChange, collection: Collection): Scene {
  const { kind, op, id, company, version, path } = change;
  const [before, after] = collection.sidesOf(change);
  const verb = collection.plan.verb?.(op, version) ?? VERBS[op];
  const name = nameOf(after ?? before);
  return {
    action: `${kind}.${verb}`,
    module: /^\/v1\/(intelligence|mc)\//.exec(path)?.[1] ?? 'platform',
    severity: op === 'deleted' ? 'medium' : 'low',
    resource: {
      type: kind,
      id,
      ...(name !== null && { name }),
      ...(company !== null && { company_id: company }),
    },
    changes: before === null || after === null ? [] : differences(before, after),
    summary: `${kind.replaceAll('_', ' ')} ${name ?? id}: ${verb.replaceAll('_', ' ')}`,
  };
}

function firewallScene({ kind, op, id, policyId }: FirewallChange, company: string): Scene {
  return {
    action: `firewall.${kind}.${op}`,
    module: 'platform',
    severity: kind === 'object' ? 'low' : 'medium',
    resource: {
      type: `firewall_${kind}`,
      id,
      ...(policyId !== null && { policy_id: policyId }),
      company_id: company,
    },
    summary: `firewall ${kind} ${id} of ${company}: ${op}`,
  };
}

function nameOf(entity: object | null): string | null {
  const name: unknown = entity === null ? null : Reflect.get(entity, 'name');
  return typeof name === 'string' ? name : null;
}

/** Members that differ, without those with parts of their own: a real trail does not contain these. */
function differences(before: object, after: object): NonNullable<Scene['changes']> {
  return Object.entries(after).flatMap(([field, to]) => {
    const from: unknown = Reflect.get(before, field);
    const isPlain = [from, to].every((side) => typeof side !== 'object' || side === null);
    return isPlain && from !== to ? [{ field, from: from ?? null, to }] : [];
  });
}
