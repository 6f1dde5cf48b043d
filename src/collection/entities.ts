// Parses a collection's responses into entities. An entity's text consists of upstream's own bytes: numbers keep every
// digit, and bytes that are not UTF-8 are kept (tools/lossless-text.ts). An entity with parts stores their order as a
// list of ids, and a part does not store its position. So a rule inserted at the top of a policy is one created rule
// and one updated policy, and no change of the rules below.

import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import {
  type CollectionStream,
  type EntityKind,
  isObject,
  type Json,
  type JsonObject,
} from '../contracts/index.ts';
import { partialObjectSign, partialSign, type Reported, readJson } from '../list/index.ts';

import {
  bomEnd,
  cutRecords,
  losslessBytes,
  losslessText,
  shownText,
  sourceBytesAt,
  sourceTextAt,
  unescapedBytes,
  valueAt,
} from '../tools/index.ts';

/** One entity, as read. */
export interface Entity {
  /** Unique within its stream: kind and id, and for a part also those of its parent. */
  readonly key: string;
  readonly kind: string;
  readonly id: string;
  readonly name?: string;
  readonly parentId?: string;
  /** For a part: the parent's list that contains it, e.g. `nat_rules`, and its index there (not content). */
  readonly list?: string;
  readonly place?: number;
  /** The entity as upstream sent it, JSON; a lossless text. */
  readonly text: string;
  /** A digest of its list element; absent if the list was not read. */
  readonly listed?: string;
}

/** One element of a list. */
export interface Element {
  readonly value: JsonObject;
  /** As upstream sent it; a lossless text. */
  readonly text: string;
  /** As text, a number with all its digits; null: it has none. */
  readonly id: string | null;
}

/** The parts of an entity's key. The key is their JSON, so no two ids can collide. */
type KeyParts = readonly [kind: string, id: string, list?: string, part?: string];

/** An element of a list; null if it is no object. */
export function elementOf(
  value: Json | undefined,
  bytes: Uint8Array,
  ids: readonly string[],
): Element | null {
  if (!isObject(value)) return null;
  return { value, text: losslessText(bytes), id: idOf(value, bytes, ids) };
}

/**
 * The elements of a list within an entity as its parts, each with a unique id: upstream's, or a digest of its content,
 * numbered if it repeats.
 */
function partsOf(
  kind: string,
  elements: readonly Element[],
  { parentId, list }: { readonly parentId: string; readonly list: string },
): Entity[] {
  const times = new Map<string, number>();
  return elements.map(({ value, text, id: own }, index) => {
    const digest = () => createHash('sha256').update(shownText(text)).digest('hex').slice(0, 16);
    const name = own ?? `sha256:${digest()}`;
    const n = (times.get(name) ?? 0) + 1;
    times.set(name, n);
    const id = n === 1 ? name : `${name}#${n}`;
    const entity = entityOf([kind, parentId, list, id], { value, text, id });
    return { ...entity, parentId, list, place: index + 1 };
  });
}

/**
 * An entity and its parts, from the response for its id: the object itself, or wrapped in `data`. `listed`: its list
 * element; for a single object without a list, its `id` is used if the response has none. Null if the response is
 * another entity, or holds parts outside a list. If the response reports missing data (`lost`), only its parts were
 * really seen.
 */
export function detailEntities(
  { name: stream, entity: { kind, ids }, detail, single = false }: CollectionStream,
  body: Uint8Array,
  { listed, id: asked }: { readonly listed: Element; readonly id: string },
): { readonly entities: readonly Entity[]; readonly lost: Reported | null } | null {
  const read = readJson(body, `reading ${stream}`);
  const parsed = read.good ? read.value : null;
  if (!isObject(parsed)) return null;
  const isWrapped = isObject(parsed.data) && idOf(parsed, body, ids) === null;
  const value = isWrapped ? (parsed.data as JsonObject) : parsed;
  const bytes = isWrapped ? (sourceBytesAt(body, 'data') ?? new Uint8Array()) : body;
  const sign = isWrapped ? partialSign(parsed) : partialObjectSign(parsed);
  const lost = sign === null ? null : { sign, members: parsed };
  const id = idOf(value, bytes, ids) ?? asked;
  const isOther = Object.keys(value).length === 0 || (id !== asked && !single);
  if (isOther) return lost && { entities: [], lost };
  const members = new Map<string, string>();
  const parts: Entity[] = [];
  for (const name of namesIn(value, bytes)) {
    const list = shownText(name);
    const member = value[list];
    const shape = detail?.parts;
    // A count of parts may have the name of the parts.
    if (shape?.isList(list) !== true || typeof member === 'number') {
      members.set(name, memberText(bytes, name));
      continue;
    }
    const elements = elementsAt(member, { bytes, name, shape });
    if (elements === null && lost !== null) continue;
    if (elements === null) return null;
    const own = partsOf(shape.kind, elements, { parentId: id, list });
    parts.push(...own);
    members.set(name, JSON.stringify(own.map((part) => part.id)));
  }
  const shown = losslessBytes(listed.text);
  for (const name of namesIn(listed.value, shown)) {
    if (!members.has(name)) members.set(name, memberText(shown, name));
  }
  const isText = isUtf8(bytes) && isUtf8(shown);
  const nameText = (name: string) =>
    isText ? JSON.stringify(name) : unescapedBytes(JSON.stringify(name));
  const lines = Array.from(members, ([name, member]) => `${nameText(name)}:${member}`);
  const whole = entityOf([kind, id], { value, text: `{${lines.join(',')}}`, id });
  return { entities: [whole, ...parts], lost };
}

/** Names of the members of the object in these bytes; lossless texts. */
function namesIn(value: JsonObject, bytes: Uint8Array): readonly string[] {
  if (isUtf8(bytes)) return Object.keys(value);
  return Object.keys(JSON.parse(losslessText(bytes.subarray(bomEnd(bytes)))) as JsonObject); // the same
}

function memberText(bytes: Uint8Array, name: string): string {
  const found = sourceBytesAt(bytes, name);
  return found === null ? 'null' : losslessText(found);
}

/** The parts of an entity's key: its kind, its id for a request, and for a part the list that contains it. */
export function keyParts(key: string): {
  readonly kind: string;
  readonly id: string;
  readonly list: string | null;
} {
  const [kind, id, list, part] = JSON.parse(key) as KeyParts; // made here alone
  return { kind, id, list: part === undefined ? null : (list ?? null) };
}

/** The elements of a list within an entity; null if it is no list of objects. */
function elementsAt(
  member: Json | undefined,
  { bytes, name, shape }: { bytes: Uint8Array; name: string; shape: EntityKind },
): readonly Element[] | null {
  if (!Array.isArray(member)) return null;
  const { starts, ends } = cutRecords(bytes, name);
  const elements = (member as readonly Json[]).flatMap(
    (value, at) => elementOf(value, bytes.subarray(starts[at], ends[at]), shape.ids) ?? [],
  );
  return elements.length === member.length ? elements : null;
}

/** The id as text: the first path with a text or a number. */
function idOf(value: JsonObject, bytes: Uint8Array, ids: readonly string[]): string | null {
  for (const path of ids) {
    const id = valueAt(value, path);
    if (typeof id === 'string' && id !== '') return id;
    if (typeof id === 'number') return sourceTextAt(bytes, path);
  }
  return null;
}

/** An element as an entity, under its own key. */
export function entityOf(
  key: KeyParts,
  { value: { name }, text, id }: Element & { readonly id: string },
): Entity {
  const isNamed = typeof name === 'string' && name !== '';
  return { key: JSON.stringify(key), kind: key[0], id, text, ...(isNamed ? { name } : {}) };
}
