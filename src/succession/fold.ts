// Folding makes records of two APIs comparable: names become snake_case, ids and numbers text, times epoch
// milliseconds, and renamed or ignored paths are applied. Invariants: values leave this file only as digests; two
// values share a digest only if they mean the same.

import { hash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../contracts/index.ts';
import { recordTime } from '../list/index.ts';
import { foldedName, valueAt } from '../tools/index.ts';

/** How the records of one side are folded. */
export interface FoldRules {
  /** Folded paths of this side, with the other side's names; a path includes all paths below it. */
  readonly rename: ReadonlyMap<string, string>;
  /** Folded paths that are dropped, with all paths below them. */
  readonly ignore: readonly string[];
  /** Folded paths of a record's time. */
  readonly time: readonly string[];
}

/** Limit of compared fields of a record. */
const fieldsMax = 200;
/** Characters of a digest, 66 bits. */
const digestChars = 11;

/** By folded path: one character for the value's type, and a digest of the folded value. */
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

/** A path of one side's records, and its rules. */
interface Place {
  readonly path: string;
  /** The path in the other side's names. */
  readonly named: string;
  readonly isIgnored: boolean;
  readonly isIgnoredAsNamed: boolean;
  readonly isTime: boolean;
  readonly digests: Map<string, string>;
  /** By the names of its members, as far as they are cached. */
  readonly below: Map<string, Place>;
}

/** Size of the path cache of each side; nearly all records have the same paths. */
const placesMax = 2_000;
const tops = new WeakMap<FoldRules, Place>();
const counts = new WeakMap<FoldRules, number>();

function topOf(rules: FoldRules): Place {
  return tops.getOrInsertComputed(rules, () => placeOf('', rules));
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

/** Epoch milliseconds of the first path with a readable time, as text or number. */
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

/** The elements of an array, with folded names, numbers as text and without nulls. */
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

/** Epoch milliseconds of a number of seconds or milliseconds, also as text; null: it is no time. */
function epochOf(value: Json | undefined): number | null {
  const isNumber = typeof value === 'number' || (typeof value === 'string' && number.test(value));
  const seconds = isNumber ? Number(value) : Number.NaN;
  if (seconds >= epochFrom && seconds < epochUntil) return Math.round(seconds * 1_000);
  if (seconds >= epochFrom * 1_000 && seconds < epochUntil * 1_000) return Math.round(seconds);
  return null;
}

/** Size of the digest cache of each path, and the longest cached value; many records have the same values. */
const [digestsMax, rememberedChars] = [64, 64];

function digest(text: string, { digests }: Place): string {
  const known = text.length > rememberedChars ? undefined : digests.get(text);
  if (known !== undefined) return known;
  const made = hash('sha256', text, 'base64url').slice(0, digestChars);
  if (text.length <= rememberedChars && digests.size < digestsMax) digests.set(text, made);
  return made;
}

/** True for an ignored path, or a path below one. */
export function isIgnoredPath(path: string, ignore: readonly string[]): boolean {
  return ignore.some((one) => path === one || path.startsWith(`${one}.`));
}

/** A path with its longest renamed prefix replaced. */
export function renamedPath(path: string, rename: FoldRules['rename']): string {
  if (rename.size === 0) return path;
  for (let part = path; part !== ''; part = part.slice(0, Math.max(0, part.lastIndexOf('.')))) {
    const other = rename.get(part);
    if (other !== undefined) return `${other}${path.slice(part.length)}`;
  }
  return path;
}
