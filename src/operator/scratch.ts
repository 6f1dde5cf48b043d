// A directory for a command's copy of a state, among the temporary files. The command deletes it at its end; a command that was
// killed leaves it, and a later one deletes it. Invariant: no directory of a process that runs, or of another user, is deleted.

import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { errorCodeOf } from '../contracts/index.ts';

/** Another container may share the directory. Its processes are not seen from here, and a `tap` lasts long. */
const leftMs = 86_400_000;
const pattern = /^sluice-(?:cluster|tap)-(\d+)-/;

/** Makes a directory of this process; its name shows what it is for. */
export function makeScratch(what: 'cluster' | 'tap'): string {
  const parent = tmpdir();
  for (const name of readdirSync(parent)) {
    const pid = Number(pattern.exec(name)?.[1] ?? 0);
    const dir = join(parent, name);
    if (pid > 0 && !isAlive(pid) && isLeft(dir)) rmSync(dir, { recursive: true, force: true });
  }
  return mkdtempSync(join(parent, `sluice-${what}-${process.pid}-`));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCodeOf(error) !== 'ESRCH';
  }
}

function isLeft(dir: string): boolean {
  const found = lstatSync(dir, { throwIfNoEntry: false });
  const isOwn = found?.isDirectory() === true && found.uid === userInfo().uid;
  return isOwn && Date.now() - found.mtimeMs > leftMs;
}
