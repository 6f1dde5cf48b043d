// Reads a list of changes in an audit record, such as `[{"field":"enabled","from":true,"to":false}]`,
// as two objects: the fields before and after. The words for the three members differ between
// products. Invariants: a list is read whole or not at all; only names of fields decide the form of
// the result, so that a transcoded line may copy the values.

import { isObject, type Json, type JsonObject } from '../contracts/index.ts';
import { canonicalName } from './slots.ts';

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

/** Longer lists stay in `unmapped` only. */
const changesMax = 200;
const fieldLengthMax = 256;

/** The part of a change under this key; undefined: it has no meaning here. */
export function partOfChange(key: string): Part | undefined {
  return parts.get(canonicalName(key));
}

/** A list's fields before and after. */
export interface Sides {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/** The two sides; undefined if the value is no list of changes, or names a field twice. */
export function sidesOf(value: Json): Sides | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > changesMax) return undefined;
  const before: [string, Json][] = [];
  const after: [string, Json][] = [];
  const fields = new Set<string>();
  for (const one of value) {
    const change = isObject(one) ? changeOf(one) : undefined;
    if (change === undefined || fields.has(change.field)) return undefined;
    fields.add(change.field);
    before.push([change.field, change.before]);
    after.push([change.field, change.after]);
  }
  // Unlike an assignment, this makes an own property of `__proto__` as well.
  return { before: Object.fromEntries(before), after: Object.fromEntries(after) };
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
    if (part === 'before') before ??= value;
    else if (part === 'after') after ??= value;
    else if (part === 'field' && typeof value === 'string') field ??= value;
  }
  if (field === undefined || field === '' || field.length > fieldLengthMax) return undefined;
  if (before === undefined && after === undefined) return undefined;
  return { field, before: before ?? null, after: after ?? null };
}
