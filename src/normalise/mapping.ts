// A mapping in the config: an OCSF class, and the attribute for each of the record's values. It is
// checked here before a run, and resolved into attributes; placing.ts compiles the result.

import type { Mapping } from '../contracts/config.ts';
import {
  type Attribute,
  classNames,
  classOf,
  objectOf,
  type SchemaClass,
  type Shape,
} from './schema.ts';

/** One flaw of a mapping: its path within the mapping, and the text. */
export interface MappingFlaw {
  readonly path: string;
  readonly message: string;
}

/** A field of a mapping: the attributes on its path, the last of which takes the value. */
export interface MappingTarget {
  readonly path: string;
  readonly from: readonly string[];
  readonly way: readonly Attribute[];
}

/** A mapping whose class exists. */
export interface ResolvedMapping {
  readonly name: string;
  readonly schemaClass: SchemaClass;
  readonly targets: readonly MappingTarget[];
}

/** Attributes that are derived from the class or the record and are never mapped. */
export const setBySluice: ReadonlySet<string> = new Set([
  'class_uid',
  'class_name',
  'category_uid',
  'category_name',
  'type_uid',
  'type_name',
  'unmapped',
  'raw_data',
  'metadata.version',
  'metadata.product',
  'metadata.uid',
  'metadata.log_name',
  'metadata.logged_time',
  'metadata.original_time',
  'metadata.profiles',
]);

/** Resolves a mapping; fields with flaws are omitted, and an unknown class gives undefined. */
export function resolveMapping(mapping: Mapping): ResolvedMapping | undefined {
  const schemaClass = classOf(mapping.class);
  if (schemaClass === undefined) return undefined;
  const targets: MappingTarget[] = [];
  for (const [path, from] of Object.entries(mapping.fields)) {
    const way = wayTo(path, schemaClass);
    if (typeof way !== 'string' && from !== '') targets.push({ path, from: [from].flat(), way });
  }
  return { name: mapping.class, schemaClass, targets };
}

/** All flaws of a mapping, for the config's errors; empty: none. */
export function mappingFlaws(mapping: Mapping): MappingFlaw[] {
  const schemaClass = classOf(mapping.class);
  if (schemaClass === undefined) {
    const near = nearest(mapping.class, classNames);
    const asked = JSON.stringify(mapping.class);
    const message = `${asked} is no OCSF class that sluice writes${near}; it writes ${classNames.join(', ')}`;
    return [{ path: 'class', message }];
  }
  const flaws: MappingFlaw[] = [];
  for (const [path, from] of Object.entries(mapping.fields)) {
    const way = wayTo(path, schemaClass);
    if (typeof way === 'string') flaws.push({ path: `fields.${path}`, message: way });
    else if (from === '')
      flaws.push({ path: `fields.${path}`, message: 'names no path of the record' });
  }
  const lack = lackOf(mapping, schemaClass);
  return lack === '' ? flaws : [...flaws, { path: 'fields', message: lack }];
}

/** The attributes on a path, or its flaw. */
function wayTo(path: string, schemaClass: SchemaClass): readonly Attribute[] | string {
  if (setBySluice.has(path)) return 'is set by sluice and cannot be mapped';
  const names = path.split('.');
  const way: Attribute[] = [];
  let shape: Shape = schemaClass;
  let lists = 0;
  for (const [index, name] of names.entries()) {
    const attribute = shape.attributes.get(name);
    const place = names.slice(0, index).join('.') || schemaClass.caption;
    if (attribute === undefined) {
      const near = suggestion(name, index, shape, names);
      return `${place} has no attribute ${JSON.stringify(name)}${near}`;
    }
    way.push(attribute);
    const last = index === names.length - 1;
    if (attribute.type === 'object') {
      shape = objectOf(attribute.object);
      if (last)
        return `is an object; name one of its attributes${list([...shape.attributes.keys()].slice(0, 12))}`;
      if (attribute.list) lists++;
      if (lists > 1) return 'is in a list within a list, which a mapping cannot fill';
    } else if (!last) {
      return `${names.slice(0, index + 1).join('.')} has no attributes, it is a value itself`;
    }
  }
  return way;
}

/**
 * The nearest name on a level; for a first name also its children: `src_ip` for `src_endpoint.ip`.
 */
function suggestion(name: string, index: number, shape: Shape, names: readonly string[]): string {
  const known = [...shape.attributes.keys()];
  if (index > 0 || names.length > 1) return nearest(name, known);
  const below = [...shape.attributes.values()]
    .filter((attribute) => attribute.type === 'object')
    .flatMap((attribute) =>
      [...objectOf(attribute.object).attributes.keys()].map(
        (inner) => `${attribute.name}.${inner}`,
      ),
    );
  return nearest(name, [...known, ...below]);
}

/** The required attributes that the mapping lacks, which would make each record a Base Event. */
function lackOf(mapping: Mapping, schemaClass: SchemaClass): string {
  const roots = new Set(Object.keys(mapping.fields).map((path) => path.split('.')[0] ?? ''));
  const filled = new Set([
    'time',
    'severity_id',
    'status_id',
    'activity_id',
    'metadata',
    'finding_info',
    'finding_info_list',
    'service',
  ]);
  const has = (name: string): boolean => roots.has(name) || filled.has(name);
  const missing = [...schemaClass.attributes.values()]
    .filter(({ name, required, profile }) => required && profile === null && !has(name))
    .map(({ name }) => name);
  if (missing.length > 0)
    return `${schemaClass.caption} needs ${missing.join(' and ')}, which the mapping does not give`;
  const { some, one } = schemaClass;
  if (some.length > 0 && !some.some(has))
    return `${schemaClass.caption} needs at least one of ${some.join(', ')}`;
  if (one.length > 0 && one.filter(has).length !== 1)
    return `${schemaClass.caption} needs exactly one of ${one.join(', ')}`;
  return '';
}

function list(names: readonly string[]): string {
  return names.length === 0 ? '' : `, such as ${names.join(', ')}`;
}

function nearest(name: string, known: readonly string[]): string {
  let best = '';
  let least = Math.max(3, Math.floor(name.length / 2)) + 1;
  for (const candidate of known) {
    const far = distance(name, candidate);
    if (far < least) {
      least = far;
      best = candidate;
    }
  }
  return best === '' ? '' : `; did you mean ${best}?`;
}

/** Levenshtein distance; attribute names are short, so longer names have no near one. */
function distance(one: string, two: string): number {
  if (one.length > 64) return one.length;
  let row = Array.from({ length: two.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= two.length; j++) {
      const same = one[i - 1] === two[j - 1] ? 0 : 1;
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same));
    }
    row = next;
  }
  return row[two.length] ?? 0;
}
