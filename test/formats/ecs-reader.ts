// Holds an ECS event against the published list of fields (@elastic/ecs, made by Elastic from the schema): every field
// outside `sluice` is listed, and has a value of its type, from its closed list where it has one. Throws on what is not.

import { isIP } from 'node:net';
import { EcsFlat } from '@elastic/ecs';
import { isObject } from '../../src/contracts/json.ts';

interface ListedField {
  readonly type: string;
  readonly normalize: readonly string[];
  readonly allowed_values?: readonly {
    readonly name: string;
    readonly expected_event_types?: readonly string[];
  }[];
}

/** The published list, by field. */
export const listed: Readonly<Record<string, ListedField | undefined>> = EcsFlat;

/** An event as Elasticsearch reads it: values by field, without `sluice`, which is read apart. */
export interface EcsEvent {
  readonly fields: ReadonlyMap<string, unknown>;
  readonly sluice: { readonly [name: string]: unknown };
}

/** Reads one line; throws where it is no event of ECS. */
export function readEcs(line: string): EcsEvent {
  const { sluice, ...doc } = JSON.parse(line);
  const fields = new Map<string, unknown>();
  gather(doc, '', fields);
  for (const [name, value] of fields) check(name, value);
  if (!fields.has('@timestamp') || !fields.has('ecs.version'))
    throw new Error('a required field is missing');
  checkTypes(listOf(fields.get('event.category')), listOf(fields.get('event.type')));
  return { fields, sluice };
}

function gather(value: object, above: string, into: Map<string, unknown>): void {
  for (const [name, member] of Object.entries(value)) {
    const path = above === '' ? name : `${above}.${name}`;
    if (isObject(member)) gather(member, path, into);
    else into.set(path, member);
  }
}

function check(name: string, value: unknown): void {
  const field = listed[name];
  if (field === undefined) throw new Error(`ECS has no field ${name}`);
  if (Array.isArray(value) && !field.normalize.includes('array'))
    throw new Error(`${name} is no list`);
  for (const one of listOf(value)) {
    if (!fits(field, one)) throw new Error(`${name} (${field.type}) holds ${JSON.stringify(one)}`);
  }
}

function fits({ type, allowed_values: allowed }: ListedField, value: unknown): boolean {
  switch (type) {
    case 'keyword':
    case 'wildcard':
    case 'match_only_text':
      if (typeof value !== 'string') return false;
      return allowed === undefined || allowed.some(({ name }) => name === value);
    case 'ip':
      return typeof value === 'string' && isIP(value) !== 0;
    case 'long':
      return Number.isSafeInteger(value);
    case 'float':
      return typeof value === 'number';
    case 'date':
      return typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value);
  }
  return false;
}

/** Each type is one that ECS expects of one of the categories. */
function checkTypes(categories: readonly unknown[], types: readonly unknown[]): void {
  const known = listed['event.category']?.allowed_values ?? [];
  const expected = new Set(
    known.flatMap(({ name, expected_event_types: some = [] }) =>
      categories.includes(name) ? some : [],
    ),
  );
  for (const type of types) {
    if (!expected.has(String(type)))
      throw new Error(`${type} is no type of ${categories.join(' and ')}`);
  }
  if (new Set(types).size !== types.length) throw new Error(`a type twice: ${types.join()}`);
}

function listOf(value: unknown): readonly unknown[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}
