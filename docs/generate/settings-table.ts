// Config keys as tables, from the JSON Schema that editors use, which is made from the declarations.

import { z } from 'zod';
import { configSchema } from '../../src/config/json-schema.ts';
import { duration, size } from '../../src/contracts/settings.ts';

/** The members of JSON Schema that configs use. */
interface Schema {
  readonly type?: string;
  readonly const?: string;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | false;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

/** The schema of a whole config. */
export const wholeSchema = configSchema() as Schema;

/** The schema of one type of `sources` or `sinks`. */
export function typeSchema(section: 'sources' | 'sinks', type: string): Schema {
  const entry = wholeSchema.properties?.[section]?.additionalProperties || {};
  const found = entry.oneOf?.find(({ properties }) => properties?.type?.const === type);
  if (found === undefined) throw new Error(`the schema has no ${section} of type ${type}`);
  return found;
}

/** A table of the keys, those of blocks within written with dots; `only` leaves all others out. */
export function settingsTable(schema: Schema, only?: ReadonlySet<string>): string {
  const rows = rowsOf(schema, '').filter(
    ({ key }) => only === undefined || only.has(key.split(/[.[]/)[0] ?? ''),
  );
  if (rows.length === 0) return 'None.';
  return table(
    ['key', 'value', 'default', 'meaning'],
    rows.map(({ key, value, absent, what }) => [`\`${key}\``, value, absent, what]),
  );
}

/** The keys of one of the engine's own blocks. */
export function blockTable(name: string): string {
  const block = wholeSchema.properties?.[name];
  const inside = block?.items ?? (block?.additionalProperties || block);
  if (inside === undefined) throw new Error(`a config has no block ${name}`);
  return settingsTable(inside);
}

/** The keys that the engine adds to every source or sink. */
export function sharedTable(section: string): string {
  const types = wholeSchema.properties?.[section]?.additionalProperties || {};
  const all = types.oneOf?.map(({ properties }) => properties ?? {}) ?? [];
  // A key of the same name that says something else is each type's own.
  const described = Object.entries(all[0] ?? {}).filter(([name, { description }]) =>
    all.every(
      (own) => name in own && (name === 'format' || own[name]?.description === description),
    ),
  );
  // Its default is each sink's own.
  const shared = described.map(([name, schema]): [string, Schema] =>
    name === 'format'
      ? [name, { type: 'format', description: 'what events look like' }]
      : [name, schema],
  );
  return settingsTable({ properties: Object.fromEntries(shared), required: ['upstream'] });
}

/** A Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

interface Row {
  readonly key: string;
  readonly value: string;
  readonly absent: string;
  readonly what: string;
}

function rowsOf(schema: Schema, prefix: string): readonly Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    if (inner.const !== undefined) return [];
    const key = prefix + name;
    const needed = schema.required?.includes(name) === true;
    const row = {
      key,
      value: valueText(inner),
      absent: absentText(inner, needed),
      what: inner.description ?? '',
    };
    if (inner.properties !== undefined) return [row, ...rowsOf(inner, `${key}.`)];
    if (inner.items?.properties !== undefined) return [row, ...rowsOf(inner.items, `${key}[].`)];
    return [row];
  });
}

function absentText(schema: Schema, needed: boolean): string {
  if (needed) return '**required**';
  const { default: byDefault } = schema;
  const plain = byDefault === undefined || isEmpty(byDefault);
  return plain
    ? ''
    : `\`${typeof byDefault === 'string' ? byDefault : JSON.stringify(byDefault)}\``;
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

const patterns: ReadonlyMap<unknown, string> = new Map([
  [z.toJSONSchema(duration(), { io: 'input' }).pattern, 'duration'],
  [z.toJSONSchema(size(), { io: 'input' }).pattern, 'size'],
]);

function valueText(schema: Schema): string {
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) {
    // A reference such as ${env:NAME} may stand everywhere; config.md says so once.
    const said = choices.filter(({ $ref }) => $ref !== '#/$defs/reference').map(valueText);
    return [...new Set(said)].join(' or ');
  }
  if (schema.enum !== undefined) return schema.enum.map((word) => `\`${word}\``).join(', ');
  switch (schema.type) {
    case 'string':
      return patterns.get(schema.pattern) ?? 'text';
    case 'integer':
    case 'number':
      return `${schema.minimum ?? '…'} to ${schema.maximum ?? '…'}`;
    case 'boolean':
      return '`true`, `false`';
    case 'array':
      return `list of ${valueText(schema.items ?? {})}`;
    case 'object':
      return schema.properties === undefined ? 'names and values' : 'block';
    case 'null':
      return '`null`';
    case 'format':
      return "a format's type, or a block with its settings";
    default:
      return 'any';
  }
}
