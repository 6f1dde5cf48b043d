// Finds the state directory. A relative `state.dir` is relative to the config file, so every command finds it from any
// working directory. Default: systemd's state directory of the service, else beside the config. Before 0.2.0 both were
// relative to the working directory: a state that exists only there is used there, and so is that directory if the new
// one cannot be written (a read-only config mount). Invariant: an upgrade never starts with an empty state beside a
// full one.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { errorCodeOf } from '../contracts/index.ts';
import { databaseName } from '../hold/index.ts';
import type { Surroundings } from './references.ts';

/** The state directory. */
export interface StateDir {
  /** Absolute. */
  readonly dir: string;
  /** The possible directories, as far as known here; the regular one first. */
  readonly places: readonly string[];
  /** Why it is not the regular one, and the next step; null: it is. */
  readonly warning: string | null;
}

/** Finds the directory; `given` is `state.dir` of the config in `file`. */
export function stateDirOf(
  given: string | undefined,
  file: string,
  { env }: Surroundings,
): StateDir {
  // A service may have several, separated by colons (systemd.exec(5)).
  const [ofService = ''] = (env.STATE_DIRECTORY ?? '').split(':');
  const dir =
    given === undefined && ofService !== ''
      ? join(resolve(ofService), 'state')
      : resolve(dirname(file), given ?? 'state');
  const old = resolve(given ?? 'state');
  const places = [...new Set([dir, old])];
  if (dir === old || isUsed(dir) || !(isUsed(old) || (!isWritable(dir) && isWritable(old)))) {
    return { dir, places, warning: null };
  }
  const why = isUsed(old) ? 'only there is one' : 'which cannot be written';
  const said = `the state in the working directory is used, ${old}, and not ${dir}: ${why}`;
  const next = `set state.dir to ${old}, or stop sluice and move the directory`;
  return { dir: old, places, warning: `${said}; ${next}` };
}

/** True if a sluice process has stored a state. */
function isUsed(dir: string): boolean {
  return [databaseName, 'lock.db'].some((name) => existsSync(join(dir, name)));
}

/** True if a directory can be created or written. */
function isWritable(dir: string): boolean {
  try {
    accessSync(dir, constants.W_OK);
    return true;
  } catch (error) {
    const isMissing = errorCodeOf(error) === 'ENOENT';
    return isMissing && dirname(dir) !== dir && isWritable(dirname(dir));
  }
}
