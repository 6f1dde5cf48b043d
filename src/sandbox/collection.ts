// One collection of the invented company: sites, hosts, tickets, block-list entries. Its entities are created, changed
// and deleted by arithmetic (life.ts) at the clock's steps (steps.ts), and by control calls. Invariant: an entity's
// content is a pure function of seed, index and the times of its changes. Memory holds only the effects of control
// calls.
import type { ListBehaviour } from './behaviour.ts';
import { birthOf, deathOf, eventAt, existing, type Life, touchesOf } from './life.ts';
import { Random, saltOf } from './random.ts';
import type { Steps } from './steps.ts';

/** The inputs of an entity's content. */
export interface EntityContext {
  readonly id: string;
  readonly index: number;
  /** Number of its changes. */
  readonly version: number;
  /** Time of creation, then times of changes, oldest first; RFC 3339. */
  readonly times: readonly [created: string, ...changed: string[]];
  /** The same draws for every version. */
  readonly base: Random;
  /** Different draws for each version. */
  readonly fresh: Random;
}

/** A collection as a resource declares it. */
export interface CollectionPlan {
  /** The name of an entity in audit events, such as `site`. */
  readonly kind: string;
  /** The path of its list, or the part before an entity's id. */
  readonly path: string;
  readonly company: string | null;
  readonly life: Life;
  /** Ids of the core are listed; others are prefix and number, counted up from `first`. */
  readonly ids: {
    readonly prefix: string;
    readonly first: number;
    readonly core?: readonly string[];
  };
  /** An entity's content; its id must be the first member. */
  readonly record: (moment: EntityContext) => object;
  /** The name of a change in audit events; default: create, update, delete. */
  readonly verb?: (op: SandboxChange['op'], version: number) => string;
}

/** A change of a collection, or one that only the audit trail reports. */
export interface SandboxChange {
  readonly kind: string;
  readonly path: string;
  readonly company: string | null;
  readonly op: 'created' | 'updated' | 'deleted';
  readonly id: string;
  readonly version: number;
  readonly at: string;
  /** Whether an audit event reports it. */
  readonly explained: boolean;
  /** Whether it happened; otherwise only the audit event did. */
  readonly seen: boolean;
}

/** A change to make now. */
export interface ChangeOrder {
  readonly op: SandboxChange['op'];
  /** The entity to change, or the id of a new one; default: the newest, or a new id. */
  readonly id?: string;
  /** How many entities, without `id`. Default 1. */
  readonly count?: number;
  readonly explained?: boolean;
  readonly seen?: boolean;
}

/** Dependencies of a collection. `turn` is its turn in the clock's cycle. */
export interface SandboxCollectionDeps {
  readonly seed: number;
  readonly turn: number;
  readonly steps: Steps;
  readonly behaviour: (path: string) => ListBehaviour;
  readonly now: () => number;
}

/** Entities created by control calls are numbered from here, after all that steps create. */
const ORDERED_FROM = 1_000_000_000;

/** A collection in its present state. */
export class Collection {
  readonly plan: CollectionPlan;
  readonly #deps: SandboxCollectionDeps;
  readonly #salt: number;
  readonly #bornByOrder = new Map<number, { readonly id: string; readonly atMs: number }>();
  readonly #touchedByOrder = new Map<number, number[]>();
  /** The last step of an entity before a control call deleted it. */
  readonly #goneByOrder = new Map<number, number>();
  readonly #ordered: SandboxChange[] = [];
  #keys: { readonly of: string; readonly keys: readonly number[] } = { of: '', keys: [] };

  constructor(plan: CollectionPlan, deps: SandboxCollectionDeps) {
    this.plan = plan;
    this.#deps = deps;
    this.#salt = saltOf(plan.path);
  }

  /** The indices of the present entities, oldest first. */
  keys(): readonly number[] {
    const done = this.#done();
    const of = `${done} ${this.#bornByOrder.size} ${this.#goneByOrder.size}`;
    if (this.#keys.of !== of) {
      const all = [...existing(this.plan.life, done), ...this.#bornByOrder.keys()];
      this.#keys = { of, keys: all.filter((index) => !this.#goneByOrder.has(index)) };
    }
    return this.#keys.keys;
  }

  /** An entity's present or last content; null if no entity had this index. */
  entity(index: number): object | null {
    const moment = this.moment(index);
    return moment === null ? null : this.plan.record(moment);
  }

  /** The inputs of an entity's content; see `entity`. */
  moment(index: number): EntityContext | null {
    const { life } = this.plan;
    const comes = life.start > life.core && index < ORDERED_FROM;
    const made = index < life.start || (comes && birthOf(life, index) < this.#done());
    return made || this.#bornByOrder.has(index)
      ? this.#momentOf(index, this.#timesOf(index))
      : null;
  }

  /** The index of an assigned id, whether or not its entity still exists. */
  indexOf(id: string): number | null {
    const { prefix, first, core = [] } = this.plan.ids;
    const ordered = [...this.#bornByOrder].find(([, born]) => born.id === id)?.[0];
    const numbered = id.startsWith(prefix) ? Number(id.slice(prefix.length)) - first : Number.NaN;
    const index = [ordered, core.indexOf(id), numbered].find((n = -1) => n >= 0) ?? null;
    return index !== null && this.idOf(index) === id && this.moment(index) !== null ? index : null;
  }

  /** Whether the entity exists now. */
  stands(index: number): boolean {
    return this.moment(index) !== null && this.#goneAtStep(index) >= this.#done();
  }

  /** How many steps ago an entity was deleted; 0 if it exists. */
  stepsGone(index: number): number {
    return Math.max(0, this.#done() - this.#goneAtStep(index));
  }

  idOf(index: number): string {
    const { prefix, first, core = [] } = this.plan.ids;
    return this.#bornByOrder.get(index)?.id ?? core[index] ?? `${prefix}${first + index}`;
  }

  /** Every change so far, in the order of their times. */
  *changes(): Generator<SandboxChange> {
    const done = this.#done();
    let ordered = 0;
    for (let step = 0; step < done; step += 1) {
      const change = this.changeAt(step);
      if (change === null) continue;
      for (; (this.#ordered[ordered]?.at ?? '~') < change.at; ordered += 1) {
        yield* this.#ordered.slice(ordered, ordered + 1);
      }
      yield change;
    }
    yield* this.#ordered.slice(ordered);
  }

  /** The change of a step, or null. */
  changeAt(step: number): SandboxChange | null {
    const event = eventAt(this.plan.life, step);
    if (event === null) return null;
    const atMs = this.#timeOf(step);
    if ((this.#goneByOrder.get(event.index) ?? step) < step) return null;
    const explained = !this.#isDrawn('unexplained_every', step);
    const seen = event.op !== 'updated' || !this.#isUnseen(step);
    const version = this.#versionAt(event.index, step, atMs) + (seen ? 0 : 1);
    return this.#change(event.op, event.index, { version, atMs, explained, seen });
  }

  /** The entity before and after a change; null if it did not exist. */
  sidesOf({
    op,
    id,
    version,
    seen,
  }: SandboxChange): readonly [before: object | null, after: object | null] {
    const index = this.indexOf(id);
    const moment = index === null ? null : this.moment(index);
    if (index === null || moment === null) return [null, null];
    // A change that only the audit trail reports has no time, even after the next one.
    const at = (last: number, timed = last) => {
      const [created, ...changed] = moment.times;
      const times = [created, ...changed.slice(0, timed)] as const;
      return this.plan.record(this.#momentOf(index, times, last));
    };
    const before = op === 'updated' ? version - 1 : version;
    return [
      op === 'created' ? null : at(before),
      op === 'deleted' ? null : at(version, seen ? version : before),
    ];
  }

  /** Makes a change now. Throws if it names an entity that does not exist. */
  change(order: ChangeOrder): readonly SandboxChange[] {
    const atMs = this.#deps.now();
    const made = this.#ordersTargets(order).map((index) => {
      const { op, explained = true, seen = true } = order;
      if (op === 'created') {
        const id = order.id ?? `${this.plan.ids.prefix}new${index - ORDERED_FROM + 1}`;
        this.#bornByOrder.set(index, { id, atMs });
      }
      const version = (this.moment(index)?.version ?? 0) + (op === 'updated' ? 1 : 0);
      if (op === 'updated' && seen) {
        this.#touchedByOrder.set(index, [...(this.#touchedByOrder.get(index) ?? []), atMs]);
      }
      const change = this.#change(op, index, { version, atMs, explained, seen });
      if (op === 'deleted') this.#goneByOrder.set(index, this.#done() - 1);
      return change;
    });
    this.#ordered.push(...made);
    return made;
  }

  #ordersTargets({ op, id, count = 1, seen = true }: ChangeOrder): readonly number[] {
    const what = `changing ${this.plan.path}`;
    if (!seen && op !== 'updated') throw new Error(`${what}: only an update can be unseen`);
    if (op === 'created') {
      const from = ORDERED_FROM + this.#bornByOrder.size;
      if (id !== undefined && this.indexOf(id) !== null) throw new Error(`${what}: ${id} exists`);
      return Array.from({ length: id === undefined ? count : 1 }, (_, n) => from + n);
    }
    if (id === undefined) return this.keys().slice(-count);
    const index = this.indexOf(id);
    if (index === null || !this.stands(index)) throw new Error(`${what}: there is no ${id}`);
    return [index];
  }

  #change(
    op: SandboxChange['op'],
    index: number,
    {
      atMs,
      ...rest
    }: Pick<SandboxChange, 'version' | 'explained' | 'seen'> & { readonly atMs: number },
  ): SandboxChange {
    const { kind, path, company } = this.plan;
    return { kind, path, company, op, id: this.idOf(index), at: textOf(atMs), ...rest };
  }

  #momentOf(
    index: number,
    times: EntityContext['times'],
    version = times.length - 1,
  ): EntityContext {
    const { seed } = this.#deps;
    return {
      id: this.idOf(index),
      index,
      version,
      times,
      base: new Random(seed, this.#salt, index),
      fresh: new Random(seed, this.#salt, index, version + 1),
    };
  }

  #timesOf(index: number): EntityContext['times'] {
    const { life } = this.plan;
    const born = this.#bornByOrder.get(index)?.atMs ?? this.#timeOf(birthOf(life, index));
    const touched = this.#touchedByOrder.get(index) ?? [];
    if (index >= ORDERED_FROM) return [textOf(born), ...touched.map(textOf)];
    const byStep = this.#touches(index, this.#done()).map((step) => this.#timeOf(step));
    return [textOf(born), ...[...byStep, ...touched].toSorted((a, b) => a - b).map(textOf)];
  }

  #versionAt(index: number, step: number, atMs: number): number {
    const ordered = (this.#touchedByOrder.get(index) ?? []).filter((touched) => touched < atMs);
    return this.#touches(index, step + 1).length + ordered.length;
  }

  #touches(index: number, done: number): readonly number[] {
    const until = Math.min(done, this.#goneAtStep(index) + 1);
    return [...touchesOf(this.plan.life, index, until)].filter((step) => !this.#isUnseen(step));
  }

  #goneAtStep(index: number): number {
    const byLife = index < ORDERED_FROM ? deathOf(this.plan.life, index) : Number.POSITIVE_INFINITY;
    return Math.min(byLife, this.#goneByOrder.get(index) ?? Number.POSITIVE_INFINITY);
  }

  #isUnseen(step: number): boolean {
    return step >= 0 && this.#isDrawn('unseen_every', step);
  }

  #isDrawn(what: 'unexplained_every' | 'unseen_every', step: number): boolean {
    const every = this.#deps.behaviour(this.plan.path)[what];
    if (every === undefined) return false;
    return new Random(this.#deps.seed, this.#salt, saltOf(what), step).below(every) === 0;
  }

  #done(): number {
    return this.#deps.steps.done(this.#deps.turn);
  }

  #timeOf(step: number): number {
    return this.#deps.steps.timeOf(this.#deps.turn, step);
  }
}

function textOf(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
