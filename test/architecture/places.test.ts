// docs/contributing/places.md: 30 questions about the code. Invariants: each answer opens at most three files, all
// exist, and the map in src/README.md leads to each of them. Every file that the map names exists as well.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const map = readFileSync(join(root, 'src/README.md'), 'utf8');
const page = readFileSync(join(root, 'docs/contributing/places.md'), 'utf8');

const rows = [...page.matchAll(/^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|$/gm)].map(
  ([, number = '', question = '', open = '', answer = '']) => ({
    number: Number(number),
    question,
    files: filesIn(open),
    answer,
  }),
);

/** Paths of files between backquotes; a path with NAME stands for several files. */
function filesIn(text: string): readonly string[] {
  return [...text.matchAll(/`([\w./-]+\.(?:ts|js|md))`/g)]
    .map(([, path = '']) => path)
    .filter((path) => !path.includes('NAME'));
}

/** Paths are relative to src/, or to the top for the other folders. */
function isThere(path: string): boolean {
  return existsSync(join(root, 'src', path)) || existsSync(join(root, path));
}

test('there are 30 questions, each once and with an answer', () => {
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));
  expect(new Set(rows.map(({ question }) => question)).size).toBe(30);
  expect(rows.every(({ answer }) => answer.trim() !== '')).toBe(true);
});

describe.each(rows)('$question', ({ files }) => {
  test('the answer opens one to three files that exist', () => {
    expect(files.length).toBeGreaterThanOrEqual(1);
    expect(files.length).toBeLessThanOrEqual(3);
    expect(files.filter((path) => !isThere(path))).toEqual([]);
  });

  test('the map leads to each file', () => {
    const mapped = new Set(filesIn(map));

    expect(files.filter((path) => !mapped.has(path))).toEqual([]);
  });
});

test('each file that the map names exists', () => {
  const named = filesIn(map);

  expect(named.length).toBeGreaterThan(150);
  expect(named.filter((path) => !isThere(path))).toEqual([]);
});
