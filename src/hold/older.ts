// Whether a state database that is sound is older than what was delivered from it: put back from a
// copy, or its log was cut, emptied or removed. What lies beside it says so: how far the sinks had
// come, and the second copy of checkpoints. Sinks that can look find out by themselves; here it is
// found before anything is read, and for those that cannot.

import { type Numbering, reachOf } from '../contracts/numbering.ts';
import { hasState } from './database.ts';
import { readDelivered } from './delivered.ts';
import { nextEpoch } from './epochs.ts';
import { takeLock } from './lock.ts';
import { readReached } from './reached.ts';
import type { RepairSettings, StreamReset } from './repair.ts';
import { withReserve } from './reserve.ts';
import { Store } from './store.ts';

/** What was found. */
export interface Older {
  /** What says that it is older. */
  readonly sign: string;
  readonly resets: readonly StreamReset[];
}

/**
 * Looks whether the state is older, and tells the sinks so for each stream that has been read; null
 * where it is not, or there is none. Nothing goes back: checkpoints, positions and what is held are
 * of one moment.
 */
export function findOlder(settings: RepairSettings): Older | null {
  const { dir, sync, tell: report } = settings;
  if (!hasState(dir)) return null;
  const lock = takeLock(dir);
  try {
    return withReserve(dir, () => {
      const store = new Store({ dir, sync, keepMs: 0 });
      try {
        const sign = signOf(dir, store);
        return sign === null ? null : { sign, resets: reportStreams(store, report) };
      } finally {
        store.close();
      }
    });
  } finally {
    lock.release();
  }
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

/** What they are told is held under numbers that no one has used. */
function reportStreams(store: Store, report: RepairSettings['tell']): readonly StreamReset[] {
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
