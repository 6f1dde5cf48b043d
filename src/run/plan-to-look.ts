// The plan of a config for read-only commands: no server is contacted, and nothing stays open.

import type { Config } from '../config/index.ts';
import { asExportError, type Log } from '../contracts/index.ts';
import { planFrom, type WholePlan } from './plan.ts';
import { openTools } from './tools.ts';

const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => silent,
};

/** The streams, sinks and routes of a config. */
export async function planToLook(config: Config): Promise<WholePlan> {
  await using tools = openTools(silent);
  try {
    return planFrom(config, tools);
  } catch (error) {
    throw asExportError(error, 'making the streams of the config');
  }
}
