// The lint of words: which words it finds and which it leaves, and that the texts of this checkout pass.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { partsOf, wordsIn } from '../../docs/words/dictionary.ts';
import { flawsOf, measured } from '../../docs/words/lint.ts';
import {
  densityOf,
  hashCommentsOf,
  partsOfFile,
  proseOf,
  proseOfHtml,
} from '../../docs/words/texts.ts';

test.each([
  ['What the sink tells could not be stored', 'tells'],
  ['the far side has it', 'far side'],
  ['whoever reads this', 'whoever'],
  ['reading goes on', 'goes on'],
  ['the receiver takes nothing', 'receiver takes'],
  ['an older place', 'place'],
  ['three letters of the sink', 'letters'],
])('finds in "%s": %s', (text, found) => {
  expect(wordsIn(text).map((one) => one.found)).toEqual([found]);
});

test.each([
  'another process takes over',
  'the process is standing by',
  'three dead letters',
  'expected letters, digits and _',
  'ask the vendor',
  'an intelligent placeholder, mentioned and around',
])('leaves "%s"', (text) => {
  expect(wordsIn(text)).toEqual([]);
});

test('reads strings, comments and names apart', () => {
  const source =
    "// told\nconst toldAt = `a ${b({ c: 'd' })} e`; /* met */ const f = /'told'/;\nx('it\\'s');";

  const { strings, comments, identifiers } = partsOfFile(source);

  expect(strings.map(({ text }) => text)).toEqual(['a ', 'd', ' e', "it\\'s"]);
  expect(strings.at(-1)?.line).toBe(3);
  expect(comments.map(({ text }) => text)).toEqual(['// told', '/* met */']);
  expect(identifiers).toContain('toldAt');
  expect(partsOf('toldAt')).toEqual(['told', 'at']);
  expect(partsOf('deadLetters')).not.toContain('letters');
});

test('reads comments of configs and scripts, with their lines', () => {
  const config = '#!/bin/sh\na: told # report\n# told\nb: "x#told"\n';

  expect(hashCommentsOf(config)).toBe('\n report\n told\n\n');
});

test('reads the names of tests', () => {
  const source =
    "test('one', f);\ndescribe.each([1])(`two ${a}`, g);\ntest.skipIf(a(b))('three', () => of('no'));it('four', f);";

  const { tests } = partsOfFile(source);

  expect(tests).toEqual([
    { line: 1, text: 'one' },
    { line: 2, text: 'two ' },
    { line: 3, text: 'three' },
    { line: 3, text: 'four' },
  ]);
});

test('leaves names of the language', () => {
  const { identifiers } = partsOfFile('const a = Math.round(b); round(c);');
  const { identifiers: builtIn } = partsOfFile('const a = Math.round(b);');

  expect([identifiers.has('round'), builtIn.has('round')]).toEqual([true, false]);
});

test('reads the visible text of HTML, with labels', () => {
  const html = '<p class="told">One\n<b>two</b></p><input placeholder="three" name="told">';

  expect(proseOfHtml(html).split(/\s+/).filter(Boolean)).toEqual(['One', 'two', 'three']);
});

test('scans the scripts and the text of the status page', () => {
  const { pages, packages } = measured();

  expect(pages).toHaveProperty(['src/watch/page/index.html']);
  expect(packages).toHaveProperty(['src/watch/page']);
});

test('counts prose only, per 1,000 words', () => {
  const page = 'It is `it`.\n```sh\nit it it\n```\nSee [it](it.md) <!-- it -->';

  expect(densityOf(proseOf(page), 'it')).toBeCloseTo((2 * 1000) / 5);
});

describe('an exception', () => {
  const of = (words: number) => ({ pages: { 'a.md': { words } }, packages: {}, tests: {} });

  test('allows its count and not one more', () => {
    expect(flawsOf(of(3), of(3))).toEqual([]);
    expect(flawsOf(of(4), of(3))).toEqual(['a.md: words 4, at most 3']);
    expect(flawsOf(of(1), { pages: {}, packages: {}, tests: {} })).toEqual([
      'a.md: words 1, at most 0',
    ]);
  });
});

test('the texts of this checkout pass, with the exceptions that are listed', () => {
  const file = join(import.meta.dirname, '..', '..', 'docs', 'words', 'exceptions.json');
  const measures = measured();

  expect(flawsOf(measures, JSON.parse(readFileSync(file, 'utf8')))).toEqual([]);
});
