// Deletes the events that are retained for a removed sink, at an operator's request. Invariant: a sink that a running
// process has is never removed, and its dead letters are kept.

import { backlog, ExportError } from '../contracts/index.ts';
import type { Store } from '../hold/index.ts';

/** The deleted events. */
export interface GivenUp {
  /** Events that were kept for it, those set aside included. */
  readonly events: number;
}

/**
 * Deletes a sink from the state, within the caller's transaction. `running`: the sinks of the running config. Throws
 * `config_invalid` if a running process has the sink, or the state does not.
 */
export function removeSink(store: Store, name: string, running: readonly string[]): GivenUp {
  const { knownSinks } = store;
  const known = knownSinks.all().get(name);
  const isKnown = known !== undefined || store.positions().has(name);
  if (running.includes(name)) throw refused(name);
  if (!isKnown) {
    throw new ExportError('config_invalid', `the state knows no sink ${name}`, {
      next: 'sluice sinks lists the sinks that it knows. Nothing was changed.',
    });
  }
  const pending = known?.keeps === true ? backlog(store.gauge(), knownSinks.neededFrom(known)) : 0;
  knownSinks.forget(name);
  return { events: pending + store.aside.forget(name) };
}

function refused(name: string): ExportError {
  return new ExportError('config_invalid', `a running process has the sink ${name}`, {
    next: 'Remove it from the config first: restart without it, or reload with --allow-removal. Nothing was changed.',
  });
}
