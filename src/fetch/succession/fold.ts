// Records of two APIs made comparable. Names are folded to snake_case, ids and numbers to text,
// times to epoch milliseconds, and renamed or ignored paths are applied. What must stay true: no
// value leaves here but as a digest; two values share a digest only where they say the same.

import { hash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../contracts/json.ts';
import { foldedName } from '../../tools/folded-name.ts';
import { valueAt } from '../../tools/records.ts';
import { recordTime } from '../list/record-time.ts';

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
  const visit = (value: Json, place: Place): void => {
    if (value === null || count >= fieldsMax || place.isIgnored) return;
    if (isObject(value)) {
      for (const [name, inner] of membersOf(value)) visit(inner, placeBelow(place, name, rules));
      return;
    }
    if (place.isIgnoredAsNamed) return;
    fields[place.named] = foldedValue(value, place);
    count += 1;
  };
  visit(record, topOf(rules));
  return fields;
}

/** A path of one side's records, and what is known of it. */
interface Place {
  readonly path: string;
  /** The path as the other side calls it. */
  readonly named: string;
  readonly isIgnored: boolean;
  readonly isIgnoredAsNamed: boolean;
  readonly isTime: boolean;
  readonly digests: Map<string, string>;
  /** By the names of its members, as far as they are remembered. */
  readonly below: Map<string, Place>;
}

/** Paths are remembered, since nearly all records have the same ones: so many of each side. */
const placesMax = 2_000;
const tops = new WeakMap<FoldRules, Place>();
const counts = new WeakMap<FoldRules, number>();

function topOf(rules: FoldRules): Place {
  const top = tops.get(rules) ?? placeOf('', rules);
  tops.set(rules, top);
  return top;
}

function placeBelow({ path, below }: Place, name: string, rules: FoldRules): Place {
  const known = below.get(name);
  if (known !== undefined) return known;
  const folded = foldedName(name);
  const place = placeOf(path === '' ? folded : `${path}.${folded}`, rules);
  const count = counts.get(rules) ?? 0;
  if (count < placesMax) {
    below.set(name, place);
    counts.set(rules, count + 1);
  }
  return place;
}

function placeOf(path: string, { rename, ignore, time }: FoldRules): Place {
  const named = renamedPath(path, rename);
  return {
    ...{ path, named, digests: new Map(), below: new Map() },
    ...{ isIgnored: isIgnoredPath(path, ignore), isIgnoredAsNamed: isIgnoredPath(named, ignore) },
    isTime: time.includes(named) || timeName.test(named),
  };
}

/** Epoch milliseconds of the first of the paths that holds a readable time, as text or number. */
export function happenedAt(record: Json, paths: readonly string[]): number | null {
  const time = recordTime(record, paths);
  if (time !== null) return time;
  for (const path of paths) {
    const epoch = epochOf(valueAt(record, path));
    if (epoch !== null) return epoch;
  }
  return null;
}

function foldedValue(value: Exclude<Json, null>, place: Place): string {
  const epoch = place.isTime ? epochOf(value) : null;
  if (epoch !== null) return `e${digest(`t${epoch}`, place)}`;
  switch (typeof value) {
    case 'number':
      return `n${digest(`n${value}`, place)}`;
    case 'boolean':
      return `b${digest(`b${value}`, place)}`;
    case 'string': {
      const at = dated.test(value) ? recordTime({ value }, ['value']) : null;
      if (at !== null) return `t${digest(`t${at}`, place)}`;
      return `s${digest(`${number.test(value) ? 'n' : 's'}${value}`, place)}`;
    }
    default:
      return `a${digest(`a${JSON.stringify(foldedWithin(value))}`, place)}`;
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

/** Digests of short values are remembered, the first of each path: many records have the same ones. */
const [digestsMax, rememberedChars] = [64, 64];

function digest(text: string, { digests }: Place): string {
  const known = text.length > rememberedChars ? undefined : digests.get(text);
  if (known !== undefined) return known;
  const made = hash('sha256', text, 'base64url').slice(0, digestChars);
  if (text.length <= rememberedChars && digests.size < digestsMax) digests.set(text, made);
  return made;
}

/** True for a path that is left out, or stands below one. */
export function isIgnoredPath(path: string, ignore: readonly string[]): boolean {
  return ignore.some((one) => path === one || path.startsWith(`${one}.`));
}

/** A path by the name of the longest part of it that has another one. */
export function renamedPath(path: string, rename: FoldRules['rename']): string {
  if (rename.size === 0) return path;
  for (let part = path; part !== ''; part = part.slice(0, Math.max(0, part.lastIndexOf('.')))) {
    const other = rename.get(part);
    if (other !== undefined) return `${other}${path.slice(part.length)}`;
  }
  return path;
}
