// Detects a sound state database that is older than the deliveries made from it: restored from a
// copy, or its WAL was cut, emptied or removed. Two files beside it show this: the sinks'
// positions, and the second copy of checkpoints. A sink that can read its destination detects it by
// itself; this check runs before anything is read, and covers the other sinks.

import { type Numbering, reachOf } from '../contracts/index.ts';
import { hasState } from './database.ts';
import { readDelivered } from './delivered.ts';
import { nextEpoch } from './epochs.ts';
import { takeLock } from './lock.ts';
import { readReached } from './reached.ts';
import type { RepairSettings, StreamReset } from './repair.ts';
import { withReserve } from './reserve.ts';
import { Store } from './store.ts';

/** The finding. */
export interface Older {
  /** The evidence that the state is older. */
  readonly sign: string;
  readonly resets: readonly StreamReset[];
}

/**
 * Checks whether the state is older, and reports it to the sinks for each stream that has been
 * read; null if it is not, or there is none. Nothing is reset: checkpoints, positions and pages are
 * of one moment.
 */
export function findOlder(settings: RepairSettings): Older | null {
  const { dir, sync, report } = settings;
  // A directory that is new on this machine has no evidence.
  if (readReached(dir).size === 0 && readDelivered(dir) === null) return null;
  if (!hasState(dir)) return null;
  using _lock = takeLock(dir);
  return withReserve(dir, () => {
    using store = new Store({ dir, sync, keepMs: 0 });
    const sign = signOf(dir, store);
    return sign === null ? null : { sign, resets: reportStreams(store, report) };
  });
}

function signOf(dir: string, store: Store): string | null {
  const { spool, epochs } = store.numbering;
  const ended: Numbering = { spool, epochs: nextEpoch(epochs, store.end, Date.now()) };
  for (const [sink, place] of readReached(dir)) {
    if (reachOf(place, ended).ahead) return `${sink} had come to event ${place.next}`;
  }
  const copy = readDelivered(dir);
  if (copy === null || copy.spool !== spool || copy.end <= store.end) return null;
  return `events up to ${copy.end} had been held`;
}

/** The report's pages get offsets that no process has used. */
function reportStreams(store: Store, report: RepairSettings['report']): readonly StreamReset[] {
  const now = Date.now();
  store.beginEpoch(now);
  return store.transaction(() =>
    store.streams.checkpoints().map(({ stream, savedAt }) => {
      const reset: StreamReset = { stream, deliveredAt: savedAt, reason: 'state_older' };
      const page = report(reset);
      if (page !== null) store.hold(page, now);
      return reset;
    }),
  );
}
