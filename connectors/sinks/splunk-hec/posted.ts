// The result of a posted batch. Invariant: an event counts as delivered only if its part is
// indexed; the other events of that part are sent again, and no more.

import type { Batch, Delivery, Uid } from '../../../src/contracts/index.ts';
import type { Range } from '../../shared/halves.ts';
import type { Acknowledged } from './acks.ts';

/** The result of a batch's posts, and the parts to wait for. */
export interface Posted {
  readonly answer: Delivery;
  readonly parts: readonly PostedPart[];
}

/** A part of a batch that was accepted. */
export interface PostedPart {
  readonly end: Promise<Acknowledged>;
  /** Empty if it is the whole batch. */
  readonly uids: readonly Uid[];
}

/** The result of a batch, once it is known of each accepted part whether it is indexed. */
export async function settled({ answer, parts }: Posted): Promise<Delivery> {
  const ends = await Promise.all(parts.map(({ end }) => end));
  const cause = ends.find((end) => end !== null);
  if (cause === undefined) return answer;
  const again = parts.flatMap(({ uids }, i) => (ends[i] === null ? [] : uids));
  if (answer.outcome === 'partly') return { ...answer, again: [...answer.again, ...again] };
  if (answer.outcome !== 'delivered' || again.length === 0) return { outcome: 'retry', cause };
  return { outcome: 'partly', refused: [], again };
}

/** The events of a part; empty if it is the whole batch. */
export function uidsOf({ events }: Batch, { from, to }: Range): readonly Uid[] {
  return to - from === events.length ? [] : events.slice(from, to).map(({ uid }) => uid);
}
