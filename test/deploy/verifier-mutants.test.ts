// Mutants of the verifiers in deploy/verifiers: an archive of verifier-cases.ts exposes each, as broken where it is
// whole or the reverse. The suite tries a few of each verifier; SLUICE_VERIFIER_MUTANTS=all tries all (minutes).

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { testSome } from '../support/long.ts';
import { tempDir } from '../support/temp.ts';
import { type ShortVerifier, shortVerifiers, verifierOf, verifiersDir } from './short-verifiers.ts';
import { cases, caseVkey, writeCases } from './verifier-cases.ts';
import { type Mutant, mutants } from './verifier-mutants.ts';

const chosen = process.env.SLUICE_VERIFIER_MUTANTS ?? '';
/** Attacks that show these mutants are among the last of the table, which are tried first. */
const few = [
  'the number in a stream is not checked',
  'a page may be in the place of another',
  'a newer checkpoint in checkpoints/ is not seen',
];
const tried = mutants.filter(
  ({ what, of, equivalent }) =>
    equivalent === undefined &&
    (chosen === '' ? few.includes(what) : chosen === 'all' || of === chosen),
);
const batch = 30;

interface Expected {
  readonly place: string;
  readonly vkey: string;
  readonly isWhole: boolean;
  /** Default: 0 of a whole archive, 1 of a broken one. */
  readonly exitCode?: number;
  readonly name: string;
  /** The only verifier that sees it; absent: each. */
  readonly only?: Mutant['of'];
}

let archives: readonly Expected[] = [];
let names: readonly ShortVerifier['name'][] = [];

beforeAll(async () => {
  names = (await shortVerifiers()).map(({ name }) => name);
  const { whole, attacked } = await writeCases();
  const broken = cases.flatMap(({ name, base, unseen }, i) =>
    // Changes of seams are broken or not, as verify says; verifier-attacks.test.ts compares them.
    base === 'seam' || unseen !== undefined
      ? []
      : [{ place: attacked[i] ?? '', vkey: caseVkey, isWhole: false, name }],
  );
  const all = whole.map((place) => ({ place, vkey: caseVkey, isWhole: true, name: place }));
  archives = [...rotated(), ...all, ...broken.toReversed()];
});

/** An archive whose key was rotated and that has unusual bodies, with right and wrong keys. */
function rotated(): readonly Expected[] {
  const body =
    '\ufeff{"a": {"data": []}, "a": {"x]": "}\\"", "data": [ {"id": "\\u005d"},\n [1] ]}}';
  const texts = ['{"id": "\\u005d"}', '[1]'];
  const made = naiveArchive([
    { pages: [{ stream: 'a', body, texts, records: 2, entry: { items: 'a.data' } }] },
    { pages: [{ stream: 'a', records: 7, kept: [1, 3, 6] }], rotates: true },
  ]);
  const [old = '', vkey = ''] = made.vkeys;
  const place = tempDir();
  writeNaive(made, place);
  // A stray file, which is no checkpoint.
  writeFileSync(join(place, 'checkpoints/2026/01/31/00000000000000009999.txt'), 'x');
  const otherId = vkey.replace(/\+[0-9a-f]{8}\+/, '+00000000+');
  return [
    { place, vkey, isWhole: true, name: 'a rotated key' },
    { place, vkey: old, isWhole: false, name: 'the key before the rotation' },
    { place, vkey: otherId, isWhole: false, exitCode: 2, name: 'a key under another id' },
    ...[
      ['a kind of a newer version', { t: 'newer' }] as const,
      ['a stream with a gap', { seq: 7 }] as const,
    ].map(([name, entry]) => {
      const bad = naiveArchive([{ pages: [{ stream: 'a' }, { stream: 'a', entry }] }]);
      const at = tempDir();
      writeNaive(bad, at);
      return { place: at, vkey: bad.vkeys[0] ?? '', isWhole: false, name };
    }),
    edited('the first entry is no start', (text, i) => (i === 0 ? '{"t":"stop"}' : text)),
    edited('a key twice in an entry', (text) => text.replace('{', '{"t":"stop",'), 'verify.py'),
  ];
}

/** An archive that is broken by its signed entries alone. */
function edited(
  name: string,
  edit: (text: string, index: number) => string,
  only?: Mutant['of'],
): Expected {
  const made = naiveArchive([{ pages: [{ stream: 'a' }] }], undefined, edit);
  const place = tempDir();
  writeNaive(made, place);
  return { place, vkey: made.vkeys[0] ?? '', isWhole: false, name, ...(only && { only }) };
}

/** The program with the mutant in it. */
function mutated({ of, from, to, what }: Mutant): string {
  const parts = readFileSync(join(verifiersDir, of), 'utf8').split(from);
  if (parts.length !== 2) throw new Error(`${of} has not just one place for: ${what}`);
  return parts.join(to);
}

/** The archive that shows a mutant; null: none does. */
async function shownBy(mutant: Mutant): Promise<string | null> {
  const run = await verifierOf(mutant.of, mutated(mutant));
  const shown = archives.filter(({ only = mutant.of }) => only === mutant.of);
  for (const [vkey, of] of Map.groupBy(shown, (one) => one.vkey)) {
    for (let i = 0; i < of.length; i += batch) {
      const some = of.slice(i, i + batch);
      const verdicts = await run(
        some.map(({ place }) => place),
        vkey,
      );
      const found = some.find(
        ({ isWhole, exitCode = isWhole ? 0 : 1 }, n) => exitCode !== verdicts[n]?.exitCode,
      );
      if (found !== undefined) return found.name;
    }
  }
  return null;
}

test('each mutant’s text is in the program', () => {
  for (const mutant of mutants) expect(mutated(mutant)).not.toBe('');
});

testSome(2, tried)('$of: $what', async (mutant) => {
  const name = mutant.of === 'verify.py' ? 'python' : 'go';
  // shortVerifiers() has reported why it cannot run.
  if (!names.includes(name)) return;

  expect(await shownBy(mutant)).not.toBeNull();
});
