// The facts of a stored state, whether it is read in its directory or in a copy from Kafka. Invariant:
// both have the same members, so that commands print the same of them.

import { readState, type State } from '../watch/index.ts';
import type { Stored } from './adapter.ts';

/** Reads the facts. Throws `state_damaged`. */
export function storedState({ config, isCopy }: Stored): State {
  const state = readState(config.state.dir);
  if (!isCopy) return state;
  // Pages are not copied, so which of them are still stored is not known.
  const positions = [...state.sinks.values()].flatMap(({ position }) => position ?? []);
  return { ...state, spool: { ...state.spool, oldest: Math.min(0, ...positions) } };
}
