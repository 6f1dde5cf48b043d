// Reads a list of changes in a record, such as `[{"field":"enabled","from":true,"to":false}]`,
// as two objects: the fields before and after. The words for the three members differ between
// products. Invariants: a list is read whole or not at all; only names of fields decide the form of
// the result, so that a transcoded line may copy the values.

import { isObject, type Json, type JsonObject } from './json.ts';

/** The part of one change that a member holds. */
type Part = 'field' | 'before' | 'after';

const words: Readonly<Record<Part, string>> = {
  field: 'field fieldname path name key property propertyname attribute attributename displayname',
  before: 'from old oldvalue before previous previousvalue was',
  after: 'to new newvalue after current currentvalue now',
};
const parts: ReadonlyMap<string, Part> = new Map(
  (Object.keys(words) as Part[]).flatMap((part) =>
    words[part].split(' ').map((word) => [word, part] as const),
  ),
);

const fieldLengthMax = 256;

/** The part of a change under this key; undefined: it has no meaning here. */
export function partOfChange(key: string): Part | undefined {
  return parts.get(key.toLowerCase().replace(/[^a-z0-9]/g, ''));
}

/** A list's fields before and after. */
export interface Sides {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/**
 * The two sides; undefined if the value is no list of changes. A field that is named several times
 * has a list of its values.
 */
export function sidesOf(value: Json): Sides | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const before = new Map<string, Json[]>();
  const after = new Map<string, Json[]>();
  for (const one of value) {
    const change = isObject(one) ? changeOf(one) : undefined;
    if (change === undefined) return undefined;
    before.getOrInsert(change.field, []).push(change.before);
    after.getOrInsert(change.field, []).push(change.after);
  }
  return { before: objectOf(before), after: objectOf(after) };
}

function objectOf(side: ReadonlyMap<string, Json[]>): JsonObject {
  // Unlike an assignment, this makes an own property of `__proto__` as well.
  return Object.fromEntries(
    Array.from(side, ([field, values]) => [
      field,
      values.length === 1 ? (values[0] ?? null) : values,
    ]),
  );
}

interface Change {
  readonly field: string;
  readonly before: Json;
  readonly after: Json;
}

/** Of several members for one part, the first counts. A missing side is null. */
function changeOf(item: JsonObject): Change | undefined {
  let field: string | undefined;
  let before: Json | undefined;
  let after: Json | undefined;
  for (const key in item) {
    const value = item[key];
    if (value === undefined) continue;
    const part = partOfChange(key);
    if (part === 'before') before = before === undefined ? value : before;
    else if (part === 'after') after = after === undefined ? value : after;
    else if (part === 'field' && typeof value === 'string') field ??= value;
  }
  if (field === undefined || field === '' || field.length > fieldLengthMax) return undefined;
  if (before === undefined && after === undefined) return undefined;
  return { field, before: before ?? null, after: after ?? null };
}
