// Whatever part of the state is damaged while the program is down, each event is once in a file that it has written to.
// The process was killed, so that its log is part of the state. SLUICE_DAMAGE_RUNS and SLUICE_DAMAGE_SEED set more
// runs; a failure names the seed and path to replay it.

import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aSetup, auditPath } from '../commands/a-setup.ts';
import { damage, damages } from '../hold/damages.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';

const runs = Number(process.env.SLUICE_DAMAGE_RUNS ?? 3);

/** The ids of the records in the files of a directory. */
function idsIn(dir: string): readonly string[] {
  const names = existsSync(dir) ? readdirSync(dir).filter((name) => !name.startsWith('.')) : [];
  return names
    .flatMap((name) => readFileSync(join(dir, name), 'utf8').split('\n').slice(0, -1))
    .map((line) => JSON.parse(line).metadata)
    .filter(({ log_name: log }) => log !== 'sluice')
    .map(({ original_event_uid: id }) => id);
}

test('a damaged state repeats nothing in a file and leaves nothing out', {
  timeout: 300_000 + runs * 30_000,
}, async () => {
  const { config, dir, stateDir, sandbox } = await aSetup({
    sinks: ['  disk: { type: file, path: ./out/events.ndjson, rotate: { bytes: 200KiB } }'],
  });
  const out = join(dir, 'out');
  const ids = () => [...sandbox.ledger().list(auditPath).ids()].toSorted();
  const idsInFile = () => idsIn(out);
  await runSluice(['run', '-c', config, '--once'], { cwd: dir });
  sandbox.control.grow(auditPath, 100);
  const running = startSluice(['run', '-c', config], { cwd: dir });
  await waitUntil(() => idsInFile().length === ids().length, { what: 'all events in the file' });
  await running.kill('SIGKILL');
  const copies = { state: join(dir, 'state-copy'), out: join(dir, 'out-copy') };
  cpSync(stateDir, copies.state, { recursive: true });
  cpSync(out, copies.out, { recursive: true });

  await fc.assert(
    fc.asyncProperty(damages, async (given) => {
      for (const [copy, to] of [
        [copies.state, stateDir],
        [copies.out, out],
      ] as const) {
        rmSync(to, { recursive: true });
        cpSync(copy, to, { recursive: true });
      }
      damage(stateDir, given);

      const after = await runSluice(['run', '-c', config, '--once'], { cwd: dir });

      // A changed version is one that a newer sluice may have: nothing was touched.
      if (after.stderr.includes('newer sluice')) return;
      expect(after.exitCode, after.stderr).toBe(0);
      expect(idsInFile().toSorted(), after.stderr).toEqual(ids());
    }),
    { numRuns: runs, seed: Number(process.env.SLUICE_DAMAGE_SEED ?? 1), endOnFailure: true },
  );
});
