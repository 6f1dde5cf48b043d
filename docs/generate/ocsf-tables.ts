// Writes src/normalise/ocsf-1.8.0.json from a checkout of the official schema:
//
//   git clone --branch 1.8.0 https://github.com/ocsf/ocsf-schema DIR && npm run ocsf-tables -- DIR
//
// It resolves the parts that the schema's files leave to their reader: `extends`, `$include` of profiles, and the
// dictionary's description of each attribute. Invariant: every statement about OCSF comes from the schema's own files.
// Not included are attributes that sluice never fills: deprecated ones, those of profiles that it does not write, those
// whose text it could not check, and those that it sets itself.

import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, type Json, type JsonObject } from '../../src/contracts/json.ts';
import { setBySluice } from '../../src/normalise/mapping.ts';
import {
  type AttributeType,
  classNames,
  type OcsfAttribute,
  type OcsfShape,
  type OcsfTables,
} from '../../src/normalise/schema.ts';

/** The types that sluice can check and fill; other text with a form of its own is left out. */
const typeNames: Readonly<Record<string, AttributeType>> = {
  ...{ string_t: 'text', hostname_t: 'text', username_t: 'text', file_path_t: 'text' },
  ...{ file_name_t: 'text', process_name_t: 'text', resource_uid_t: 'text', url_t: 'text' },
  ...{ integer_t: 'int', long_t: 'long', float_t: 'float', boolean_t: 'bool' },
  ...{
    timestamp_t: 'time',
    ip_t: 'ip',
    port_t: 'port',
    mac_t: 'mac',
    email_t: 'email',
    json_t: 'json',
  },
};

const profilesWritten: ReadonlySet<string> = new Set(['security_control', 'host']);

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('which checkout of the official schema?');
const source = directory;
const target = join(import.meta.dirname, '../../src/normalise/ocsf-1.8.0.json');
writeFileSync(target, text(tablesOf()));

function tablesOf(): OcsfTables {
  const { version } = read('version.json');
  const named = byName('events');
  const classes = Object.fromEntries(
    classNames.map((name) => {
      const whole = resolved(name, named);
      const uid = classUid(whole);
      return [name, { uid, caption: String(whole.caption), ...shapeOf(whole, '') }] as const;
    }),
  );
  const things = byName('objects');
  const objects: Record<string, OcsfShape> = {};
  const requested = Object.values(classes).flatMap(objectsIn);
  for (let name = requested.pop(); name !== undefined; name = requested.pop()) {
    if (Object.hasOwn(objects, name)) continue;
    const shape = shapeOf(resolved(name, things), `${name}.`);
    objects[name] = shape;
    requested.push(...objectsIn(shape));
  }
  const lost = unfillable(objects, things);
  const fillable = <S extends OcsfShape>(shape: S): S => {
    const kept = Object.entries(shape.attributes).filter(
      ([, { object = '' }]) => !lost.has(object),
    );
    return { ...shape, attributes: Object.fromEntries(kept) };
  };
  return {
    version: String(version),
    classes: Object.fromEntries(
      Object.entries(classes).map(([name, one]) => [name, fillable(one)]),
    ),
    objects: Object.fromEntries(
      Object.entries(objects)
        .filter(([name]) => !lost.has(name))
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, one]) => [name, fillable(one)]),
    ),
  };
}

function objectsIn({ attributes }: OcsfShape): readonly string[] {
  return Object.values(attributes).flatMap(({ object }) => (object === undefined ? [] : [object]));
}

/** Objects that need what sluice cannot fill, and objects that need those. */
function unfillable(
  objects: Readonly<Record<string, OcsfShape>>,
  things: ReadonlyMap<string, JsonObject>,
): ReadonlySet<string> {
  const lost = new Set<string>();
  for (let before = -1; before < lost.size; ) {
    before = lost.size;
    for (const [name, { attributes }] of Object.entries(objects)) {
      const required = Object.entries(objectAt(resolved(name, things), 'attributes')).filter(
        ([key, value]) =>
          objectAt({ value }, 'value').requirement === 'required' &&
          objectAt({ value }, 'value').profile === undefined &&
          !setBySluice.has(`${name}.${key}`),
      );
      const has = ([key]: readonly [string, unknown]) =>
        attributes[key] !== undefined && !lost.has(attributes[key].object ?? '');
      if (!required.every(has)) lost.add(name);
    }
  }
  return lost;
}

function read(path: string): JsonObject {
  const value = JSON.parse(readFileSync(join(source, path), 'utf8')) as Json;
  if (!isObject(value)) throw new Error(`${path} is no JSON object`);
  return value;
}

/** Every file of a kind by its name, with what the schema's own extensions change in it. */
function byName(kind: 'events' | 'objects'): ReadonlyMap<string, JsonObject> {
  const files = (pattern: string) => globSync(pattern, { cwd: source }).toSorted().map(read);
  const all = new Map(files(`${kind}/**/*.json`).map((one) => [String(one.name), one]));
  for (const { name, extends: of, constraints } of files(`extensions/*/${kind}/*.json`)) {
    const changed = all.get(String(of));
    if (changed === undefined || constraints === undefined || (name ?? of) !== of) continue;
    all.set(String(of), { ...changed, constraints });
  }
  return all;
}

/** A class or object with all that it has from what it extends. */
function resolved(name: string, named: ReadonlyMap<string, JsonObject>): JsonObject {
  const own = named.get(name);
  if (own === undefined) throw new Error(`the schema has no ${name}`);
  const whole = { ...own, attributes: included(objectAt(own, 'attributes')) };
  return typeof own.extends === 'string' ? merged(resolved(own.extends, named), whole) : whole;
}

/** Attributes with those of the profiles they include, each marked with its profile. */
function included({ $include, ...own }: JsonObject): JsonObject {
  const profiles = (Array.isArray($include) ? $include : []).map((path) => {
    const { name = null, attributes = null } = read(String(path));
    const marked = Object.entries(isObject(attributes) ? attributes : {}).map(
      ([key, value]) => [key, { ...(isObject(value) ? value : {}), profile: name }] as const,
    );
    return Object.fromEntries(marked);
  });
  return [...profiles, own].reduce(merged, {});
}

function merged(one: JsonObject, other: JsonObject): JsonObject {
  const both: Record<string, Json | undefined> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const before = both[key];
    both[key] = isObject(before) && isObject(value) ? merged(before, value) : value;
  }
  // A class's own constraints replace those that it inherits.
  if (other.constraints !== undefined) both.constraints = other.constraints;
  return both;
}

function objectAt(value: JsonObject, key: string): JsonObject {
  const found = value[key];
  return isObject(found) ? found : {};
}

/** Categories count in thousands (https://schema.ocsf.io/1.8.0/categories). */
function classUid({ category = null, uid = 0 }: JsonObject): number {
  const found = objectAt(objectAt(read('categories.json'), 'attributes'), String(category));
  return Number(found.uid ?? 0) * 1000 + Number(uid);
}

function shapeOf(whole: JsonObject, place: string): OcsfShape {
  const dictionary = objectAt(read('dictionary.json'), 'attributes');
  const attributes = Object.entries(objectAt(whole, 'attributes')).flatMap(([name, own]) => {
    if (setBySluice.has(place + name) || name === 'observables' || !isObject(own)) return [];
    const attribute = attributeOf(merged(objectAt(dictionary, name), own));
    return attribute === null ? [] : [[name, attribute] as const];
  });
  const { at_least_one: some, just_one: one } = objectAt(whole, 'constraints');
  return {
    attributes: Object.fromEntries(attributes.toSorted(([a], [b]) => (a < b ? -1 : 1))),
    ...(Array.isArray(some) && { some: some.map(String) }),
    ...(Array.isArray(one) && { one: one.map(String) }),
  };
}

function attributeOf(merged: JsonObject): OcsfAttribute | null {
  const { type, profile, requirement, sibling, is_array: list } = merged;
  if (merged['@deprecated'] !== undefined) return null;
  if (typeof profile === 'string' && !profilesWritten.has(profile)) return null;
  const common = {
    ...(list === true && { list: true }),
    ...(requirement === 'required' && { required: true }),
    ...(requirement === 'recommended' && { recommended: true }),
    ...(typeof profile === 'string' && { profile }),
  };
  if (typeof type !== 'string' || type === 'object_t' || type === 'object') return null;
  if (!type.endsWith('_t')) return { type: 'object', object: type, ...common };
  const named = Object.entries(objectAt(merged, 'enum'));
  const known = typeNames[type];
  if (named.length === 0) return known === undefined ? null : { type: known, ...common };
  if (typeof sibling !== 'string' && known !== 'text') return null;
  const captions = Object.fromEntries(
    named.map(([id, value]) => [id, String(isObject(value) ? value.caption : id)]),
  );
  return typeof sibling === 'string'
    ? { type: 'enum', captions, sibling, ...common }
    : { type: 'choice', captions, ...common };
}

/** One attribute a line, so that a newer schema shows as what has changed in it. */
function text({ version, classes, objects }: OcsfTables): string {
  const rows = (group: Readonly<Record<string, OcsfShape>>) =>
    Object.entries(group).map(([name, { attributes, ...rest }]) => {
      const lines = Object.entries(attributes).map(
        ([key, value]) => `      ${JSON.stringify(key)}: ${JSON.stringify(value)}`,
      );
      const head = JSON.stringify({ ...rest, attributes: null }).replace(/null\}$/, '{\n');
      return `    ${JSON.stringify(name)}: ${head}${lines.join(',\n')}\n    }}`;
    });
  return `{\n  "version": ${JSON.stringify(version)},\n  "classes": {\n${rows(classes).join(',\n')}\n  },\n  "objects": {\n${rows(objects).join(',\n')}\n  }\n}\n`;
}
