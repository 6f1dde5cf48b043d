// The parts of an entity that upstream sends without ids, such as rules of a policy: each gets the key of its matched
// known part (match.ts), and the entity refers to it by that key. Invariant: if all parts have ids or known content,
// the entities stay as they were read.

import { contentGroup, freshKey } from './content-keys.ts';
import type { Entity } from './entities.ts';
import { type EntityTaker, knownElements } from './listed.ts';
import { matchElements } from './match.ts';

/**
 * Entities as read, with their parts under their known keys. `isPart`: parts may be missing, so a part that only
 * resembles a known one is dropped.
 */
export async function withKnownParts(
  entities: readonly Entity[],
  taker: EntityTaker,
  isPart = false,
): Promise<readonly Entity[]> {
  const groups = Map.groupBy(
    entities.filter(({ parentId }) => parentId !== undefined),
    ({ key }) => contentGroup(key),
  );
  let named = entities;
  for (const [group, parts] of groups) {
    if (group === null) continue;
    const all = taker.known.unnamed(group);
    const isKnown = parts.every(({ key }) => all.has(key));
    if (all.size > 0 && !(isKnown && parts.length === all.size)) {
      named = await matched(named, { group, parts, isPart }, taker);
    }
  }
  return named;
}

interface Group {
  readonly group: string;
  readonly parts: readonly Entity[];
  readonly isPart: boolean;
}

async function matched(
  entities: readonly Entity[],
  { group, parts, isPart }: Group,
  taker: EntityTaker,
): Promise<readonly Entity[]> {
  const { known } = taker;
  const [{ kind, parentId = '', list = '' } = { kind: '' }] = parts;
  const elements = await knownElements(
    taker,
    group,
    await orderOf(taker, { parentId, list, entities }),
  );
  const seen = parts.map(({ key, text }) => ({ ownKey: key, text }));
  const { keys, sure } = matchElements(elements, seen, taker.rulesOf(kind));
  const renamed = new Map<string, Entity | null>();
  const used = new Set(keys.values());
  for (const [at, part] of parts.entries()) {
    const isUnsure = isPart && keys.has(at) && !sure.has(at);
    const key = keys.get(at) ?? freshKey(part.key, (one) => known.has(one) || used.has(one));
    used.add(key);
    const id = (JSON.parse(key) as readonly string[]).at(-1) ?? ''; // made from strings alone
    renamed.set(part.key, isUnsure ? null : { ...part, key, id });
  }
  const ids = new Map(parts.map(({ key, id }) => [id, renamed.get(key)?.id ?? id]));
  return entities.flatMap((entity) => {
    const part = renamed.get(entity.key);
    if (part !== undefined) return part ?? [];
    const isHolder = entity.parentId === undefined && entity.id === parentId;
    return isHolder ? { ...entity, text: renamedIn(entity.text, list, ids) } : entity;
  });
}

/** The entity that holds the parts, with the ids in one list replaced. */
function renamedIn(text: string, list: string, ids: ReadonlyMap<string, string>): string {
  const name = JSON.stringify(list);
  const before = idsIn(text, list);
  if (before === null) return text;
  const after = before.map((id) => ids.get(id) ?? id);
  // In the form that entities.ts writes; within a JSON text every quote is escaped.
  return text.replace(
    `${name}:${JSON.stringify(before)}`,
    () => `${name}:${JSON.stringify(after)}`,
  );
}

function idsIn(text: string, list: string): readonly string[] | null {
  const holder = JSON.parse(text) as Readonly<Record<string, unknown>>; // an entity is an object
  const ids = holder[list];
  return Array.isArray(ids) && ids.every((id) => typeof id === 'string') ? ids : null;
}

/** The ids in a list of an entity as last reported. */
async function orderOf(
  { known }: EntityTaker,
  of: { readonly parentId: string; readonly list: string; readonly entities: readonly Entity[] },
): Promise<readonly string[]> {
  const holder = of.entities.find(
    ({ id, parentId }) => parentId === undefined && id === of.parentId,
  );
  const state = holder && (await known.states([holder.key])).get(holder.key);
  return (state && idsIn(state.text, of.list)) ?? [];
}
