// Stepping back: walks from an earlier position of the trail to the end of the list, through known records. Finds late
// records, and the end of the list if its cursor has expired.

import type { Failure } from '../contracts/index.ts';
import { knowsEnd } from './checkpoint.ts';
import { type ListPosition, namesAddress, wholeSecond } from './page.ts';
import type { Poll } from './poll.ts';
import { leadsNowhere } from './recover.ts';
import { resumeAfter } from './stage.ts';

/** Positions tried if the best one is rejected. */
const stepsBackMax = 5;

/**
 * Reads from the last position on the trail whose records are all older than `horizon` (epoch milliseconds). False:
 * there is none, or upstream rejects each one that was tried.
 */
export async function readBack(poll: Poll, horizon: number): Promise<boolean | Failure> {
  const { stream, spool } = poll.reader.deps;
  const { window } = poll.first;
  if (window === undefined && poll.first.by !== 'cursor') return false;
  const trail = window === undefined ? await spool.trail(stream.name) : [];
  // A cursor may be left from an earlier paging.
  const isOurs = (cursor: string) => !namesAddress(stream.pagination) || cursor.startsWith('/');
  const past = trail.filter(({ at, cursor }) => at <= horizon && isOurs(cursor)).reverse();
  const starts: ListPosition[] = past
    .sort((a, b) => b.at - a.at)
    .map(({ cursor }) => ({ by: 'cursor', cursor }));
  // With windows, a time is a position itself.
  if (window !== undefined && Number.isFinite(horizon)) {
    const from = Math.max(window.from, wholeSecond(horizon));
    starts.push({ ...poll.first, window: { from, to: null } });
  }
  const endIsKnown = knowsEnd(poll.checkpoint);
  for (const resume of starts.slice(0, stepsBackMax)) {
    let found = false;
    const walked = await poll.follow({
      from: { resume, overlap: null },
      reading: 'known',
      // The walk may end early with a gap unread.
      anchored: false,
      trail: true,
      horizon: poll.checkpoint.memory.horizon,
      step: (stage) => {
        found ||= stage.taken.judged.fresh.length > 0;
        // A cursor bound to an old snapshot of the list leads to an end that no longer is one.
        return stage.next === null && (found || !endIsKnown) ? resumeAfter(stage) : {};
      },
    });
    if (walked.outcome === 'ok') return walked.paused === null;
    if (!leadsNowhere(walked)) return walked;
  }
  return false;
}

/** Searches for records that arrived late since the last search, by at most `lookback`. */
export async function rewind(poll: Poll): Promise<Failure | null> {
  const { lookbackMs, rewindEveryMs } = poll.settings;
  const { triedBackAt } = poll.memory;
  if (triedBackAt !== null && poll.begunAt - triedBackAt < rewindEveryMs) return null;
  const lookedAt = Math.min(poll.checkpoint.looked.rewoundAt, poll.begunAt);
  const isThrough = await readBack(poll, lookedAt - lookbackMs);
  if (typeof isThrough === 'object') return isThrough;
  // If upstream rejects older cursors, they are not tried at each poll; a full scan finds the records.
  poll.memory.triedBackAt = isThrough ? null : poll.begunAt;
  if (isThrough) await poll.commit({ looked: { rewoundAt: poll.begunAt } });
  return null;
}
