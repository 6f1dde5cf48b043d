// The typed fields below `sluice` that rules and dashboards need, and that ECS does not have: the
// target, the kind of actor, the changes as a flat list, the run of an agent, the number of
// conflicts. Lists of objects are useless to a rule: a search index joins no `field` with its `to`.
// Invariants: each value is also in the OCSF part of the event; a field has one type in every
// event; each inspected value is reported as a look.

import {
  isObject,
  type JsonObject,
  type Look,
  type OcsfEvent,
  partOfChange,
  sidesOf,
} from '../src/contracts/index.ts';
import { actingUser, firstOf, part, textOf } from './parts.ts';

/** The fields; a missing one is unknown. */
export interface OwnFields {
  readonly target?: {
    readonly type?: string | undefined;
    readonly uid?: string | undefined;
    readonly name?: string | undefined;
  };
  readonly actor?: { readonly kind: 'user' | 'agent' | 'system' };
  /** `field=value` for each field that has a new value. */
  readonly change?: readonly string[];
  readonly run?: string;
  readonly conflicts?: number;
}

/** More entries are left out, those of lists first; the whole change is in `sluice.ocsf`. */
const entriesMax = 10_000;
/** In UTF-16 units: the index template does not index longer ones. */
const entryLengthMax = 1_024;
/** Lists with more pairs of values are compared whole, since each pair costs a look. */
const pairsMax = 64;
const depthMax = 6;
const systemTypes: ReadonlySet<unknown> = new Set([3, 4]);
const adminType = 2;
const unknownType = 0;
const authentication = 3002;

/** Collects the looks at values. */
class Looks {
  readonly #looks: Look[] | undefined;

  constructor(looks: Look[] | undefined) {
    this.#looks = looks;
  }

  see(value: unknown, as: Look['as'], bytesMax = Number.POSITIVE_INFINITY): void {
    this.#looks?.push({ value, as, bytesMax, rival: undefined });
  }

  /** Each value is compared with each earlier one. */
  compare(values: readonly unknown[], earlier: readonly unknown[]): void {
    if (this.#looks === undefined) return;
    if (values.length * earlier.length > pairsMax) {
      for (const value of [...values, ...earlier]) this.see(value, 'other');
      return;
    }
    const bytesMax = Number.POSITIVE_INFINITY;
    for (const value of values)
      for (const rival of earlier) this.#looks.push({ value, as: 'text', bytesMax, rival });
  }

  /** A text, or a number as a text; undefined for any other value. */
  word(value: unknown): string | undefined {
    const text = typeof value === 'number' ? String(value) : textOf(value);
    if (text !== undefined) this.see(value, 'text');
    return text;
  }
}

/** The fields of an event; `looks` collects the inspected properties of its values. */
export function ownFieldsOf(ocsf: OcsfEvent, collected?: Look[]): OwnFields {
  const looks = new Looks(collected);
  const unmapped = part(ocsf.unmapped);
  const target = targetOf(ocsf, looks);
  const kind = kindOf(ocsf, looks);
  const change = changeOf(ocsf, looks);
  const run = runOf(unmapped, target, looks);
  const conflicts = conflictsOf(unmapped, looks);
  return {
    ...(target !== undefined && { target }),
    ...(kind !== undefined && { actor: { kind } }),
    ...(change.length > 0 && { change }),
    ...(run !== undefined && { run }),
    ...(conflicts !== undefined && { conflicts }),
  };
}

/**
 * The roles of the actor; undefined if unknown. Roles elsewhere in the record may be those of the
 * target, such as a granted role.
 */
export function rolesOf(ocsf: OcsfEvent, collected?: Look[]): readonly string[] | undefined {
  const looks = new Looks(collected);
  const { actor, user } = part(ocsf.unmapped);
  const isLogin = ocsf.class_uid === authentication;
  for (const holder of [part(actor), ...(isLogin ? [part(user)] : [])]) {
    const given = holder.roles ?? holder.role;
    const roles = (Array.isArray(given) ? given : [given]).flatMap((one) => looks.word(one) ?? []);
    if (roles.length > 0) return roles;
  }
  return actingUser(ocsf).type_id === adminType ? ['admin'] : undefined;
}

function targetOf(ocsf: OcsfEvent, looks: Looks): OwnFields['target'] {
  const resource = firstOf(ocsf.resources);
  const { type, uid, name } = Object.keys(resource).length > 0 ? resource : part(ocsf.entity);
  const target = { type: looks.word(type), uid: looks.word(uid), name: looks.word(name) };
  const isKnown = target.type ?? target.uid ?? target.name;
  return isKnown === undefined ? undefined : target;
}

function kindOf(ocsf: OcsfEvent, looks: Looks): 'user' | 'agent' | 'system' | undefined {
  const { app_name: app, app_uid: uid } = part(ocsf.actor);
  if (app !== undefined || uid !== undefined) return 'agent';
  const { type_id: type, name, uid: userUid } = actingUser(ocsf);
  if (systemTypes.has(type)) return 'system';
  // API Activity needs a user: this one stands for an actor that the record does not name.
  if (type === unknownType && userUid === undefined) {
    looks.see(name, 'other');
    if (name === 'unknown') return undefined;
  }
  return name === undefined && userUid === undefined ? undefined : 'user';
}

/** Unmapped members of a record that may be a list of changes. */
const changeLists = ['changes', 'diff', 'modified_properties', 'modifiedProperties'];
const creation = 1;

/** The data of the target before and after the event; undefined: unknown. */
function dataOf(
  ocsf: OcsfEvent,
  looks?: Looks,
): { readonly before?: unknown; readonly after?: unknown } {
  const data = part(firstOf(ocsf.resources).data);
  const after = data.after ?? part(ocsf.entity_result).data;
  if (after !== undefined) {
    // A created entity has its first state in `entity` and in `entity_result`.
    const entity = ocsf.activity_id === creation ? undefined : part(ocsf.entity).data;
    return { before: data.before ?? entity, after };
  }
  // A log, or a change of a collection with a mapping of its own.
  const unmapped = part(ocsf.unmapped);
  if (isObject(unmapped.after)) return { before: unmapped.before, after: unmapped.after };
  for (const name of changeLists) {
    const sides = sidesOf(unmapped[name] ?? null);
    if (sides === undefined) continue;
    for (const field of fieldNamesOf(unmapped[name])) looks?.see(field, 'other');
    return sides;
  }
  return {};
}

/** The texts of a list of changes that may be names of fields. */
function fieldNamesOf(list: unknown): readonly unknown[] {
  return (Array.isArray(list) ? list : []).flatMap((one) =>
    Object.entries(part(one)).flatMap(([key, value]) =>
      partOfChange(key) === 'field' ? [value] : [],
    ),
  );
}

/** `field=value` for each value of the new state, and the values themselves. */
export function stateOf(ocsf: OcsfEvent): {
  readonly entries: readonly string[];
  readonly values: readonly unknown[];
} {
  const { after } = dataOf(ocsf);
  const now = new Map<string, unknown[]>();
  if (isObject(after)) scalarsOf(after, '', now);
  const values = [...now.values()].flat().slice(0, entriesMax);
  const entries = [...now].flatMap(([path, of]) => of.map((value) => entryOf(`${path}=`, value)));
  return { entries: entries.slice(0, entriesMax), values };
}

function changeOf(ocsf: OcsfEvent, looks: Looks): readonly string[] {
  const data = dataOf(ocsf, looks);
  if (!isObject(data.after)) return [];
  const before = new Map<string, unknown[]>();
  scalarsOf(data.before, '', before);
  const now = new Map<string, unknown[]>();
  scalarsOf(data.after, '', now);
  const single: string[] = [];
  const listed: string[] = [];
  for (const [path, values] of now) {
    const earlier = before.get(path) ?? [];
    const known = new Set(earlier);
    const name = `${path}=`;
    looks.compare(values, earlier);
    for (const value of values) {
      looks.see(value, 'text', Math.max(0, entryLengthMax - Buffer.byteLength(name)));
      if (known.has(value)) continue;
      // A long list must not displace the other fields.
      const entries = values.length === 1 ? single : listed;
      if (entries.length < entriesMax) entries.push(entryOf(name, value));
    }
  }
  return [...single, ...listed].slice(0, entriesMax);
}

function entryOf(name: string, value: unknown): string {
  const entry = `${name}${String(value)}`;
  return entry.length <= entryLengthMax ? entry : entry.slice(0, entryLengthMax).toWellFormed();
}

/** Texts, numbers, booleans and nulls by path; members of a list have the list's path. */
function scalarsOf(value: unknown, path: string, into: Map<string, unknown[]>, depth = 0): void {
  if (value === undefined || depth > depthMax) return;
  if (Array.isArray(value)) {
    for (const one of value) scalarsOf(one, path, into, depth + 1);
  } else if (isObject(value)) {
    for (const key in value)
      scalarsOf(value[key], path === '' ? key : `${path}.${key}`, into, depth + 1);
  } else if (path !== '') {
    const known = into.get(path);
    if (known === undefined) into.set(path, [value]);
    else known.push(value);
  }
}

function runOf(
  unmapped: JsonObject,
  target: OwnFields['target'],
  looks: Looks,
): string | undefined {
  const { run_id: own, runId: camel, agent_run_id: agent } = unmapped;
  const run = part(unmapped.run);
  const given = run.run_id ?? run.id ?? own ?? camel ?? agent;
  const isRun = /^(?:agent[ _-]?)?run$/i.test(target?.type ?? '');
  return looks.word(given) ?? (isRun ? target?.uid : undefined);
}

function conflictsOf(unmapped: JsonObject, looks: Looks): number | undefined {
  const given = unmapped.conflicts ?? unmapped.conflict_count ?? unmapped.conflicting_rules;
  if (Array.isArray(given)) return given.length;
  if (typeof given !== 'number') return undefined;
  looks.see(given, 'integer');
  return Number.isSafeInteger(given) ? given : undefined;
}
