// `sluice schema`: the config's JSON Schema on stdout, for editors.

import { configSchema } from '../config/config.ts';
import type { ExitCode, Means } from './shared/command.ts';

/** Prints the schema. */
export async function schema({ out }: Means): Promise<ExitCode> {
  out(JSON.stringify(configSchema(), null, 2));
  return 0;
}
