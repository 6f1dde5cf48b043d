// The verifiers of deploy/verifiers beside `archive verify`, under every attack of test/archive: none calls an archive
// whole that sluice calls broken, but where the attack is on a part that README.md says they do not check.

import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { anyEntry } from '../../src/archive/entries.ts';
import { aSigner } from '../archive/a-writer.ts';
import { attacks } from '../archive/attacks.ts';
import { fullArchive } from '../archive/full-archive.ts';
import { lyingAttacks } from '../archive/lying-attacks.ts';
import { signedAttacks } from '../archive/signed-attacks.ts';
import type { ProgramResult } from '../support/children.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { shortVerifiers, verifiersDir } from './short-verifiers.ts';

const { vkey } = aSigner().verifier;
const all = [...attacks, ...signedAttacks, ...lyingAttacks];
let whole = '';
let attacked: readonly string[] = [];
/** What each short verifier says of the whole archive, and then of each that was attacked. */
let verdicts: readonly (readonly ProgramResult[])[] = [];

beforeAll(async () => {
  whole = (await fullArchive()).place;
  const places: string[] = [];
  for (const { apply } of all) {
    const place = join(tempDir(), 'archive');
    cpSync(whole, place, { recursive: true });
    await apply(place);
    places.push(place);
  }
  attacked = places;
  const verifiers = await shortVerifiers();
  verdicts = await Promise.all(verifiers.map(({ run }) => run([whole, ...places], vkey)));
});

test('README.md names each part that they do not check', () => {
  const readme = readFileSync(join(verifiersDir, 'README.md'), 'utf8');
  for (const { unseen } of all) if (unseen !== undefined) expect(readme).toContain(`\n- ${unseen}`);
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

const verified = (place: string) => runHere(['archive', 'verify', place, '--key', vkey]);

test('an archive that nobody has attacked is whole to each', async () => {
  expect(await verified(whole)).toMatchObject({ exitCode: 0, stderr: '' });
  for (const [verdict] of verdicts) expect(verdict).toMatchObject({ exitCode: 0, errors: '' });
});

test.each(all.map((attack, i) => ({ ...attack, i })))('$name', async ({ unseen, i }) => {
  const { stdout, stderr, exitCode } = await verified(attacked[i] ?? '');

  expect([1, 2], stdout + stderr).toContain(exitCode);
  for (const of of verdicts) {
    const { output = '', errors = '', exitCode: code } = of[i + 1] ?? {};
    const isWhole = output.includes('whole');
    expect({ isWhole, code }, output + errors).toEqual(
      unseen === undefined ? { isWhole: false, code: 1 } : { isWhole: true, code: 0 },
    );
    expect(output + errors).not.toMatch(/Traceback|goroutine/);
  }
});
