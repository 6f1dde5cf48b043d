// The files of `npm run release:fetch`, for tests of a release: Node of both platforms, nfpm and libraries of Debian.
// It stays in the user's cache, as the other foreign programs of cache.ts.
import { join } from 'node:path';
import { debsOf, nfpm, nodeOf, platforms } from '../../deploy/release/machine.ts';
import { lastLine } from './cache.ts';
import { runProgram } from './children.ts';

/** Fetches what is missing. Rejects with the reason where that is not possible. */
export async function fetchedForRelease(): Promise<void> {
  if (isFetched()) return;
  const script = join(import.meta.dirname, '../../deploy/release/machine.ts');
  const { exitCode, errors } = await runProgram(process.execPath, [script]);
  if (exitCode !== 0) throw new Error(`npm run release:fetch: ${lastLine(errors)}`);
}

function isFetched(): boolean {
  try {
    for (const platform of platforms) {
      nodeOf(platform);
      debsOf(platform);
    }
    return nfpm() !== '';
  } catch {
    return false;
  }
}
