// Reads the test vectors that stand outside the repository, as other people's work does. A run without them says so: the
// tests that need them are skipped by name.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'vitest';

const shared = new URL('../../../shared/data/', import.meta.url);

/** The test, skipped with its reason in its name where the shared data is not there. */
export const vectorTest = existsSync(shared)
  ? test
  : (name: string, _body: () => void) =>
      test.skip(`${name} (skipped: ${fileURLToPath(shared)} is not there)`, () => {});

/** One JSON value a line. */
export function readLines<T>(path: string): readonly T[] {
  const text = readFileSync(new URL(path, shared), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** One JSON value. */
export function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, shared), 'utf8'));
}
