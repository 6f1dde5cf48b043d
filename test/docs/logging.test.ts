// The log's events: declared once, each logged somewhere, and listed in docs/logging.md for operators who alert on
// them.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { EventDeclaration } from '../../src/contracts/log-events/declaration.ts';
import { logEvents } from '../../src/contracts/log-events.ts';

const root = join(import.meta.dirname, '..', '..');
const declared = Object.values(logEvents).flatMap((events) =>
  Object.entries<EventDeclaration>(events),
);
const names = new Set(declared.map(([name]) => name));
const sources = globSync(['src/**/*.ts', 'connectors/**/*.ts', 'formats/**/*.ts'], { cwd: root })
  .filter((path) => !path.startsWith('src/contracts/log-events'))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
const page = readFileSync(join(root, 'docs', 'logging.md'), 'utf8');

describe('the declared events', () => {
  test('have names of one form, each once', () => {
    expect(names.size).toBe(declared.length);
    expect([...names].filter((name) => !/^[a-z]+(_[a-z0-9]+)*$/.test(name))).toEqual([]);
  });

  test('are all logged', () => {
    const code = sources.map(({ text }) => text).join('\n');

    expect([...names].filter((name) => !code.includes(`'${name}'`))).toEqual([]);
  });

  test('are all in docs/logging.md, with meaning and next step', () => {
    const missing = declared.filter(([name, { level, meaning, next = '' }]) => {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\` |`)) ?? '';
      return ![level, meaning, next].every((part) => row.includes(part.replaceAll('|', '\\|')));
    });

    expect(missing.map(([name]) => name)).toEqual([]);
  });

  test('have their meaning in whole sentences', () => {
    const texts = declared.flatMap(([name, { meaning, next }]) => [
      [name, meaning],
      ...(next === undefined ? [] : [[name, next]]),
    ]);

    expect(texts.filter(([, text = '']) => !/^([A-Z`]|sluice ).*\.$/s.test(text))).toEqual([]);
  });
});

test('every log call names a declared event', () => {
  // The types hold this as well; a cast would get past them.
  const calls = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\b(?:log|lines|beside)\.(?:debug|info|warn|error)\(\s*([^,)]*)/g)].map(
      ([, first = '']) => ({ path, first }),
    ),
  );

  expect(calls.length).toBeGreaterThan(120);
  expect(
    calls.filter(({ first }) => first !== 'event' && !names.has(first.replaceAll("'", ''))),
  ).toEqual([]);
});
