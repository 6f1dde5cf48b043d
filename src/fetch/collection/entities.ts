// Entities as a collection's answers show them. An entity's text is made of upstream's own bytes, so numbers keep every
// digit. An entity with parts holds their order as a list of their ids, and a part does not hold its place: one rule put
// at the top of a policy is one rule created and one policy updated, not a change of every rule below it.

import { createHash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../contracts/json.ts';
import type { EntityDetail, EntityKind } from '../../contracts/source.ts';
import { cutRecords, sourceTextAt } from '../../tools/records.ts';

/** One entity, as read. */
export interface Entity {
  /** Unique within its stream: kind and id, and for a part those of what it stands in. */
  readonly key: string;
  readonly kind: string;
  readonly id: string;
  readonly name?: string;
  readonly parentId?: string;
  /** The list of its parent's that it stands in, e.g. `nat_rules`, and its place there from 1; a place is no content. */
  readonly list?: string;
  readonly place?: number;
  /** The entity as upstream sent it, UTF-8 JSON. */
  readonly text: string;
}

/** One element of a list. */
export interface Element {
  readonly value: JsonObject;
  /** As upstream sent it. */
  readonly text: string;
  /** As text; a number with all its digits. Null where there is none. */
  readonly id: string | null;
}

/** What an entity's key is made from; it is JSON, so that no id can be taken for two. */
type KeyParts = readonly [kind: string, id: string, list?: string, part?: string];

const decoder = new TextDecoder();

/** An element of a list; null where it is no object. */
export function elementOf(
  value: Json | undefined,
  bytes: Uint8Array,
  { ids }: EntityKind,
): Element | null {
  if (!isObject(value)) return null;
  return { value, text: decoder.decode(bytes), id: idOf(value, bytes, ids) };
}

/** The elements of a list as entities. */
export function elementEntities({ kind }: EntityKind, elements: readonly Element[]): Entity[] {
  const named = namer();
  return elements.map((element) => {
    const id = named(element);
    return entityOf({ kind, id, key: [kind, id], text: element.text }, element.value);
  });
}

/**
 * An entity and its parts, from the answer for its id: itself, or wrapped in `data`. `listed` is what the list shows of
 * it. Null where the answer is not that entity, or holds parts that are in no list.
 */
export function detailEntities(
  { kind, ids }: EntityKind,
  { parts }: EntityDetail,
  { listed, id, body, parsed }: { listed: Element; id: string; body: Uint8Array; parsed: Json },
): readonly Entity[] | null {
  if (!isObject(parsed)) return null;
  const isWrapped = isObject(parsed.data) && idOf(parsed, body, ids) === null;
  const [value, at] = isWrapped ? [parsed.data as JsonObject, 'data.'] : [parsed, ''];
  const own = idOf(value, textBytes(sourceTextAt(body, isWrapped ? 'data' : '') ?? ''), ids);
  if (own !== null && own !== id) return null;
  const members = new Map<string, string>();
  const found: Entity[] = [];
  for (const [name, member] of Object.entries(value)) {
    const path = `${at}${name}`;
    const isList = parts?.isList(name) === true;
    if (parts !== undefined && isList && Array.isArray(member)) {
      const within = partEntities(parts, { key: [kind, id, name], path }, member, body);
      if (within === null) return null;
      found.push(...within);
      members.set(name, JSON.stringify(within.map((part) => part.id)));
    } else if (isList && typeof member !== 'number') {
      return null;
    } else {
      members.set(name, sourceTextAt(body, path) ?? 'null');
    }
  }
  for (const name of Object.keys(listed.value)) {
    if (!members.has(name)) members.set(name, sourceTextAt(textBytes(listed.text), name) ?? 'null');
  }
  const text = `{${[...members].map(([name, member]) => `${JSON.stringify(name)}:${member}`).join(',')}}`;
  return [entityOf({ kind, id, key: [kind, id], text }, value), ...found];
}

/** What the key of an entity says: the id to ask for, and for a part the list that it stands in. */
export function keyParts(key: string): { readonly id: string; readonly list: string | null } {
  const [, id, list, part] = JSON.parse(key) as KeyParts; // made here alone
  return { id, list: part === undefined ? null : (list ?? null) };
}

function partEntities(
  { kind, ids }: EntityKind,
  { key: [, parent, list], path }: { key: readonly [string, string, string]; path: string },
  values: readonly Json[],
  body: Uint8Array,
): readonly Entity[] | null {
  const slices = cutRecords(body, path);
  const named = namer();
  const entities: Entity[] = [];
  for (const [index, value] of values.entries()) {
    const bytes = body.subarray(slices.starts[index], slices.ends[index]);
    const element = elementOf(value, bytes, { kind, ids });
    if (element === null) return null;
    const id = named(element);
    const key: KeyParts = [kind, parent, list, id];
    const stands = { parentId: parent, list, place: index + 1 };
    entities.push({ ...entityOf({ kind, id, key, text: element.text }, element.value), ...stands });
  }
  return entities;
}

/** The id as text: the first member that holds a text or a number. */
function idOf(value: JsonObject, bytes: Uint8Array, ids: readonly string[]): string | null {
  for (const name of ids) {
    const id = Object.hasOwn(value, name) ? value[name] : undefined;
    if (typeof id === 'string' && id !== '') return id;
    if (typeof id === 'number') return sourceTextAt(bytes, name);
  }
  return null;
}

/** Gives each element an id of its own: upstream's, or a digest of its content, numbered where one comes again. */
function namer(): (element: Element) => string {
  const times = new Map<string, number>();
  return ({ id, text }) => {
    const name = id ?? `sha256:${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
    const n = (times.get(name) ?? 0) + 1;
    times.set(name, n);
    return n === 1 ? name : `${name}#${n}`;
  };
}

function entityOf(
  { kind, id, key, text }: { kind: string; id: string; key: KeyParts; text: string },
  { name }: JsonObject,
): Entity {
  const isNamed = typeof name === 'string' && name !== '';
  return { key: JSON.stringify(key), kind, id, text, ...(isNamed ? { name } : {}) };
}

function textBytes(text: string): Uint8Array {
  return Buffer.from(text);
}
