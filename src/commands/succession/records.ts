// Compares one record of each side for a proposed successor: which field is the id, which are times, and which fields
// only one side has. Invariants: field names are shown, which are upstream's and hostile, and never a value; one record
// proves little, and the wording reflects that.

import { isObject, type Json, type JsonObject } from '../../contracts/index.ts';
import { cleanText, foldedPath, valueAt } from '../../tools/index.ts';

/** One record of a source and one of its proposed successor; null: the list is empty. */
export interface BothRecords {
  readonly old: Json | null;
  readonly later: Json | null;
}

/** How the two are read: paths of id and times. */
export interface ReadBy {
  readonly id: string | null;
  readonly time: readonly string[];
}

/** A suggested change to a successor's block, and notes. */
export interface Suggestion {
  readonly block: JsonObject;
  readonly notes: readonly string[];
}

const namedMax = 12;
const nameLengthMax = 80;

/** Pure: compares `by.old` and `by.later` with the records. */
export function suggestionFrom(
  { old, later }: BothRecords,
  by: { readonly old: ReadBy; readonly later: ReadBy },
): Suggestion {
  if (later === null) {
    return { block: {}, notes: ['the new list is empty now: id and time are not compared'] };
  }
  const id = idIn(later, by.later.id);
  const time = timesIn(later, by.later.time);
  const notes = [...id.notes, ...time.notes];
  if (old === null) return { block: { ...id.block, ...time.block }, notes };
  const [before, after] = [formOf(old, by.old.id), formOf(later, id.path)];
  if (before !== null && after !== null && before !== after && after === 'text with letters') {
    notes.push(
      `ids look different: ${before} in the old record, ${after} in the new one; records match by equal ids only. Find the field of the new record that has the old id, and set it as succeeds.id`,
    );
  }
  const [names, others] = [pathsIn(old).map(foldedPath), pathsIn(later).map(foldedPath)];
  const gone = names.filter((name) => !others.includes(name));
  const added = others.filter((name) => !names.includes(name));
  if (gone.length > 0) notes.push(`the new record has no field ${listed(gone)}`);
  if (added.length > 0) notes.push(`the old record has no field ${listed(added)}`);
  return { block: { ...id.block, ...time.block }, notes };
}

function idIn(record: Json, path: string | null) {
  if (path !== null && valueAt(record, path) !== undefined) return { path, block: {}, notes: [] };
  const found = isObject(record)
    ? Object.keys(record).find((name) => /^id$|_id$|Id$/.test(name) && isId(record[name]))
    : undefined;
  if (found === undefined) {
    return { path: null, block: {}, notes: [`the new record has no id at ${path}: set id`] };
  }
  const notes = [`id: the new record has no field ${path}; its first field that looks like an id`];
  return { path: found, block: { id: found }, notes };
}

function timesIn(record: Json, paths: readonly string[]) {
  const none = { block: {}, notes: [] as string[] };
  if (paths.length === 0 || paths.some((path) => isTime(valueAt(record, path)))) return none;
  const found = pathsIn(record).filter((path) => isTime(valueAt(record, path)));
  const said = `time: the new record has no time at ${listed(paths)}`;
  if (found.length === 0) return { ...none, notes: [`${said}, and no other field is a time`] };
  return { block: { time: found.slice(0, 3) }, notes: [`${said}; these fields are times`] };
}

function isId(value: Json | undefined): boolean {
  return typeof value === 'string' || typeof value === 'number';
}

function isTime(value: Json | undefined): boolean {
  if (typeof value === 'string') {
    return /^\d{4}-\d\d-\d\d[T ]/.test(value) && !Number.isNaN(Date.parse(value));
  }
  return typeof value === 'number' && value > 1e9 && value < 1e14;
}

function formOf(record: Json, path: string | null): string | null {
  const value = path === null ? undefined : valueAt(record, path);
  if (typeof value === 'number') return 'a number';
  if (typeof value !== 'string') return null;
  return /^\d+$/.test(value) ? 'text of digits' : 'text with letters';
}

/** Paths of all values that are no objects; lists are one value. */
function pathsIn(record: Json, prefix = ''): readonly string[] {
  if (!isObject(record)) return [];
  return Object.entries(record).flatMap(([name, value]) =>
    isObject(value) && Object.keys(value).length > 0
      ? pathsIn(value, `${prefix}${name}.`)
      : [`${prefix}${name}`],
  );
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, namedMax).map((name) => cleanText(name, nameLengthMax));
  const more = names.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
