// What is new at the end of a list: asks the last cursor that worked again, and follows on. Where
// no such place is known, or upstream no longer takes it, the end is found anew: from a place where
// the list was read some time before, or by a round.

import type { Failure } from '../../contracts/answer.ts';
import { knowsEnd, roundRequested } from './checkpoint.ts';
import { nonePassed } from './end-watch.ts';
import { WalkGrowth } from './growth.ts';
import type { Identified } from './identity.ts';
import { isFirst as isFirstPlace, nameOfPlace, samePlace } from './page.ts';
import type { Poll } from './poll.ts';
import { readBack } from './read-back.ts';
import { begin, readRound } from './read-round.ts';
import {
  checkHeeded,
  fromNowFindings,
  ignoredCursor,
  isDead,
  isIgnoredPosition,
  isRefused,
  resetFinding,
} from './recover.ts';
import { keyCount, keysWithout, resumeAfter, type WalkSeen } from './stage.ts';
import type { Walk } from './walk.ts';

/** Reads the list's end. */
export async function readEnd(poll: Poll): Promise<Failure | null> {
  const { end, whole, memory } = poll.checkpoint;
  const { resume, overlap, atEnd, again, arrivedAt } = end;
  if (!knowsEnd(poll.checkpoint) || resume === null) {
    // Counting anew is what a round is for, and one that is under way has come further already.
    const canStepBack = whole.swept && whole.round === null && !end.countAnew;
    const back = canStepBack && (await readBack(poll, Number.POSITIVE_INFINITY));
    if (typeof back === 'object') return back;
    if (!back) return await readRound(poll, { hurried: true });
    await poll.commit({ wanted: { standingBefore: null } });
    return null;
  }
  const isFirst = samePlace(resume, poll.first);
  // Behind the last record nothing that is known is met; in an empty list, nothing is known.
  const growth = new WalkGrowth(!isFirst && again === 0 && memory.remembered.length > 0);
  const anew = isFirst ? begin(poll) : null;
  // Some of the window may have been read.
  const isAgain = startsWindow(poll) && !atEnd;
  const walk: Walk = {
    from: { resume, overlap },
    isPoll: !isFirst,
    ...(isFirst ? { tally: poll.memory.tally, passed: nonePassed } : {}),
    // Counting from the list's start is exact wherever new records turn up.
    reading: isFirst || isAgain ? 'known' : 'resume',
    anchored: true,
    trail: true,
    ...(isFirst || isAgain
      ? {}
      : { check: (identified, seen) => checkEnd(poll, identified, seen) }),
    step: (stage) => {
      growth.note(stage);
      // What was the only page may have been pushed on: until the end nothing behind is unread.
      if (isFirst && stage.next !== null) return {};
      // Where the walk before was cut short, what comes now was there already; and what is known
      // from elsewhere shows that this is another place.
      const proven = !isFirst && atEnd && stage.next === null && growth.isBehind(again);
      if (proven && arrivedAt !== null) growth.confirm();
      return {
        end: {
          ...resumeAfter(stage).end,
          // Once can be by mistake of a server that serves another place.
          ...(proven ? { provenAt: arrivedAt, arrivedAt: stage.taken.at } : {}),
        },
        // Rows have come in before those that were read.
        ...(stage.pager.inserted ? { looked: { sweptAt: roundRequested } } : {}),
      };
    },
  };
  const walked = await poll.follow(walk, growth);
  if (walked.outcome !== 'ok') {
    // A window that is refused leads nowhere else: it is told, and asked for again.
    const isPlace =
      !isFirst && isRefused(walked) && (!startsWindow(poll) || isIgnoredPosition(walked));
    return isPlace ? await recover(poll, walked) : walked;
  }
  const { next, paused } = walked;
  if (anew === null || next === null || paused === null) return null;
  // A gap that is too long for one poll: a round goes on behind it.
  await poll.commit({ end: { resume: null }, whole: { round: { ...anew, next, known: true } } });
  return null;
}

/** The list goes on at a window's first page. */
function startsWindow({ checkpoint: { end } }: Poll): boolean {
  return end.resume?.window !== undefined && isFirstPlace(end.resume);
}

/** Finds out what a refusal means, and where the list goes on if its cursor is dead. */
async function recover(poll: Poll, refusal: Failure): Promise<Failure | null> {
  const { reader, first, signal, settings } = poll;
  const { growth, end } = poll.checkpoint;
  const dead = await isDead(reader, refusal, { resume: end.resume ?? first, first, signal });
  if (dead !== true) return dead || null;
  const { log, stream } = reader.deps;
  // The end is not where such a list grows.
  const lost = { end: { resume: null } };
  if (end.resume?.window !== undefined) {
    await poll.commit(lost);
    const back = await readBack(poll, end.resume.window.from);
    return typeof back === 'object' ? back : null;
  }
  if (growth.order === 'newest_first') {
    await poll.commit(lost);
    return null;
  }
  const what = nameOfPlace(stream.pagination);
  const { cause } = refusal;
  log.warn('cursor_refused', `upstream no longer accepts the ${what}`, { error: cause.message });
  if (settings.onCursorInvalid === 'halt') return refusal;
  if (settings.onCursorInvalid === 'from_now') {
    const { now, checkpoint } = poll;
    const findings = fromNowFindings(stream.name, cause, {
      from: checkpoint.memory.watermark,
      to: now,
    });
    await poll.commit({ ...lost, ...poll.fromNowOn(now) }, findings);
  } else {
    await poll.commit(lost, [resetFinding(stream.name, what, cause)]);
  }
  return await readEnd(poll);
}

/**
 * Where another place is served than was asked for, records without ids would look new. Then most
 * of those that are not expected are known nevertheless.
 */
function checkEnd(
  { checkpoint, reader }: Poll,
  identified: Identified,
  { isFirst, left, overlap }: WalkSeen,
): Failure | null {
  const ignored = checkHeeded(reader, identified, isFirst);
  if (ignored !== null || !checkpoint.memory.nameless || overlap > 0) return ignored;
  const met = keyCount(left ?? '') - keyCount(keysWithout(left ?? '', identified) ?? '');
  const known = reader.memory.countKnown(identified) - met;
  return known * 2 > identified.count - met ? ignoredCursor(reader.deps.stream) : null;
}
