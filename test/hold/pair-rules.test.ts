// The rules of a pair (pair-rules/), for the code as it is, and for copies with a flaw each: every flaw must break the
// rule named beside it, so that no rule is there in name only.

import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

/** A copy of the code with a flaw in it. */
async function mutated({ file, from, to }: Mutant): Promise<PairCode> {
  const copy = tempDir();
  cpSync(src, copy, { recursive: true });
  const parts = readFileSync(join(copy, file), 'utf8').split(from);
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
