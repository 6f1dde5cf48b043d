// The epochs of the offsets that a state database assigns (contracts/numbering.ts), stored in its
// table `meta`. Invariants: no offset is assigned before its epoch is durable; no two starts share
// an epoch.

import type { Epoch, Offset } from '../contracts/index.ts';

/**
 * Maximum number of epochs; beyond it the oldest two are merged, long after every sink has passed
 * them.
 */
const epochsMax = 1_000;

/** Parses the stored epochs; a database from before epochs has a single open one. */
export function epochsFrom(text: string | null): readonly Epoch[] {
  if (text === null) return [{ id: 0, until: null }];
  try {
    return JSON.parse(text) as readonly Epoch[];
  } catch {
    return []; // No earlier offset is trusted then; repeated events are recognised by their uid.
  }
}

/**
 * Closes the last epoch at `end` and opens another. An epoch that assigned no offset may be
 * dropped.
 */
export function nextEpoch(epochs: readonly Epoch[], end: Offset, now: number): readonly Epoch[] {
  const last = epochs.at(-1);
  const before = epochs.at(-2)?.until ?? 0;
  const kept = last !== undefined && last.until === null ? epochs.slice(0, -1) : epochs;
  const closed =
    kept === epochs || end <= before ? kept : [...kept, { id: last?.id ?? 0, until: end }];
  const known = closed.length < epochsMax ? closed : merged(closed);
  return [...known, { id: Math.max(now, (last?.id ?? 0) + 1), until: null }];
}

function merged([first, second, ...rest]: readonly Epoch[]): readonly Epoch[] {
  return [{ id: first?.id ?? 0, until: second?.until ?? 0 }, ...rest];
}
