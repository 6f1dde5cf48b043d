// Readers of archives that share no code with sluice: Tessera's `fsck`, a small program over Go's x/mod/sumdb/tlog and
// note (oracle/), and a witness of transparency-dev (witness/). Go builds them once, and they stay in the cache. If
// that is impossible, tests are skipped with the reason. `fsck` retries for ever on a damaged log, so it is used only
// on whole logs, and not for long.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'vitest';
import { cached } from '../cache.ts';
import { endChild, type ProgramResult, runProgram, spawnChild } from '../children.ts';
import { go, goProgram } from '../go-program.ts';
import { afterThisTest, tempDir } from '../temp.ts';

const fsckPackage = 'github.com/transparency-dev/tessera/cmd/fsck@v1.0.4';
const fsckSecondsMax = 60;

/** Where the programs are. */
export interface Oracles {
  /** `log DIR VKEY`, `since DIR VKEY NOTE` or `proof FILE VKEY RECORD`; see oracle/main.go. */
  readonly oracle: (...args: readonly string[]) => Promise<ProgramResult>;
  /** Reads a whole log; exit code 0 if all entries match its checkpoint. */
  readonly fsck: (dir: string, vkey: string) => Promise<ProgramResult>;
}

/** The programs; skips the calling test, with the reason, if they cannot be built. */
export async function oraclesFor({ skip }: TestContext): Promise<Oracles> {
  const built = await build().catch((error: unknown): never =>
    skip(`no independent reader of archives: ${error instanceof Error ? error.message : error}`),
  );
  return {
    oracle: (...args) => runProgram(built.oracle, args),
    async fsck(dir, vkey) {
      const key = join(tempDir(), 'key.pub');
      writeFileSync(key, vkey);
      const [origin = ''] = vkey.split('+');
      return await runProgram('timeout', [
        ...[String(fsckSecondsMax), join(built.fsck, 'fsck'), '--ui=false'],
        ...[`--storage_url=file://${dir}/`, `--public_key=${key}`, `--origin=${origin}`],
      ]);
    },
  };
}

/** A running witness; it ends with the test. */
export interface RunningWitness {
  readonly url: string;
  readonly vkey: string;
}

/** Starts the witness of transparency-dev (witness/) for these logs; skips the test where it cannot be built. */
export async function startWitness(
  { skip }: TestContext,
  {
    name = 'witness.test',
    ...known
  }: { readonly name?: string } & ({ readonly log: string } | { readonly logs: readonly string[] }),
): Promise<RunningWitness> {
  const witness = await goProgram(join(import.meta.dirname, 'witness')).catch(
    (error: unknown): never =>
      skip(`no real witness: ${error instanceof Error ? error.message : error}`),
  );
  const child = spawnChild(witness, [name, ...('log' in known ? [known.log] : known.logs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  afterThisTest(() => endChild(child));
  const lines = createInterface({ input: child.stdout ?? process.stdin });
  const [line] = (await once(lines, 'line')) as [string];
  const [vkey = '', url = ''] = line.split(' ');
  return { url, vkey };
}

async function build(): Promise<{ readonly oracle: string; readonly fsck: string }> {
  return {
    oracle: await goProgram(join(import.meta.dirname, 'oracle')),
    fsck: await cached('tessera-fsck-1.0.4', (dir) => go(['install', fsckPackage], { GOBIN: dir })),
  };
}
