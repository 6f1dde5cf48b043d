// The events that report when the brake of a pair engages and releases. They are stored in the
// transaction of that change, so each is reported once, also across a crash.

import { createHash } from 'node:crypto';
import type { ConditionRecord, NewPage } from '../contracts/index.ts';
import type { PairState } from './pair-state.ts';

/** A brake that engages or releases. */
interface BrakeChange {
  readonly brake: NonNullable<PairState['brake']>;
  readonly isHeld: boolean;
  /** Number of waiting records. */
  readonly waiting: number;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** The event of the change. */
export function brakePage(
  { plan, phase }: PairState,
  { brake, isHeld, waiting, now }: BrakeChange,
): NewPage {
  const { successor, predecessor } = plan;
  const stream = plan.streams.new[0] ?? successor;
  const record: ConditionRecord = {
    condition: isHeld ? 'source.succession_held' : 'source.succession_released',
    ...{ source: successor, stream },
    observed_at: new Date(now).toISOString(),
    message: isHeld
      ? `too few records of ${successor} and ${predecessor} match: records without a match are stored and not delivered; set id, fields or ignore of sources.${successor}.succeeds`
      : `records of ${successor} and ${predecessor} are not held any more`,
    details: {
      ...{ predecessor, successor, phase, waiting },
      since: new Date(brake.since).toISOString(),
      ...(isHeld && { examples: brake.examples }),
    },
  };
  return {
    context: { source: successor, stream, kind: 'condition', fetchedAt: now },
    body: Buffer.from(JSON.stringify([record])),
    ...{ items: '', kept: null },
    uids: createHash('sha256')
      .update(JSON.stringify(['succession brake', successor, brake.since, isHeld]))
      .digest(),
  };
}
