// What a sink promises with a config: less, for some, where several processes share the state.

import type { Config } from '../../config/index.ts';
import type { SharedPromise, SinkDefinition, SinkSettings } from '../../contracts/config.ts';

/** The promise of a sink of this config, and what its operator should know about it. */
export function promiseOf(
  { state: { kafka } }: { readonly state: Pick<Config['state'], 'kafka'> },
  definition: SinkDefinition,
  settings: SinkSettings,
): SharedPromise {
  const shared = kafka === null ? undefined : definition.shared?.(settings);
  return shared ?? { assurance: definition.assurance(settings), advice: [] };
}
