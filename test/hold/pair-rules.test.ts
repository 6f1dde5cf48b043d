// The rules of a pair (pair-rules/), for the code as it is, and for copies with a flaw each: every flaw must break the
// rule named beside it, so that no rule is there in name only.

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp.ts';
import { APair, type MakePair, ownCode, type PairCode } from './pair-rules/a-pair.ts';
import { brakeRules } from './pair-rules/brake.ts';
import { leftOutRules } from './pair-rules/left-out.ts';
import { matchingRules } from './pair-rules/matching.ts';
import { type Mutant, mutants } from './pair-rules/mutants.ts';

const rules = [...matchingRules, ...leftOutRules, ...brakeRules];
const src = join(import.meta.dirname, '../../src');

/** Pairs of some code, closed at the end. */
function makerOf(code: PairCode): { readonly aPair: MakePair; close(): void } {
  const made: APair[] = [];
  return {
    aPair(options) {
      const pair = new APair({ patienceMs: 1_000, ...options }, code);
      made.push(pair);
      return pair;
    },
    close() {
      for (const pair of made) pair.close();
    },
  };
}

test.each(rules)('$name', ({ check }) => {
  const { aPair, close } = makerOf(ownCode);
  check(aPair);
  close();
});

const entries = ['hold/store.ts', 'succession/pairing.ts', 'succession/side.ts'];
/** The code of a pair: by file, its text and what it imports. */
const code = new Map<string, { readonly text: string; readonly imports: readonly string[] }>();
const unread = [...entries];
for (let path = unread.pop(); path !== undefined; path = unread.pop()) {
  const text = readFileSync(join(src, path), 'utf8');
  const found = text.matchAll(/(?:from|import\() ?'(\.[^']+)'/g);
  const imports = Array.from(found, ([, name = '']) => join(dirname(path), name));
  code.set(path, { text, imports });
  unread.push(...imports.filter((name) => !code.has(name)));
}

/** The file, and those that import it. All others are the same with its flaw. */
function concernedBy(file: string): ReadonlySet<string> {
  const concerned = new Set([file]);
  // A set that grows while it is read also gives what it got meanwhile.
  for (const known of concerned) {
    for (const [path, { imports }] of code) if (imports.includes(known)) concerned.add(path);
  }
  return concerned;
}

/** A copy of the code with a flaw in it. Files that the flaw does not concern are links, and loaded once for all. */
async function mutated({ file, from, to }: Mutant): Promise<PairCode> {
  const copy = tempDir();
  const concerned = concernedBy(file);
  for (const [path, { text }] of code) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    if (concerned.has(path)) writeFileSync(join(copy, path), text);
    else symlinkSync(join(src, path), join(copy, path));
  }
  const parts = (code.get(file)?.text ?? '').split(from);
  expect(parts, `${file} has the text of the flaw once`).toHaveLength(2);
  writeFileSync(join(copy, file), parts.join(to));
  const load = (module: string) =>
    import(/* @vite-ignore */ pathToFileURL(join(copy, module)).href);
  const { Store } = await load('hold/store.ts');
  const { pairingsOf, sideIn } = await load('succession/pairing.ts');
  const { pairedPage } = await load('succession/side.ts');
  return { Store, pairingsOf, sideIn, pairedPage };
}

test.each(mutants)('a flaw is found: $what', async (mutant) => {
  const rule = rules.find(({ name }) => name === mutant.breaks);
  const { aPair, close } = makerOf(await mutated(mutant));

  expect(() => rule?.check(aPair), mutant.breaks).toThrow();
  close();
});
