// The changing firewall configuration of one company. Changes come from a schedule (one every few minutes, drawn from
// the seed, so a restarted sandbox with the same epoch has the same configuration) and from control calls. Every change
// is recorded in order: tests compare it with the exporter's drift events.
import {
  type FirewallObject,
  type FirewallPolicy,
  type FirewallRule,
  firstObjects,
  firstPolicies,
  newObject,
  newPolicy,
  newRule,
} from './firewall-records.ts';
import { Random, saltOf } from './random.ts';

/** The change to make; missing parts are drawn. `change` of a rule keeps its id; `move` reorders. */
export interface FirewallOrder {
  readonly kind: 'object' | 'policy' | 'rule';
  readonly op: 'add' | 'change' | 'remove' | 'move';
  /** The object, policy or rule to change; for `add` the new id. */
  readonly id?: string;
  /** The policy that contains the rule. */
  readonly policyId?: string;
}

/** A completed change. `at` is RFC 3339. */
export interface FirewallChange {
  readonly kind: FirewallOrder['kind'];
  readonly op: FirewallOrder['op'];
  readonly id: string;
  readonly policyId: string | null;
  readonly at: string;
}

/** The parameters of a company's configuration. `everyMs: 0` disables the schedule. */
export interface FirewallPlan {
  readonly seed: number;
  readonly company: string;
  readonly epochMs: number;
  readonly everyMs: number;
}

const SCHEDULED: readonly FirewallOrder[] = [
  { kind: 'object', op: 'add' },
  { kind: 'object', op: 'change' },
  { kind: 'object', op: 'change' },
  { kind: 'object', op: 'remove' },
  { kind: 'rule', op: 'add' },
  { kind: 'rule', op: 'change' },
  { kind: 'rule', op: 'change' },
  { kind: 'rule', op: 'move' },
  { kind: 'rule', op: 'remove' },
  { kind: 'policy', op: 'change' },
];

/** One company's firewall configuration. */
export class Firewall {
  readonly #plan: FirewallPlan;
  readonly #objects: Map<string, FirewallObject>;
  readonly #policies: Map<string, FirewallPolicy>;
  readonly #changes: FirewallChange[] = [];
  #scheduled = 0;
  #ordered = 0;

  constructor(plan: FirewallPlan) {
    this.#plan = plan;
    this.#objects = new Map(firstObjects(plan.seed, plan.company).map((o) => [o.id, o]));
    this.#policies = new Map(firstPolicies(plan.seed, plan.company).map((p) => [p.id, p]));
  }

  /** All objects at `nowMs`. */
  objects(nowMs: number): readonly FirewallObject[] {
    this.#advance(nowMs);
    return [...this.#objects.values()];
  }

  /** All policies with their rules at `nowMs`. */
  policies(nowMs: number): readonly FirewallPolicy[] {
    this.#advance(nowMs);
    return [...this.#policies.values()];
  }

  /** Every change made up to `nowMs`, oldest first. */
  changes(nowMs: number): readonly FirewallChange[] {
    this.#advance(nowMs);
    return [...this.#changes];
  }

  /** The first change in a span of time, its end excluded, up to `nowMs`. */
  changeWithin(fromMs: number, toMs: number, nowMs: number): FirewallChange | null {
    this.#advance(nowMs);
    const [from, to] = [new Date(fromMs).toISOString(), new Date(toMs).toISOString()];
    let [low, high] = [0, this.#changes.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((this.#changes[middle]?.at ?? '') < from) low = middle + 1;
      else high = middle;
    }
    const change = this.#changes[low];
    return change !== undefined && change.at < to ? change : null;
  }

  /** Makes a change now. Throws if it names something that does not exist. */
  change(order: FirewallOrder, nowMs: number): FirewallChange {
    this.#advance(nowMs);
    this.#ordered += 1;
    const random = new Random(this.#plan.seed, saltOf(this.#plan.company), 1, this.#ordered);
    return this.#apply(order, random, `n${this.#ordered}`, nowMs);
  }

  #advance(nowMs: number): void {
    const { seed, company, epochMs, everyMs } = this.#plan;
    if (everyMs <= 0) return;
    const due = Math.max(0, Math.floor((nowMs - epochMs) / everyMs));
    while (this.#scheduled < due) {
      this.#scheduled += 1;
      const random = new Random(seed, saltOf(company), 2, this.#scheduled);
      const atMs = epochMs + this.#scheduled * everyMs;
      const order = random.pick(SCHEDULED);
      if (this.#canApply(order)) this.#apply(order, random, `s${this.#scheduled}`, atMs);
    }
  }

  // Control calls may have emptied a kind; the schedule then waits until a change is possible.
  #canApply(order: FirewallOrder): boolean {
    if (order.kind !== 'object') return this.#policies.size > 0;
    return order.op === 'add' || [...this.#objects.values()].some((object) => !object.shared);
  }

  #apply(order: FirewallOrder, random: Random, tag: string, atMs: number): FirewallChange {
    const at = new Date(atMs).toISOString();
    const done = { kind: order.kind, op: order.op, at };
    let id: string;
    let policyId: string | null = null;
    switch (order.kind) {
      case 'object':
        id = this.#changeObject(order, random, tag, at);
        break;
      case 'policy':
        id = this.#changePolicy(order, random, tag, at);
        break;
      case 'rule': {
        const policy = chosen(this.#policies, order.policyId, random, 'policy');
        policyId = policy.id;
        const changed = changeRule(policy.forward_rules, order, random, tag);
        id = changed.id;
        this.#put({ ...policy, forward_rules: changed.rules }, at);
        break;
      }
    }
    const change: FirewallChange = { ...done, id, policyId };
    this.#changes.push(change);
    return change;
  }

  #changeObject(order: FirewallOrder, random: Random, tag: string, at: string): string {
    if (order.op === 'add') {
      const object = newObject(random, order.id ?? `obj-${tag}`, at);
      this.#objects.set(object.id, object);
      return object.id;
    }
    const own = new Map([...this.#objects].filter(([, object]) => !object.shared));
    const object = chosen(order.id === undefined ? own : this.#objects, order.id, random, 'object');
    if (order.op === 'remove') {
      this.#objects.delete(object.id);
    } else {
      const description = `changed ${at} (${tag})`;
      this.#objects.set(object.id, { ...object, description, updated_at: at });
    }
    return object.id;
  }

  #changePolicy(order: FirewallOrder, random: Random, tag: string, at: string): string {
    if (order.op === 'add') {
      const policy = newPolicy(random, order.id ?? `pol-${tag}`, at);
      this.#policies.set(policy.id, policy);
      return policy.id;
    }
    const policy = chosen(this.#policies, order.id, random, 'policy');
    if (order.op === 'remove') this.#policies.delete(policy.id);
    else this.#put({ ...policy, description: `changed ${at} (${tag})` }, at);
    return policy.id;
  }

  #put(policy: FirewallPolicy, at: string): void {
    const revised = { ...policy, revision: policy.revision + 1, updated_at: at };
    this.#policies.set(policy.id, revised);
  }
}

interface ChangedRules {
  readonly id: string;
  readonly rules: readonly FirewallRule[];
}

function changeRule(
  rules: readonly FirewallRule[],
  order: FirewallOrder,
  random: Random,
  tag: string,
): ChangedRules {
  // A policy without rules gets a new one whatever was drawn: the schedule must not throw.
  if (order.op === 'add' || (rules.length === 0 && order.id === undefined)) {
    const rule = newRule(random, order.id ?? `fr-${tag}`);
    return { id: rule.id, rules: rules.toSpliced(random.below(rules.length + 1), 0, rule) };
  }
  const rule = chosen(new Map(rules.map((r) => [r.id, r])), order.id, random, 'rule');
  const at = rules.indexOf(rule);
  const rest = rules.toSpliced(at, 1);
  switch (order.op) {
    case 'remove':
      return { id: rule.id, rules: rest };
    case 'move':
      return { id: rule.id, rules: rest.toSpliced(at === 0 ? rest.length : 0, 0, rule) };
    case 'change': {
      const changed = {
        ...rule,
        enabled: !rule.enabled,
        name: `${rule.name.slice(0, 40)} (${tag})`,
      };
      return { id: rule.id, rules: rules.toSpliced(at, 1, changed) };
    }
  }
}

function chosen<T>(
  all: ReadonlyMap<string, T>,
  id: string | undefined,
  random: Random,
  what: string,
): T {
  const found = id === undefined ? [...all.values()][random.below(all.size)] : all.get(id);
  if (found === undefined)
    throw new Error(`changing the firewall: there is no ${what} ${id ?? 'left'}`);
  return found;
}
