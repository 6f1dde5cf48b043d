// Splits events into the columns of their class's table. Invariant: every value of an event is read
// back (read.ts). A value whose path has no column, or that the column cannot hold (another type, a
// number beyond its range, a null, a text that is not valid Unicode), goes to the JSON text of
// `unmapped`, under `ocsf_rest`, as a sparse copy of the event: elements of a list are under their
// index there.
//
// Parquet stores, for each column, its values and two levels that encode the positions of lists and
// nulls (https://parquet.apache.org/docs/file-format/nestedencoding/). All columns below one list have
// the same repetition levels, and the same definition levels except for their own nulls; these are
// stored once, in a `NestingLevel`. A column stores only the existing values and the entry of its level for
// each, so an attribute that an event lacks costs nothing.

import { isObject, type Json, type JsonObject, type OcsfEvent } from '../contracts/index.ts';
import type { Column, ColumnType, ParquetGroup, Table } from './schema.ts';
import { ColumnValues, grown, type Value } from './values.ts';

/** The member of `unmapped` with the values that no column can hold. */
export const restKey = 'ocsf_rest';

const noLevels = new Uint8Array(0);

/** The rows of the table, or the elements of one list within them. */
export class NestingLevel {
  readonly above: NestingLevel | null;
  /** Definition level of an existing element. */
  readonly present: number;
  readonly repetition: number;
  /** One of each per entry, and more; rows have none, only their number. */
  definitions: Uint8Array = noLevels;
  repetitions: Uint8Array = noLevels;
  entries = 0;
  /** Number of entries of the level above whose elements are stored here. */
  covered = 0;

  constructor(above: NestingLevel | null) {
    this.above = above;
    this.present = above === null ? 0 : above.present + 2;
    this.repetition = above === null ? 0 : above.repetition + 1;
  }

  /** Adds an entry of a list, and returns its index. */
  add(repetition: number, definition: number): number {
    if (this.entries === this.definitions.length) {
      this.definitions = grown(this.definitions);
      this.repetitions = grown(this.repetitions);
    }
    this.definitions[this.entries] = definition;
    this.repetitions[this.entries] = repetition;
    return this.entries++;
  }
}

/** One column: values, and the entries of its level for each. */
export interface ColumnRows {
  readonly column: Column;
  /** Names of the elements that lead to it, including those of lists. */
  readonly path: readonly string[];
  readonly level: NestingLevel;
  /** The entry of each value, and more; null as long as they are at the first entries without a gap. */
  entries: Uint32Array | null;
  readonly values: ColumnValues;
}

interface GroupRows {
  readonly level: NestingLevel;
  readonly attributes: Map<string, ColumnRows | GroupRows>;
}

/** Rows of one table to be written, in insertion order. */
export class Rows {
  readonly table: Table;
  /** In the order of the table's elements. */
  readonly columns: ColumnRows[] = [];
  readonly levels: NestingLevel[] = [];
  /** The column for sorting; each row has a value there. */
  readonly time: ColumnRows;
  readonly #event: GroupRows;
  readonly #unmapped: ColumnRows;
  /** Approximate bytes of the values. */
  bytes = 0;

  constructor(table: Table) {
    this.table = table;
    const rows = this.#level(null);
    this.#event = { level: rows, attributes: this.#below(table.event, rows, []) };
    this.time = this.#columnOf('time');
    this.#unmapped = this.#columnOf('unmapped');
  }

  get count(): number {
    return this.#event.level.entries;
  }

  /** Adds the event as the last row. Total: any event of any shape can be added. */
  add(event: OcsfEvent): void {
    const entry = this.#event.level.entries++;
    const rest = this.#placeGroup(event as unknown as JsonObject, this.#event, entry);
    const unmapped = wholeUnmapped(event.unmapped, rest);
    if (unmapped !== undefined) this.#note(this.#unmapped, entry, JSON.stringify(unmapped));
  }

  /**
   * Completes every list's entries for all rows, as writing requires; only a list that no row has,
   * and that is in no other list, stays without entries.
   */
  complete(): void {
    for (const level of this.levels) {
      const { above, entries } = level;
      const isUsed = above !== null && (entries > 0 || (above.above !== null && above.entries > 0));
      if (isUsed) cover(level, above, above.entries);
    }
  }

  #columnOf(name: string): ColumnRows {
    const found = this.#event.attributes.get(name);
    if (found === undefined || 'attributes' in found) throw new Error(`no column ${name}`);
    return found;
  }

  #level(above: NestingLevel | null): NestingLevel {
    const level = new NestingLevel(above);
    this.levels.push(level);
    return level;
  }

  #below(group: ParquetGroup, level: NestingLevel, path: readonly string[]) {
    const attributes = new Map<string, ColumnRows | GroupRows>();
    for (const [name, one] of group.attributes) {
      const own = one.list ? this.#level(level) : level;
      const at = one.list ? [...path, name, 'list', 'element'] : [...path, name];
      if ('type' in one) {
        const rows = {
          column: one,
          path: at,
          level: own,
          entries: null,
          values: new ColumnValues(),
        };
        this.columns.push(rows);
        attributes.set(name, rows);
      } else attributes.set(name, { level: own, attributes: this.#below(one, own, at) });
    }
    return attributes;
  }

  /** Puts an object's members into columns; returns those without a column, or undefined. */
  #placeGroup(object: JsonObject, group: GroupRows, entry: number): Rest {
    let rest: Rest;
    let empty = true;
    for (const name in object) {
      const value = object[name];
      if (value === undefined) continue;
      empty = false;
      const place = group.attributes.get(name);
      if (place === this.#unmapped) continue;
      const left = place === undefined ? value : this.#place(value, place, group.level, entry);
      if (left !== undefined) rest = withMember(rest, name, left);
    }
    return empty ? {} : rest;
  }

  #place(
    value: Json,
    place: ColumnRows | GroupRows,
    level: NestingLevel,
    entry: number,
  ): Json | undefined {
    if (place.level !== level) return this.#placeList(value, place, level, entry);
    if ('attributes' in place) {
      return isObject(value) ? this.#placeGroup(value, place, entry) : value;
    }
    const held = stored(value, place.column.type);
    if (held === undefined) return value;
    this.#note(place, entry, held);
    return undefined;
  }

  #placeList(
    value: Json,
    place: ColumnRows | GroupRows,
    above: NestingLevel,
    entry: number,
  ): Json | undefined {
    // Each element has a value in some column: an element without any would be lost, because a
    // reader may skip columns that are all null.
    const isGroup = 'attributes' in place;
    const fits = isGroup
      ? (one: Json) => isObject(one) && hasValue(one, place)
      : (one: Json) => stored(one, place.column.type) !== undefined;
    if (!Array.isArray(value) || value.length === 0 || !value.every(fits)) return value;
    const list: readonly Json[] = value;
    const { level } = place;
    cover(level, above, entry);
    level.covered = entry + 1;
    let rest: Rest;
    for (let index = 0; index < list.length; index++) {
      const one = list[index] as Json;
      const repetition = index === 0 ? repetitionAt(above, entry) : level.repetition;
      const own = level.add(repetition, level.present);
      if (!isGroup) this.#note(place, own, stored(one, place.column.type) as Value);
      else {
        const left = this.#placeGroup(one as JsonObject, place, own);
        if (left !== undefined && Object.keys(left).length > 0) {
          rest = withMember(rest, String(index), left);
        }
      }
    }
    return rest;
  }

  #note(place: ColumnRows, entry: number, value: Value): void {
    const { values, entries } = place;
    const { length } = values;
    if (entries !== null || entry !== length) place.entries = entriesWith(entries, length, entry);
    values.push(value);
    this.bytes += typeof value === 'string' ? value.length + 16 : 16;
  }
}

function hasValue(object: JsonObject, { level, attributes }: GroupRows): boolean {
  for (const name in object) {
    const place = attributes.get(name);
    const value = object[name];
    if (place === undefined || place.level !== level || value === undefined) continue;
    const has =
      'attributes' in place
        ? isObject(value) && hasValue(value, place)
        : stored(value, place.column.type) !== undefined;
    if (has) return true;
  }
  return false;
}

type Rest = { [name: string]: Json } | undefined;

/** Without a prototype, because names are upstream's: one may be `__proto__`. */
function withMember(rest: Rest, name: string, value: Json): Rest {
  const members: NonNullable<Rest> = rest ?? Object.create(null);
  members[name] = value;
  return members;
}

function wholeUnmapped(unmapped: JsonObject | undefined, rest: Rest): Json | undefined {
  if (rest === undefined && (unmapped === undefined || isMembers(unmapped))) return unmapped;
  const isShown = isMembers(unmapped) && Object.keys(unmapped).length > 0;
  if (isShown || unmapped === undefined) return { ...unmapped, [restKey]: rest };
  return { [restKey]: { ...rest, unmapped } };
}

function isMembers(unmapped: Json | undefined): unmapped is JsonObject {
  return isObject(unmapped) && !Object.hasOwn(unmapped, restKey);
}

function repetitionAt(level: NestingLevel, entry: number): number {
  return level.above === null ? 0 : (level.repetitions[entry] ?? 0);
}

/** The entries of `count` values and of one more. */
function entriesWith(entries: Uint32Array | null, count: number, next: number): Uint32Array {
  let all = entries ?? new Uint32Array(Math.max(64, count * 2)).map((_, at) => at);
  if (count === all.length) all = grown(all);
  all[count] = next;
  return all;
}

/** Entries of the level above, up to but excluding `entry`, have no list here. */
function cover(level: NestingLevel, above: NestingLevel, entry: number): void {
  for (; level.covered < entry; level.covered++) {
    const definition = above.above === null ? 0 : (above.definitions[level.covered] ?? 0);
    level.add(repetitionAt(above, level.covered), definition);
  }
}

/** A value in its column's form; undefined if the column cannot hold it. */
function stored(value: Json, type: ColumnType): Value | undefined {
  switch (type) {
    case 'text':
      return typeof value === 'string' && value.isWellFormed() ? value : undefined;
    case 'int':
      return typeof value === 'number' && (value | 0) === value ? value : undefined;
    case 'long':
      return Number.isSafeInteger(value) ? (value as number) : undefined;
    case 'double':
      return typeof value === 'number' ? value : undefined;
    case 'bool':
      return typeof value === 'boolean' ? value : undefined;
    case 'json':
      return JSON.stringify(value);
  }
}
