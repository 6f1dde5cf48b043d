// Which directory the state is in. As given it is relative to the config file, so that every
// command finds it from wherever it is typed; left out, it is where systemd keeps a service's
// state, else beside the config. Before 0.2.0 both were relative to the working directory: a state
// that lies there alone is used where it is, and so is that place where the new one cannot be
// written (a config that is mounted read-only). What must stay true: who upgrades never starts with
// an empty state beside a full one.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { errorCodeOf } from '../contracts/errors.ts';
import { databaseName } from '../hold/schema.ts';
import type { Surroundings } from './references.ts';

/** Where the state is. */
export interface StateDir {
  /** Absolute. */
  readonly dir: string;
  /** The directories that it may be in, as far as they are known here; the first one by rule. */
  readonly places: readonly string[];
  /** Why it is not where it ought to be, and what to do; null: it is. */
  readonly warning: string | null;
}

/** Finds it; `given` is `state.dir` of the config in `file`. */
export function stateDirOf(
  given: string | undefined,
  file: string,
  { env }: Surroundings,
): StateDir {
  // A service may have several, with colons between them (systemd.exec(5)).
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

/** True where some sluice has kept a state. */
function isUsed(dir: string): boolean {
  return [databaseName, 'lock.db'].some((name) => existsSync(join(dir, name)));
}

/** True where a directory can be made or written. */
function isWritable(dir: string): boolean {
  try {
    accessSync(dir, constants.W_OK);
    return true;
  } catch (error) {
    const isMissing = errorCodeOf(error) === 'ENOENT';
    return isMissing && dirname(dir) !== dir && isWritable(dirname(dir));
  }
}
