// The cases of the short verifiers: whole archives, and archives that every attack of test/archive has changed, each with the
// key that the reader trusts.

import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { aSigner } from '../archive/a-writer.ts';
import { type Attack, attacksIn } from '../archive/attacks.ts';
import { fullArchive } from '../archive/full-archive.ts';
import { lyingAttacks } from '../archive/lying-attacks.ts';
import { lakeAttacks, pageAttacks, threePages } from '../archive/page-attacks.ts';
import { seamArchive, seamAttacks } from '../archive/seam-attacks.ts';
import { interruptedErasure, signedAttacks } from '../archive/signed-attacks.ts';
import { tempDir } from '../support/temp.ts';

type Base = 'full' | 'seam' | 'pages' | 'lake';

/** An attack, and which whole archive it changes. */
export interface Case extends Pick<Attack, 'name' | 'unseen'> {
  readonly base: Base;
  readonly apply: (place: string, before: string) => unknown;
}

/** The key of all these archives. */
export const caseVkey: string = aSigner().verifier.vkey;

const named = (
  base: Base,
  table: Readonly<Record<string, Case['apply']>>,
  unseen: Readonly<Record<string, NonNullable<Attack['unseen']>>> = {},
): readonly Case[] =>
  Object.entries(table).map(([name, apply]) => ({
    ...{ base, name, apply },
    ...(unseen[name] !== undefined && { unseen: unseen[name] }),
  }));

/** All attacks; of the faults of files a quarter, or all with SLUICE_TEST_LONG=1. */
export const cases: readonly Case[] = [
  ...[...attacksIn(0), ...signedAttacks, ...lyingAttacks].map(
    (one) => ({ ...one, base: 'full' }) as const,
  ),
  ...named('seam', seamAttacks, {
    'the earlier archive is at the location of a shard': 'the logs of other shards',
  }),
  ...named('pages', pageAttacks, { 'the tiles of the tree differ': 'the tiles of the tree' }),
  ...named('lake', lakeAttacks, {
    'an object of the lake is replaced by another': 'the lake',
    'a byte of an object of the lake differs': 'the lake',
    'the end of an object of the lake says that it has no rows': 'the lake',
  }),
];

/** Directories of the whole archives and of those that are attacked, in the order of `cases`. */
export interface Written {
  readonly whole: readonly string[];
  readonly attacked: readonly string[];
}

/** Writes them all. */
export async function writeCases(): Promise<Written> {
  const seam = await seamArchive();
  const places: Readonly<Record<Base, string>> = {
    full: (await fullArchive()).place,
    seam: seam.place,
    pages: await threePages(false),
    lake: await threePages(true),
  };
  const interrupted = join(tempDir(), 'archive');
  cpSync(places.full, interrupted, { recursive: true });
  await interruptedErasure(interrupted);
  const attacked: string[] = [];
  for (const { base, apply } of cases) {
    const place = join(tempDir(), 'archive');
    cpSync(places[base], place, { recursive: true });
    await apply(place, seam.before);
    attacked.push(place);
  }
  return { whole: [...Object.values(places), seam.before, interrupted], attacked };
}
