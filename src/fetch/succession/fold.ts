// Records of two APIs made comparable. Names are folded to snake_case, ids and numbers to text,
// times to epoch milliseconds, and renamed or ignored paths are applied. What must stay true: no
// value leaves here but as a digest; two values share a digest only where they say the same.

import { hash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../contracts/json.ts';
import { foldedName } from '../../tools/folded-name.ts';
import { valueAt } from '../../tools/records.ts';
import { timeOf } from '../list/record-time.ts';

/** How the records of one side are folded. */
export interface FoldRules {
  /** Folded paths of this side by what the other side calls them; a path stands for all below it. */
  readonly rename: ReadonlyMap<string, string>;
  /** Folded paths that are left out, with all below them. */
  readonly ignore: readonly string[];
  /** Folded paths of a record's time. */
  readonly time: readonly string[];
}

/** More fields of a record are not compared. */
const fieldsMax = 200;
/** Characters of a digest, 66 bits. */
const digestChars = 11;

/** By folded path: a letter for the value's type, and a digest of the folded value. */
export function foldRecord(record: Json, rules: FoldRules): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  let count = 0;
  const visit = (value: Json, path: string): void => {
    if (value === null || count >= fieldsMax || isIgnored(path, rules.ignore)) return;
    if (isObject(value)) {
      for (const [name, inner] of membersOf(value)) {
        const folded = foldedName(name);
        visit(inner, path === '' ? folded : `${path}.${folded}`);
      }
      return;
    }
    const named = renamed(path, rules.rename);
    if (isIgnored(named, rules.ignore)) return;
    fields[named] = foldedValue(value, named, rules);
    count += 1;
  };
  visit(record, '');
  return fields;
}

/** Epoch milliseconds of the first of the paths that holds a readable time, as text or number. */
export function happenedAt(record: Json, paths: readonly string[]): number | null {
  const time = timeOf(record, paths);
  if (time !== null) return time;
  for (const path of paths) {
    const epoch = epochOf(valueAt(record, path));
    if (epoch !== null) return epoch;
  }
  return null;
}

function foldedValue(value: Exclude<Json, null>, path: string, { time }: FoldRules): string {
  const isTime = time.includes(path) || timeName.test(path);
  const epoch = isTime ? epochOf(value) : null;
  if (epoch !== null) return `e${digest(`t${epoch}`)}`;
  switch (typeof value) {
    case 'number':
      return `n${digest(`n${value}`)}`;
    case 'boolean':
      return `b${digest(`b${value}`)}`;
    case 'string': {
      const at = dated.test(value) ? timeOf({ value }, ['value']) : null;
      if (at !== null) return `t${digest(`t${at}`)}`;
      return `s${digest(`${number.test(value) ? 'n' : 's'}${value}`)}`;
    }
    default:
      return `a${digest(`a${JSON.stringify(foldedWithin(value))}`)}`;
  }
}

/** The elements of an array, with folded names, numbers as text and nothing that is null. */
function foldedWithin(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(foldedWithin);
  if (isObject(value)) {
    const members = membersOf(value).flatMap(([name, inner]): [string, Json][] =>
      inner === null ? [] : [[foldedName(name), foldedWithin(inner)]],
    );
    return Object.fromEntries(members.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
  return typeof value === 'number' ? String(value) : value;
}

function membersOf(value: JsonObject): [string, Json][] {
  return Object.entries(value).flatMap(([name, inner]): [string, Json][] =>
    inner === undefined ? [] : [[name, inner]],
  );
}

const timeName = /(^|[._])(at|time|date|timestamp|on|since|until)$/;
const dated = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;
const number = /^-?(0|[1-9]\d*)(\.\d+)?$/;
/** The years 2000 to 2100 in seconds. */
const [epochFrom, epochUntil] = [946_684_800, 4_102_444_800];

/** Epoch milliseconds of a number of seconds or milliseconds, also as text; null: it is none. */
function epochOf(value: Json | undefined): number | null {
  const isNumber = typeof value === 'number' || (typeof value === 'string' && number.test(value));
  const seconds = isNumber ? Number(value) : Number.NaN;
  if (seconds >= epochFrom && seconds < epochUntil) return Math.round(seconds * 1_000);
  if (seconds >= epochFrom * 1_000 && seconds < epochUntil * 1_000) return Math.round(seconds);
  return null;
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, digestChars);
}

/** True for a path that is left out, or stands below one. */
export function isIgnored(path: string, ignore: readonly string[]): boolean {
  return ignore.some((one) => path === one || path.startsWith(`${one}.`));
}

/** A path by the name of the longest part of it that has another one. */
export function renamed(path: string, rename: FoldRules['rename']): string {
  if (rename.size === 0) return path;
  for (let part = path; part !== ''; part = part.slice(0, Math.max(0, part.lastIndexOf('.')))) {
    const other = rename.get(part);
    if (other !== undefined) return `${other}${path.slice(part.length)}`;
  }
  return path;
}
