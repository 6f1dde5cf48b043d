// The epochs of the numbers that a state database gives to events (contracts/numbering.ts), kept in
// its table `meta`. What must stay true: no number is given before the epoch that it belongs to is
// durable, and no two starts share one.

import type { Offset } from '../contracts/event.ts';
import type { Epoch } from '../contracts/numbering.ts';

/** So many are told apart; of older ones two become one, when every sink has long passed them. */
const epochsMax = 1_000;

/** Reads what `meta` holds; a database of before there were epochs has one without end. */
export function epochsFrom(text: string | null): readonly Epoch[] {
  if (text === null) return [{ id: 0, until: null }];
  try {
    return JSON.parse(text) as readonly Epoch[];
  } catch {
    return []; // then no number of before is believed, and what was delivered is told by its uid
  }
}

/** The last epoch ends at `end`, another begins. One that gave no number may stay unknown. */
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
