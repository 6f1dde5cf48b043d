// The config of the running process, for commands that inspect it. Invariant: a running process is found and shown,
// whatever its config file contains now and wherever its state is; a warning reports any difference from the file.

import { basename, dirname } from 'node:path';
import { type Config, ConfigError, parseConfig, stateDirOf } from '../../config/index.ts';
import { holderOf } from '../../hold/index.ts';
import {
  memberIn,
  type ReloadRefusal,
  type RunningConfig,
  runningIn,
  runningWith,
} from '../../run/index.ts';
import { cleanText } from '../../tools/index.ts';
import type { CommandDeps } from './command.ts';
import { type ConfigToLook, readConfigToLook } from './looking.ts';

/** A config to inspect, with facts from its process. */
export interface ConfigAtWork extends ConfigToLook {
  /** Why the process does not run with the file's content; null: it does, or nothing runs. */
  readonly refused: ReloadRefusal | null;
}

/**
 * Reads a config as the running process has it: from the directory of its state, and in the version that was read last
 * if the file has become invalid since, with a warning on `err`. Throws a ConfigError if the file is invalid and
 * nothing runs with it.
 */
export function readConfigAtWork(file: string, { env, err }: CommandDeps): ConfigAtWork {
  let looked: ConfigToLook;
  try {
    looked = readConfigToLook(file, env);
  } catch (error) {
    const { dir, places } = stateDirOf(undefined, file, { env });
    const running = error instanceof ConfigError ? runningWith(file, [dir, ...places]) : null;
    const last = running && configOf(stateOf(running), file, env);
    if (running === null || last === null || !(error instanceof ConfigError)) throw error;
    const flaws = error.message.split('\n');
    const more = flaws.length > 1 ? ` (and ${flaws.length - 1} more)` : '';
    err(cleanText(`the config is invalid: ${flaws[0]}${more}`, lineLengthMax));
    err(cleanText(`this is ${holderOf(running.dir)}, with the config as it was`, lineLengthMax));
    return { ...last, refused: running.refused };
  }
  const { config, running } = whereItRuns(looked.config);
  return { ...looked, config, refused: running?.refused ?? null };
}

/**
 * A config with the state directory of the process that runs with it, where one does. The part of
 * one shard is never looked for in the directory of another.
 */
export function whereItRuns(config: Config): {
  readonly config: Config;
  readonly running: RunningConfig | null;
} {
  const { state } = config;
  const running = runningOf(config);
  if (running === null) return { config, running };
  return { config: { ...config, state: { ...state, dir: running.dir } }, running };
}

function runningOf(config: Config): RunningConfig | null {
  const { file, state } = config;
  if (holderOf(state.dir) !== null) return runningIn(state.dir);
  const { shard, shards = 1 } = state.kafka ?? {};
  if (shard !== undefined) return runningWith(file, state.places, basename(state.dir));
  // The state is here, with or without shards.
  if (state.kafka !== null && memberIn(state.dir) !== null) return null;
  const running = runningWith(file, state.places);
  return running === null || shards === 1 ? running : stateOf(running);
}

/** The directory of the whole state, if the process works on one of its shards. */
function stateOf(running: RunningConfig): RunningConfig {
  const { dir } = running;
  return /^shard-\d+$/.test(basename(dir)) ? { ...running, dir: dirname(dir) } : running;
}

const lineLengthMax = 600;

/** The running config, parsed again: it was valid, so only secrets can be missing here. */
function configOf(
  running: RunningConfig,
  file: string,
  env: CommandDeps['env'],
): ConfigToLook | null {
  const text = JSON.stringify(running.config);
  try {
    const config = parseConfig(text, file, { env, placeholders: 'unset' });
    const state = { ...config.state, dir: running.dir };
    return { config: { ...config, state }, unread: config.unset };
  } catch {
    return null;
  }
}
