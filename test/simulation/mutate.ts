// `npm run simulate -- --mutations`: puts flaws into a copy of the code, one at a time, and has the
// simulation look for each. One that is not found means that a world or its oracle is too weak. The
// copy stands in a temporary directory; the code itself is never touched.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Mutation, mutations } from './mutations.ts';

const root = join(import.meta.dirname, '../..');
/** Worlds in which a flaw is looked for, until one shows it. */
const seedsMax = 2_000;

/** Looks for the flaws of these kinds of worlds, also for rare ones. Resolves with how many were not found. */
export async function findMutations(
  kinds: readonly string[],
  { rare = true } = {},
): Promise<number> {
  const copy = await mkdtemp(join(tmpdir(), 'mutations-'));
  const requested = mutations.filter(
    ({ of, isRare = false }) => kinds.includes(of) && (rare || !isRare),
  );
  let found = 0;
  try {
    for (const part of [
      'src',
      'connectors',
      'formats',
      'test/simulation',
      'test/support',
      'package.json',
    ]) {
      await cp(join(root, part), join(copy, part), { recursive: true });
    }
    await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const mutation of requested) {
      const seed = await look(copy, mutation);
      if (seed !== null) found += 1;
      console.log(`${seed === null ? 'NOT found' : `found by ${seed}`}: ${mutation.what}`);
    }
  } finally {
    await rm(copy, { recursive: true });
  }
  console.log(`${found} of ${requested.length} found`);
  return requested.length - found;
}

/** The code with one flaw in it. Throws where the code is no more as the mutation knows it. */
export async function mutated({ file, from, to, what }: Mutation): Promise<string> {
  const code = await readFile(join(root, file), 'utf8');
  const parts = code.split(from);
  if (parts.length !== 2) throw new Error(`${file} has not just one place for: ${what}`);
  return parts.join(to);
}

/** The seed that shows the flaw; null where none does. */
async function look(copy: string, mutation: Mutation): Promise<string | null> {
  const file = join(copy, mutation.file);
  const whole = await readFile(file);
  await writeFile(file, await mutated(mutation));
  const { of, firstSeed = 1 } = mutation;
  const args = ['--of', of, '--from', `${firstSeed}`, '--seeds', `${seedsMax}`, '--first'];
  // The types of the copy's files are stripped once, and leave nothing in a cache that stays.
  const env = { ...process.env, NODE_COMPILE_CACHE: join(copy, '.compiled') };
  const child = spawn(process.execPath, ['test/simulation/main.ts', ...args], { cwd: copy, env });
  let said = '';
  child.stderr.on('data', (data: Buffer) => {
    said += data.toString();
  });
  child.stdout.resume();
  const [code] = (await once(child, 'close')) as [number | null];
  await writeFile(file, whole);
  const seed = /^\w+ seed \d+/m.exec(said)?.[0];
  if (code !== 0 && seed === undefined) throw new Error(`${mutation.what}: ${said}`);
  return seed ?? null;
}
