// A stored state to read: the state directory, or a copy of what is committed in Kafka, in a directory that
// is deleted afterwards. Invariant: no process of the state is disturbed.

import { rmSync } from 'node:fs';
import type { StateLogSettings } from '../cluster/index.ts';
import type { Config } from '../config/index.ts';
import { systemClock } from '../tools/index.ts';
import { notHere, readState } from '../watch/index.ts';
import type { Stored } from './adapter.ts';
import { makeScratch } from './scratch.ts';

/** The state in the state directory of a config. */
export function storedHere(config: Config): Stored {
  const facts = () => readState(config.state.dir);
  return { config, missing: notHere(config), isCopy: false, facts };
}

/** Reads a copy of a state; `holder`: the process that has it, if any. Throws `sink_unreachable` or `sink_refused`. */
export async function withCopy<T>(
  config: Config,
  { kafka, holder }: { readonly kafka: StateLogSettings; readonly holder: string | null },
  read: (stored: Stored) => Promise<T> | T,
): Promise<T> {
  // Its client takes long to load.
  const { StateCopy } = await import('../cluster/kafka.ts');
  const dir = makeScratch('cluster');
  const copy = new StateCopy(kafka, dir, systemClock());
  try {
    const isThere = await copy.catchUp().finally(() => copy.close());
    const missing = isThere
      ? ''
      : `: there is no state ${kafka.prefix} in Kafka, so no process has run with it yet`;
    return await read({
      config: { ...config, state: { ...config.state, dir } },
      ...{ missing, isCopy: true, facts: () => readState(dir, { holder }) },
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
