// Programs that Go builds once from sources of ours, with versions pinned by their go.sum; the cache keeps them.
import { hash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { cached, lastLine } from './cache.ts';
import { runProgram } from './children.ts';
import { tempDir } from './temp.ts';

/** The program in this directory, built; rejects where it cannot be. */
export async function goProgram(source: string): Promise<string> {
  const name = basename(source);
  const names = readdirSync(source).filter((file) => /\.go$|^go\.(mod|sum)$/.test(file));
  const files = names.toSorted().map((file) => readFileSync(join(source, file)));
  const version = hash('sha256', Buffer.concat(files)).slice(0, 12);
  const built = await cached(`go-${name}-${version}`, async (dir) => {
    const work = tempDir();
    cpSync(source, work, { recursive: true });
    await go(['build', '-C', work, '-trimpath', '-ldflags', '-s -w', '-o', join(dir, name), '.']);
  });
  return join(built, name);
}

/** Runs go; rejects where it fails. */
export async function go(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const set = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const { exitCode, errors } = await runProgram('nice', ['env', ...set, 'go', ...args]);
  if (exitCode !== 0) throw new Error(`go ${args[0]} failed: ${lastLine(errors)}`);
}
