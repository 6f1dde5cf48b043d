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

test('Dockerfile copies only existing files', () => {
  const sources = instructions('COPY')
    .filter((line) => !line.startsWith('--from'))
    .flatMap((line) => line.split(' ').slice(0, -1));

  expect(sources.length).toBeGreaterThan(5);
  expect(sources.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('Dockerfile runs as a user without rights', () => {
  // By number, since Kubernetes cannot check runAsNonRoot by name.
  expect(instructions('USER')).toEqual(['65532:65532']);
});

test('Dockerfile runs commands that the program knows', () => {
  const lists = [...dockerfile.matchAll(/^(?:ENTRYPOINT|HEALTHCHECK .* CMD|CMD) (\[.*\])$/gm)].map(
    ([, list = '[]']) => JSON.parse(list) as string[],
  );
  const program = '/usr/bin/sluice';
  const commands = lists.map((list) => list.filter((word) => word !== program));

  expect(dockerfile).toContain(`ln -s /app/src/boot/sluice.js ${program}`);
  // Run by its first line, so it has to be executable.
  expect(statSync(join(root, 'src/boot/sluice.js')).mode & 0o111).toBe(0o111);
  expect(commands.map(([command]) => command)).toEqual(['healthy', undefined, 'run']);
  for (const words of commands) expect(words.length === 0 ? [] : unknownIn(words)).toEqual([]);
});
