// Stepping back: from a place where the list was read some time before to its end, through what is
// known. Finds records that came late, and the list's end where the cursor for it has died.

import type { Failure } from '../../contracts/answer.ts';
import { knowsEnd } from './checkpoint.ts';
import { type ListPosition, namesAddress, wholeSecond } from './page.ts';
import type { Poll } from './poll.ts';
import { leadsNowhere } from './recover.ts';
import { resumeAfter } from './stage.ts';

/** Places tried when the one wanted is refused. */
const stepsBackMax = 5;

/**
 * Reads from the last place on the trail whose records are all older than `horizon` (epoch
 * milliseconds). False: there is none, or upstream takes none of those tried.
 */
export async function readBack(poll: Poll, horizon: number): Promise<boolean | Failure> {
  const { stream, spool } = poll.reader.deps;
  const { window } = poll.first;
  if (window === undefined && poll.first.by !== 'cursor') return false;
  const trail = window === undefined ? await spool.trail(stream.name) : [];
  // It may be left from a paging that was changed.
  const isOurs = (cursor: string) => !namesAddress(stream.pagination) || cursor.startsWith('/');
  const past = trail.filter(({ at, cursor }) => at <= horizon && isOurs(cursor)).reverse();
  const starts: ListPosition[] = past
    .sort((a, b) => b.at - a.at)
    .map(({ cursor }) => ({ by: 'cursor', cursor }));
  // A time is a place of its own there.
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
      // It may die with something between unread.
      anchored: false,
      trail: true,
      horizon: poll.checkpoint.memory.horizon,
      step: (stage) => {
        found ||= stage.taken.judged.fresh.length > 0;
        // A cursor that is bound to the list as it was leads to an end that is none any more.
        return stage.next === null && (found || !endIsKnown) ? resumeAfter(stage) : {};
      },
    });
    if (walked.outcome === 'ok') return walked.paused === null;
    if (!leadsNowhere(walked)) return walked;
  }
  return false;
}

/** Looks for records that came late since the last time, at most by `lookback`. */
export async function rewind(poll: Poll): Promise<Failure | null> {
  const { lookbackMs, rewindEveryMs } = poll.settings;
  const { triedBackAt } = poll.memory;
  if (triedBackAt !== null && poll.begunAt - triedBackAt < rewindEveryMs) return null;
  const lookedAt = Math.min(poll.checkpoint.looked.rewoundAt, poll.begunAt);
  const isThrough = await readBack(poll, lookedAt - lookbackMs);
  if (typeof isThrough === 'object') return isThrough;
  // Where upstream takes no older cursor, it is not asked at each poll; a round finds them.
  poll.memory.triedBackAt = isThrough ? null : poll.begunAt;
  if (isThrough) await poll.commit({ looked: { rewoundAt: poll.begunAt } });
  return null;
}
