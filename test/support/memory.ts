// Where the tests' files are. An fsync costs a tenth of a run's CPU on a disk and nothing in memory. The tests end
// processes and never the machine, so a file in memory shows the same.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Linux has a file system in memory here. */
const memory = '/dev/shm';

/** What the files of a run take at most at a time, in bytes, with room to spare. */
const needed = 4 * 1024 ** 3;

/** The file system in memory if it has room and programs can be started there, as containers often forbid; else the usual temporary directory. */
export function roomyDir(): string {
  let probe: string | undefined;
  try {
    const { bavail, bsize } = statfsSync(memory);
    if (bavail * bsize < needed) return tmpdir();
    probe = mkdtempSync(join(memory, 'sluice-probe-'));
    const program = join(probe, 'program');
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 });
    execFileSync(program);
    return memory;
  } catch {
    return tmpdir();
  } finally {
    if (probe !== undefined) rmSync(probe, { recursive: true, force: true });
  }
}
