// The one file of a release with the Node that runs the tests, built once per run: to join the modules and to write 150 MB
// costs CPU, and several tests start the same file.
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from './children.ts';
import { oncePerRun, runDir } from './once-per-run.ts';

const builder = join(import.meta.dirname, '../deploy/release-build-main.ts');

/** A built file. Tests read and start it, and change only copies. */
export interface OneFile {
  readonly file: string;
  /** SHA-256 of the tree and of the file, as `release-build-main.ts` prints them. */
  readonly sums: string;
}

/** The file of this checkout, built at the first request of a run. */
export function oneFile(): Promise<OneFile> {
  return oncePerRun('one_file', buildOneFile);
}

/** Builds it; for `global-setup.ts`, everyone else calls `oneFile`. */
export async function buildOneFile(): Promise<OneFile> {
  return await builtBy(builder, mkdtempSync(join(runDir(), 'one-file-')));
}

/** Builds the checkout that the script is in into `out`. Rejects with what the build writes to stderr. */
export async function builtBy(script: string, out: string): Promise<OneFile> {
  const { exitCode, output, errors } = await runProgram(process.execPath, [script, out]);
  if (exitCode !== 0 || errors !== '') throw new Error(`${script} failed: ${errors}`);
  return { file: join(out, 'sluice'), sums: output };
}
