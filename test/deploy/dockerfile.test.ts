// The Dockerfile against the checkout: there is no engine here to build it, so each path it copies must exist, and each
// command it runs must be one that the program knows.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { unknownIn } from './command-line.ts';

const root = join(import.meta.dirname, '..', '..');
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8').replaceAll('\\\n', ' ');

/** The lines that begin with an instruction, without it. */
function instructions(name: string): readonly string[] {
  return dockerfile
    .split('\n')
    .flatMap((line) => (line.startsWith(`${name} `) ? [line.slice(name.length + 1)] : []));
}

test('Dockerfile copies only what is there', () => {
  const sources = instructions('COPY')
    .filter((line) => !line.startsWith('--from'))
    .flatMap((line) => line.split(' ').slice(0, -1));

  expect(sources.length).toBeGreaterThan(5);
  expect(sources.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('Dockerfile runs as a user without rights', () => {
  expect(instructions('USER')).toEqual(['node']);
});

test('Dockerfile runs commands that the program knows', () => {
  const lists = [...dockerfile.matchAll(/^(?:ENTRYPOINT|.*CMD) (\[.*\])$/gm)].map(
    ([, list = '[]']) => JSON.parse(list) as string[],
  );
  const script = lists.flat().find((word) => word.endsWith('main.ts'));
  const commands = lists.map((list) => list.filter((word) => !word.endsWith('main.ts')));

  expect(script).toBe('/app/src/boot/main.ts');
  // Run by its first line, so it has to be executable.
  expect(statSync(join(root, 'src/boot/main.ts')).mode & 0o111).toBe(0o111);
  expect(commands.map(([command]) => command)).toEqual(['status', undefined, 'run']);
  for (const words of commands) expect(words.length === 0 ? [] : unknownIn(words)).toEqual([]);
});
