// The Parquet schema of each OCSF class, generated from the official schema's tables
// (src/normalise/ocsf-1.8.0.json). Invariant: the schema of a class is the same in every object,
// whatever its rows contain, so that readers of many objects find one type per name. Three levels
// of attributes have columns, of the third those that OCSF requires or recommends, or whose object
// it does; an object never contains itself. Deeper values, or those of another type, are text in
// the column `unmapped` (rows.ts). Groups are required and lists have three levels, so there is
// never a bare REPEATED; a column of nulls has its type. Times are epoch milliseconds as plain
// INT64: Amazon Security Lake requires BIGINT.

import type { SchemaElement } from 'hyparquet';
import {
  type Attribute,
  type AttributeType,
  classNames,
  namedClass,
  objectOf,
} from '../normalise/index.ts';

/** The type of a column; `json`: a value's JSON as text. */
export type ColumnType = 'text' | 'int' | 'long' | 'double' | 'bool' | 'json';

/** An attribute that is a value, or a list of values. */
export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly list: boolean;
  /** Names from the event down, without those of lists. */
  readonly path: readonly string[];
  /** Whether each object has a bloom filter for it. */
  readonly bloom: boolean;
}

/** An attribute that is an object, or a list of objects; the whole event is one. */
export interface ParquetGroup {
  readonly name: string;
  readonly list: boolean;
  readonly attributes: ReadonlyMap<string, Column | ParquetGroup>;
}

/** A class as a table. */
export interface Table {
  readonly classUid: number;
  /** The schema's name, e.g. `api_activity`. */
  readonly name: string;
  readonly event: ParquetGroup;
  /** Parquet's form: every element, each before its children. */
  readonly elements: readonly SchemaElement[];
}

const depthMax = 3;

/** Attributes that are searched by exact value: an event, its actor, and addresses. */
const bloomed =
  /^(metadata\.(uid|original_event_uid)|(actor\.)?user\.(name|uid|email_addr)|(src_endpoint|dst_endpoint|device)\.(ip|hostname))$/;

const productNames = ['name', 'uid', 'vendor_name', 'version'];

/** Attributes that sluice sets itself, and that the tables therefore omit. */
const ownAttributes: Readonly<Record<string, readonly (Column | ParquetGroup)[]>> = {
  '': [
    ...columns('int', ['class_uid', 'category_uid']),
    ...columns('long', ['type_uid']),
    ...columns('text', ['class_name', 'category_name', 'type_name', 'raw_data']),
    ...columns('json', ['unmapped']),
  ],
  metadata: [
    ...columns('text', ['version', 'uid', 'log_name', 'original_time'], ['metadata']),
    ...columns('long', ['logged_time'], ['metadata']),
    ...columns('text', ['profiles'], ['metadata']).map((one) => ({ ...one, list: true })),
    named('product', columns('text', productNames, ['metadata', 'product'])),
  ],
};

const columnTypes: Readonly<Record<Exclude<AttributeType, 'object'>, ColumnType>> = {
  ...{ text: 'text', ip: 'text', mac: 'text', email: 'text', choice: 'text' },
  ...{ int: 'int', port: 'int', enum: 'int', long: 'long', time: 'long', float: 'double' },
  ...{ bool: 'bool', json: 'json' },
};

/** Parquet's physical type of each. */
export const physical: Readonly<Record<ColumnType, Partial<SchemaElement>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  json: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  int: { type: 'INT32' },
  long: { type: 'INT64' },
  double: { type: 'DOUBLE' },
  bool: { type: 'BOOLEAN' },
};

const known = new Map<number, Table>();

/**
 * The table of a class by its `class_uid`; the Base Event's for a class that sluice does not write.
 */
export function tableOf(classUid: number): Table {
  if (known.size === 0) {
    for (const name of classNames) {
      const { uid, attributes } = namedClass(name);
      const event = groupOf({ name: 'event', list: false }, [...attributes.values()], []);
      known.set(uid, { classUid: uid, name, event, elements: elementsOf(event) });
    }
  }
  const table = known.get(classUid) ?? known.get(0);
  if (table === undefined) throw new Error('the OCSF tables lack the Base Event');
  return table;
}

/** `above`: the attributes that lead to the group, each with the name of its object. */
function groupOf(
  { name, list }: Pick<ParquetGroup, 'name' | 'list'>,
  attributes: readonly Attribute[],
  above: readonly Attribute[],
): ParquetGroup {
  const path = above.map((one) => one.name);
  const own = ownAttributes[path.join('.')] ?? [];
  const last = above.at(-1);
  const isDeepest = above.length === depthMax - 1 && last !== undefined && !isUsual(last);
  const all: (Column | ParquetGroup)[] = [...own];
  for (const attribute of attributes) {
    if (own.some((one) => one.name === attribute.name)) continue;
    if (isDeepest && !isUsual(attribute)) continue;
    if (attribute.type !== 'object') {
      const type = columnTypes[attribute.type];
      all.push(columnOf(attribute.name, type, path, attribute.list));
    } else if (
      above.length + 1 < depthMax &&
      !above.some(({ object }) => object === attribute.object)
    ) {
      const below = [...objectOf(attribute.object).attributes.values()];
      const group = groupOf(attribute, below, [...above, attribute]);
      if (group.attributes.size > 0) all.push(group);
    }
  }
  all.sort((one, other) => (one.name < other.name ? -1 : 1));
  return named(name, all, list);
}

function named(name: string, all: readonly (Column | ParquetGroup)[], list = false): ParquetGroup {
  return { name, list, attributes: new Map(all.map((one) => [one.name, one])) };
}

function isUsual({ required, recommended }: Attribute): boolean {
  return required || recommended;
}

function columns(
  type: ColumnType,
  names: readonly string[],
  above: readonly string[] = [],
): Column[] {
  return names.map((name) => columnOf(name, type, above, false));
}

function columnOf(name: string, type: ColumnType, above: readonly string[], list: boolean): Column {
  const path = [...above, name];
  return { name, type, list, path, bloom: bloomed.test(path.join('.')) };
}

function elementsOf(event: ParquetGroup): readonly SchemaElement[] {
  const elements: SchemaElement[] = [{ name: event.name, num_children: event.attributes.size }];
  const add = (one: Column | ParquetGroup, name: string) => {
    if ('type' in one) {
      const repetition_type = one.list ? 'REQUIRED' : 'OPTIONAL';
      elements.push({ name, repetition_type, ...physical[one.type] });
      return;
    }
    elements.push({ name, repetition_type: 'REQUIRED', num_children: one.attributes.size });
    for (const child of one.attributes.values()) addAttribute(child);
  };
  const addAttribute = (one: Column | ParquetGroup) => {
    const { name, list } = one;
    if (!list) {
      add(one, name);
      return;
    }
    elements.push({ name, repetition_type: 'OPTIONAL', converted_type: 'LIST', num_children: 1 });
    elements.push({ name: 'list', repetition_type: 'REPEATED', num_children: 1 });
    add(one, 'element');
  };
  for (const one of event.attributes.values()) addAttribute(one);
  return elements;
}
