// Names of exported declarations. One name stands for one thing: two files that export the same name make a reader open
// both. The list below holds the exceptions, and may only get shorter. AssemblyScript in wasm folders is a program
// of its own, which repeats names of the code that it replaces.

import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** Exported names that more than one file declares. */
const shared: ReadonlySet<string> = new Set([
  // A command has the name that a user types; the list of sinks is what the engine and its tests call it.
  'sinks',
]);

const declaration =
  /^export (?:declare |abstract |async )*(?:(?:const|let|function\*?|class|interface|type) (?<name>[\w$]+)|(?:const|let) \[(?<list>[^\]]*)\]|(?:const|let) \{(?<members>[^}]*)\})/gm;

/** The names that a file declares and exports, once each. */
function exportedBy(source: string): ReadonlySet<string> {
  const names = [...source.matchAll(declaration)].flatMap(({ groups = {} }) =>
    (groups.name ?? groups.list ?? groups.members ?? '')
      .split(',')
      .map((part) => part.split(':').at(-1)?.trim() ?? ''),
  );
  return new Set(names.filter((name) => name !== ''));
}

/** The files that declare each exported name. */
function declarations(): ReadonlyMap<string, readonly string[]> {
  const files = globSync(['src/**/*.ts', 'connectors/**/*.ts', 'formats/**/*.ts'], { cwd: root })
    .filter((file) => !file.includes('/wasm/'))
    .toSorted();
  const found = new Map<string, string[]>();
  for (const file of files) {
    for (const name of exportedBy(readFileSync(join(root, file), 'utf8'))) {
      found.set(name, [...(found.get(name) ?? []), file]);
    }
  }
  return found;
}

test('an exported name is declared in one file, except those listed', () => {
  const repeated = [...declarations()].filter(([, files]) => files.length > 1);

  expect(repeated.length).toBeLessThanOrEqual(25);
  expect(repeated.filter(([name]) => !shared.has(name))).toEqual([]);
});

test('each listed exception still is one', () => {
  const found = declarations();

  expect([...shared].filter((name) => (found.get(name)?.length ?? 0) < 2)).toEqual([]);
});

test('each form of an exported declaration is found', () => {
  const source = [
    'export const a = 1;',
    'export async function b() {}',
    'export function* c() {}',
    'export abstract class D {}',
    'export interface E {}',
    'export type F = string;',
    'export const [g, h] = [1, 2];',
    'export const { i, j: k } = { i: 1, j: 2 };',
    'const notExported = 1;',
    "export type { Repeated } from './other.ts';",
  ].join('\n');

  expect([...exportedBy(source)]).toEqual(['a', 'b', 'c', 'D', 'E', 'F', 'g', 'h', 'i', 'k']);
});

test('each type and file that the glossary names exists', () => {
  const glossary = readFileSync(join(root, 'src/contracts/README.md'), 'utf8');
  const rows = [
    ...glossary.matchAll(
      /^\| (?!term|---)(?<term>[^|]+) \| (?<meaning>[^|]+) \| (?<type>[^|]*) \|$/gm,
    ),
  ];
  const contracts = join(root, 'src/contracts');
  const missing = rows.flatMap(({ groups: { term = '', type = '' } = {} }) => {
    const names = [...type.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const files = names.filter((name) => name.includes('.ts') || name.includes('/'));
    const texts = files
      .map((name) => (name.includes('/') ? join(root, name) : join(contracts, name)))
      .filter((path) => path.endsWith('.ts') && existsSync(path))
      .map((path) => readFileSync(path, 'utf8'));
    return [
      ...files.filter((name) => !existsSync(join(name.includes('/') ? root : contracts, name))),
      ...names.filter(
        (name) => !files.includes(name) && !texts.some((text) => text.includes(name)),
      ),
    ].map((name) => `${term}: ${name}`);
  });

  expect(rows.length).toBeGreaterThan(40);
  expect(missing).toEqual([]);
});
