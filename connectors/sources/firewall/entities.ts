// Objects, policies and rules as entities. An entity's text is made of upstream's own bytes, so numbers keep every digit.
// A policy holds the order of its rules as a list of their ids, and a rule does not hold its place: one rule put at the top
// is one rule created and one policy updated, not a change of every rule below it.

import { createHash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../../src/contracts/json.ts';
import type { Entity } from '../../../src/contracts/source.ts';
import { cutRecords, sourceTextAt } from '../../../src/tools/records.ts';
import { policyIds } from './endpoints.ts';
import { idOf, type Row } from './listing.ts';

const decoder = new TextDecoder();
const ruleIds = ['id', 'rule_id'];

/** What an entity's key is made from; it is JSON, so that no id can be taken for two. */
type KeyParts = readonly [kind: string, ...ids: string[]];

/** The elements of a list as entities of one kind. */
export function rowEntities(kind: string, rows: readonly Row[]): readonly Entity[] {
  const named = namer();
  return rows.map((row) => {
    const id = named(row);
    return entityOf({ kind, id, key: [kind, id], text: decoder.decode(row.bytes) }, row.value);
  });
}

/**
 * A policy and its rules. `listed` is the policy as the list of policies shows it, `detail` the answer to the question
 * for it. Null where the detail is not that policy, or holds rules that are no list.
 */
export function policyEntities(listed: Row, id: string, detail: Detail): readonly Entity[] | null {
  const { value, body, at } = detail;
  const own = idOf(value, textBytes(sourceTextAt(body, at)), policyIds);
  if (own !== null && own !== id) return null;
  const members = new Map<string, string>();
  const rules: Entity[] = [];
  for (const [name, member] of Object.entries(value)) {
    const path = at === '' ? name : `${at}.${name}`;
    if (!isRuleList(name)) {
      members.set(name, sourceTextAt(body, path) ?? 'null');
    } else if (Array.isArray(member)) {
      const order = ruleEntities({ policy: id, list: name, path }, member, body);
      if (order === null) return null;
      rules.push(...order);
      members.set(name, JSON.stringify(order.map((rule) => rule.id)));
    } else if (typeof member === 'number') {
      members.set(name, sourceTextAt(body, path) ?? 'null');
    } else {
      return null;
    }
  }
  for (const name of Object.keys(listed.value)) {
    if (!members.has(name)) members.set(name, sourceTextAt(listed.bytes, name) ?? 'null');
  }
  const text = `{${[...members].map(([name, member]) => `${JSON.stringify(name)}:${member}`).join(',')}}`;
  return [entityOf({ kind: 'policy', id, key: ['policy', id], text }, value), ...rules];
}

/** The answer to the question for one policy: the policy itself, or wrapped in `data`. */
export interface Detail {
  readonly value: JsonObject;
  readonly body: Uint8Array;
  /** Path of the policy within the body. */
  readonly at: string;
}

/** Finds the policy in an answer; null where there is none. */
export function detailOf(parsed: Json, body: Uint8Array): Detail | null {
  if (!isObject(parsed)) return null;
  const inner = parsed.data;
  if (isObject(inner) && idOf(parsed, body, policyIds) === null) {
    return { value: inner, body, at: 'data' };
  }
  return { value: parsed, body, at: '' };
}

/** The key's parts, to ask upstream for the entity again. */
export function keyParts(key: string): readonly string[] {
  return JSON.parse(key) as KeyParts; // made by `entityOf` alone
}

/** `forward_rules`, `nat_rules` and whatever else a policy may have. */
function isRuleList(name: string): boolean {
  return name.toLowerCase().endsWith('rules');
}

function ruleEntities(
  { policy, list, path }: { readonly policy: string; readonly list: string; readonly path: string },
  rules: readonly Json[],
  body: Uint8Array,
): readonly Entity[] | null {
  const slices = cutRecords(body, path);
  const named = namer();
  const entities: Entity[] = [];
  for (const [index, value] of rules.entries()) {
    if (!isObject(value)) return null;
    const bytes = body.subarray(slices.starts[index], slices.ends[index]);
    const id = named({ value, bytes, id: idOf(value, bytes, ruleIds) });
    const key: KeyParts = ['rule', policy, list, id];
    const text = decoder.decode(bytes);
    const stands = { parentId: policy, list, place: index + 1 };
    entities.push({ ...entityOf({ kind: 'rule', id, key, text }, value), ...stands });
  }
  return entities;
}

/** Gives each row an id of its own: upstream's, or a digest of its content, numbered where one comes again. */
function namer(): (row: Row) => string {
  const times = new Map<string, number>();
  return ({ id, bytes }) => {
    const name = id ?? `sha256:${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}`;
    const n = (times.get(name) ?? 0) + 1;
    times.set(name, n);
    return n === 1 ? name : `${name}#${n}`;
  };
}

function entityOf(
  parts: { kind: string; id: string; key: KeyParts; text: string },
  value: JsonObject,
): Entity {
  const { kind, id, key, text } = parts;
  const name = value.name;
  return {
    key: JSON.stringify(key),
    kind,
    id,
    text,
    ...(typeof name === 'string' && name !== '' ? { name } : {}),
  };
}

function textBytes(text: string | null): Uint8Array {
  return Buffer.from(text ?? '');
}
