// Entities as a collection's answers show them. An entity's text is made of upstream's own bytes,
// so numbers keep every digit, and bytes that are not UTF-8 are kept (tools/lossless-text.ts). An entity with parts holds their order as a list of their ids, and a
// part does not hold its place: one rule put at the top of a policy is one rule created and one
// policy updated, not a change of every rule below it.

import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../contracts/json.ts';
import type { CollectionStream, EntityKind } from '../../contracts/source.ts';
import {
  losslessBytes,
  losslessText,
  shownText,
  unescapedBytes,
} from '../../tools/lossless-text.ts';
import { cutRecords } from '../../tools/record-list.ts';
import { bomEnd, sourceBytesAt, sourceTextAt, valueAt } from '../../tools/records.ts';
import { readJson } from '../list/body.ts';
import { partialObjectSign, partialSign, type Reported } from '../list/partial.ts';

/** One entity, as read. */
export interface Entity {
  /** Unique within its stream: kind and id, and for a part those of what it stands in. */
  readonly key: string;
  readonly kind: string;
  readonly id: string;
  readonly name?: string;
  readonly parentId?: string;
  /** The list of its parent's that it stands in, `nat_rules`, and its place (no content). */
  readonly list?: string;
  readonly place?: number;
  /** The entity as upstream sent it, JSON; a lossless text. */
  readonly text: string;
  /** A digest of what the list shows of it; left out where that was not read. */
  readonly listed?: string;
}

/** One element of a list. */
export interface Element {
  readonly value: JsonObject;
  /** As upstream sent it; a lossless text. */
  readonly text: string;
  /** As text; a number with all its digits. Null where there is none. */
  readonly id: string | null;
}

/** What an entity's key is made from; it is JSON, so that no id can be taken for two. */
type KeyParts = readonly [kind: string, id: string, list?: string, part?: string];

/** An element of a list; null where it is no object. */
export function elementOf(
  value: Json | undefined,
  bytes: Uint8Array,
  ids: readonly string[],
): Element | null {
  if (!isObject(value)) return null;
  return { value, text: losslessText(bytes), id: idOf(value, bytes, ids) };
}

/**
 * The elements of a list within an entity as parts of it, each with an id of its own: upstream's, or
 * a digest of its content, numbered where one comes again.
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
 * An entity and its parts, from the answer for its id: itself, or wrapped in `data`. `listed` is
 * what the list shows of it; where there is no list, `id` is for one that tells none. Null where
 * the answer is not that entity, or holds parts that are in no list. Where the answer reports that
 * something is missing (`lost`), only its parts were really seen.
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
    // A number of parts may well be called as they are.
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

/** Names of the members of an object that stands in these bytes; lossless texts. */
function namesIn(value: JsonObject, bytes: Uint8Array): readonly string[] {
  if (isUtf8(bytes)) return Object.keys(value);
  return Object.keys(JSON.parse(losslessText(bytes.subarray(bomEnd(bytes)))) as JsonObject); // the same
}

function memberText(bytes: Uint8Array, name: string): string {
  const found = sourceBytesAt(bytes, name);
  return found === null ? 'null' : losslessText(found);
}

/** What an entity's key says: its kind, the id to ask for, and for a part the list it stands in. */
export function keyParts(key: string): {
  readonly kind: string;
  readonly id: string;
  readonly list: string | null;
} {
  const [kind, id, list, part] = JSON.parse(key) as KeyParts; // made here alone
  return { kind, id, list: part === undefined ? null : (list ?? null) };
}

/** The elements of a list within an entity; null where it is none, or not of objects. */
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

/** The id as text: the first path at which a text or a number stands. */
function idOf(value: JsonObject, bytes: Uint8Array, ids: readonly string[]): string | null {
  for (const path of ids) {
    const id = valueAt(value, path);
    if (typeof id === 'string' && id !== '') return id;
    if (typeof id === 'number') return sourceTextAt(bytes, path);
  }
  return null;
}

/** An element as an entity, under a key of its own. */
export function entityOf(
  key: KeyParts,
  { value: { name }, text, id }: Element & { readonly id: string },
): Entity {
  const isNamed = typeof name === 'string' && name !== '';
  return { key: JSON.stringify(key), kind: key[0], id, text, ...(isNamed ? { name } : {}) };
}
