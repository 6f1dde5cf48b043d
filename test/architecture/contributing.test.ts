// CONTRIBUTING.md as a contributor uses it. What must stay true: each file, folder and `npm run` task that it names exists,
// and each listed sink, source and format has the files of its checklist.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sinks } from '../../connectors/index.ts';
import { sources } from '../../connectors/sources/index.ts';
import { formats } from '../../formats/index.ts';

const root = join(import.meta.dirname, '../..');
const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');

test('each npm task that CONTRIBUTING.md names exists', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const named = [...text.matchAll(/npm run ([\w-]+)/g)].map(([, task = '']) => task);

  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((task) => scripts[task] === undefined)).toEqual([]);
});

test('each file and folder that CONTRIBUTING.md names exists', () => {
  const named = [...text.matchAll(/`((?:src|connectors|formats|test|docs)\/[\w./-]+)`/g)]
    .map(([, path = '']) => path)
    .filter((path) => !path.includes('NAME'));

  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test.each([
  ['sink', sinks.map(({ type }) => type)],
  ['source', sources.map(({ type }) => type)],
  ['format', formats.map(({ type }) => type)],
])('each %s has the files of the checklist "Add a %s"', (kind, names) => {
  const checklist = text.split(`## Add a ${kind}\n`)[1]?.split('\n## ')[0] ?? '';
  // Connectors of one kind may share a code file and a test; the list files name them.
  const patterns = [...checklist.matchAll(/`([\w/-]*NAME[\w.-]*)`/g)]
    .map(([, path = '']) => path)
    .filter(
      (path) => path.startsWith('docs/') || (kind === 'sink' && path.startsWith('connectors/')),
    );

  expect(patterns.length).toBeGreaterThan(0);
  const missing = patterns.flatMap((pattern) =>
    names
      .map((name) =>
        pattern.replace('NAME', pattern.endsWith('.ts') ? name.replaceAll('_', '-') : name),
      )
      .filter((path) => !existsSync(join(root, path))),
  );
  expect(missing).toEqual([]);
});
