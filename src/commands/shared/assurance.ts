// The delivery promise of a sink with a config. Some sinks promise less if several processes share the state.

import type { Config } from '../../config/index.ts';
import type { SharedPromise, SinkDefinition, SinkSettings } from '../../contracts/config.ts';

/** The promise of a sink of this config, with advice for its operator. */
export function promiseOf(
  { state: { kafka } }: { readonly state: Pick<Config['state'], 'kafka'> },
  definition: SinkDefinition,
  settings: SinkSettings,
): SharedPromise {
  const shared = kafka === null ? undefined : definition.shared?.(settings);
  return shared ?? { assurance: definition.assurance(settings), advice: [] };
}
