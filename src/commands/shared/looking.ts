// What commands need that only look: the config, also where its secrets are not at hand, and what
// it makes, with nothing opened. An operator's shell seldom has the secrets of the service, and
// nobody needs them to say how streams stand or what an event looks like. What must stay true: a
// config that is wrong in any other way is told as ever, and no stand-in is ever sent to an
// upstream or a sink.

import { readFileSync } from 'node:fs';
import { type Config, ConfigError, readConfig, type Surroundings } from '../../config/config.ts';
import { planToLook } from '../../run/plan-to-look.ts';
import type { Means } from './command.ts';

/** A config that is only looked at. */
export interface ConfigToLook {
  readonly config: Config;
  /** References that could not be read here, as they are written; others stand in for them. */
  readonly unread: readonly string[];
}

/** Reads a config; a secret that cannot be read is no flaw. Throws a ConfigError else. */
export function readConfigToLook(file: string, env: Means['env']): ConfigToLook {
  try {
    return { config: readConfig(file, { env }), unread: [] };
  } catch (error) {
    const config = error instanceof ConfigError ? readWithStandIns(file, env) : null;
    if (config === null) throw error;
    return config;
  }
}

function readWithStandIns(file: string, env: Means['env']): ConfigToLook | null {
  try {
    const bytes = readFileSync(file);
    const { around, unread } = withStandIns(bytes.toString('utf8'), env);
    const readOther = around.readFile;
    const readAny = (path: string) => (path === file ? bytes : readOther(path));
    return { config: readConfig(file, { ...around, readFile: readAny }), unread };
  } catch {
    // It is not for its secrets that it cannot be read: what was said of it first holds.
    return null;
  }
}

/** Passes for a secret and for an address, and leads nowhere (RFC 6761, section 6.4). */
const addressLike = 'https://not-set-here.invalid';

/**
 * Surroundings in which each reference of a config's text can be read; `unread` fills as stand-ins
 * are used. Words of a stand-in are hidden in messages, as a secret's would be.
 */
export function withStandIns(
  text: string,
  env: Means['env'],
  standIn = addressLike,
): { readonly around: Required<Surroundings>; readonly unread: readonly string[] } {
  const unset = new Set(
    [...text.matchAll(/\$\{env:([A-Za-z_]\w*)\}/g)].flatMap(([, name = '']) =>
      env[name] === undefined || env[name] === '' ? [name] : [],
    ),
  );
  const withoutComments = text.replace(/(^|\s)#.*$/gm, '');
  const unread = Array.from(unset, (name) => `\${env:${name}}`).filter((reference) =>
    withoutComments.includes(reference),
  );
  const around = {
    env: { ...env, ...Object.fromEntries(Array.from(unset, (name) => [name, standIn])) },
    readFile: (path: string) => {
      try {
        return readFileSync(path);
      } catch {
        unread.push(`\${file:${path}}`);
        return Buffer.from(standIn);
      }
    },
  };
  return { around, unread };
}

/** The names of a config's streams; nothing is asked of upstream. */
export async function streamNames(config: Config): Promise<readonly string[]> {
  const { sources } = await planToLook(config);
  return sources.flatMap(({ streams }) => streams.map(({ name }) => name));
}
