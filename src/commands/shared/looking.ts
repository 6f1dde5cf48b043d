// The config and its plan for read-only commands, also if its secrets are not available, with nothing opened. An
// operator's shell seldom has the secrets of the service, and a status or a preview does not need them. Invariants: a
// config with any other fault is reported as always, and no placeholder is ever sent to an upstream or a sink.

import { type Config, ConfigError, readConfig } from '../../config/index.ts';
import { planToLook } from '../../run/index.ts';
import type { CommandDeps } from './command.ts';

/** A config that is only looked at. */
export interface ConfigToLook {
  readonly config: Config;
  /** References that could not be read here, as written; placeholders replace them. */
  readonly unread: readonly string[];
}

/** Reads a config; a secret that cannot be read is no flaw. Throws a ConfigError else. */
export function readConfigToLook(file: string, env: CommandDeps['env']): ConfigToLook {
  try {
    const config = readConfig(file, { env, placeholders: 'unset' });
    return { config, unread: config.unset };
  } catch (error) {
    // With another flaw the config has to be corrected, so its unset references are listed as well.
    if (error instanceof ConfigError) return { config: readConfig(file, { env }), unread: [] };
    throw error;
  }
}

/** The names of a config's streams; no upstream is contacted. */
export async function streamNames(config: Config): Promise<readonly string[]> {
  const { sources } = await planToLook(config);
  return sources.flatMap(({ streams }) => streams.map(({ name }) => name));
}
