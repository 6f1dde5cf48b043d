// The tables of docs/archive/format.md that list the fields of entries, for authors of verifiers: each field that an entry can
// have is there, with no others, and is called optional where it is.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { anyEntry } from '../../src/archive/entries.ts';

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly const?: unknown;
}

const page = readFileSync(join(import.meta.dirname, '../../docs/archive/format.md'), 'utf8');

/** Dotted paths of all fields, `?` at the end of those that may be absent. */
function fieldsOf({ properties = {}, required = [] }: Schema, above = ''): string[] {
  return Object.entries(properties).flatMap(([name, field]) => {
    if (above === '' && name === 't') return [];
    const own = `${above}${name}`;
    const one = field.anyOf?.find(({ properties }) => properties !== undefined) ?? field;
    const within = one.items?.properties === undefined ? one : one.items;
    const below = fieldsOf(within, `${own}${one === within ? '' : '[]'}.`);
    return [`${own}${required.includes(name) ? '' : '?'}`, ...below];
  });
}

/** The same of the tables of a section. */
function fieldsIn(section: string): string[] {
  return [...section.matchAll(/^\| (`.+?`) \| (.*?) \| .* \|$/gm)].flatMap(
    ([, names = '', type = '']) =>
      [...names.matchAll(/`([^`]+)`/g)].map(
        ([, name]) => `${name}${type.includes('optional') ? '?' : ''}`,
      ),
  );
}

const kinds = (z.toJSONSchema(anyEntry, { io: 'input' }) as Schema).oneOf ?? [];

test.each(kinds.map((kind) => [String(kind.properties?.t?.const), kind] as const))(
  'docs/archive/format.md lists the fields of the entry %s',
  (name, schema) => {
    const [, section = ''] = page.split(`\n### \`${name}\`\n`);
    const [own = ''] = section.split('\n#');

    expect(fieldsIn(own).toSorted()).toEqual(fieldsOf(schema).toSorted());
  },
);

test('docs/archive/format.md lists all kinds of entries', () => {
  expect(kinds.length).toBeGreaterThan(10);
  expect(page.match(/^### `/gm)?.length).toBe(kinds.length);
});
