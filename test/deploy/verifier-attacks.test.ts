// The verifiers of deploy/verifiers beside `archive verify`, under every attack of test/archive: none calls an archive
// whole that sluice calls broken, but where the attack is on a part that README.md lists as not checked.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { anyEntry } from '../../src/archive/entries.ts';
import type { ProgramResult } from '../support/children.ts';
import { runHere } from '../support/cli.ts';
import { testSome } from '../support/long.ts';
import { shortVerifiers, verifiersDir } from './short-verifiers.ts';
import { cases, caseVkey, type Written, writeCases } from './verifier-cases.ts';

let written: Written = { whole: [], attacked: [] };
/** What each short verifier says of the whole archives, and then of each that was attacked. */
let verdicts: readonly (readonly ProgramResult[])[] = [];

beforeAll(async () => {
  written = await writeCases();
  const places = [...written.whole, ...written.attacked];
  const verifiers = await shortVerifiers();
  verdicts = await Promise.all(verifiers.map(({ run }) => run(places, caseVkey)));
});

test('README.md names each part that they do not check', () => {
  const readme = readFileSync(join(verifiersDir, 'README.md'), 'utf8');
  for (const { unseen } of cases)
    if (unseen !== undefined) expect(readme).toContain(`\n| ${unseen}`);
});

test('they know every kind of entry', () => {
  const known = ['verify.py', 'verify.go'].map((name) => {
    const source = readFileSync(join(verifiersDir, name), 'utf8');
    const [, kinds = ''] = /kinds = "([a-z_ ]+)"/i.exec(source) ?? [];
    // The Go program looks for pages behind their segment only.
    return [...new Set(kinds.trim().split(' ')).add('page')].toSorted();
  });
  const kinds = anyEntry.options.map(({ shape }) => shape.t.value).toSorted();

  expect(known).toEqual([kinds, kinds]);
});

const verified = (place: string) => runHere(['archive', 'verify', place, '--key', caseVkey]);

test('archives that no attacker has changed are whole to each', async () => {
  for (const [i, place] of written.whole.entries()) {
    expect(await verified(place)).toMatchObject({ exitCode: 0, stderr: '' });
    for (const of of verdicts) expect(of[i]).toMatchObject({ exitCode: 0, errors: '' });
  }
});

testSome(
  cases.length / 2,
  cases.map((one, i) => ({ ...one, i })),
)('$base, $name', async ({ unseen, base, i }) => {
  const { stdout, stderr, exitCode } = await verified(written.attacked[i] ?? '');

  // A changed seam may be a stray file, which harms nothing.
  expect(base === 'seam' ? [0, 1, 2, 3] : [1, 2], stdout + stderr).toContain(exitCode);
  const isBroken = exitCode === 1 || exitCode === 2;
  for (const of of verdicts) {
    const { output = '', errors = '', exitCode: code } = of[written.whole.length + i] ?? {};
    const isWhole = output.includes('whole');
    expect({ isWhole, code }, `${stdout}${stderr}${output}${errors}`).toEqual(
      isBroken && unseen === undefined ? { isWhole: false, code: 1 } : { isWhole: true, code: 0 },
    );
    expect(output + errors).not.toMatch(/Traceback|goroutine/);
  }
});
