// Reads new records at the end of a list: requests the last cursor that worked, and follows. If no such position is
// known, or upstream rejects it, the end is searched for: from an earlier position of the trail, or by a full scan.

import type { Failure } from '../contracts/index.ts';
import { knowsEnd, type ListCheckpoint, scanRequested } from './checkpoint.ts';
import { begin, runFullScan, tallyOf } from './full-scan.ts';
import { type Identified, keysOf } from './identity.ts';
import { isFirst as isFirstPosition, nameOfPosition, samePosition } from './page.ts';
import { nonePassed } from './paging-doubt.ts';
import { type Poll, WalkGrowth } from './poll.ts';
import { readBack } from './read-back.ts';
import {
  checkHeeded,
  cursorDead,
  fromNowFindings,
  ignoredCursor,
  isDead,
  isIgnoredPosition,
  isRefused,
  resetFinding,
} from './recover.ts';
import { keyBytes } from './repeats.ts';
import { keyCount, keysWithout, resumeAfter, type WalkSeen } from './stage.ts';
import type { Walk } from './walk.ts';

/** Reads the end of the list. */
export async function readEnd(poll: Poll): Promise<Failure | null> {
  const { end, whole, memory } = poll.checkpoint;
  const { resume, overlap, atEnd, again, arrivedAt } = end;
  if (!knowsEnd(poll.checkpoint) || resume === null) {
    // Counting again needs a full scan, and a scan under way is already further.
    const canStepBack = whole.swept && whole.round === null && !end.countAnew;
    const back = canStepBack && (await readBack(poll, Number.POSITIVE_INFINITY));
    if (typeof back === 'object') return back;
    if (!back) return await runFullScan(poll, { hurried: true });
    await poll.commit({ wanted: { standingBefore: null } });
    return null;
  }
  const isFirst = samePosition(resume, poll.first);
  // After the last record no known record follows; in an empty list, none is known.
  const growth = new WalkGrowth(!isFirst && again === 0 && memory.remembered.length > 0);
  const scan = isFirst ? begin(poll) : null;
  // Part of the window may have been read.
  const isAgain = startsWindow(poll) && !atEnd;
  const walk: Walk = {
    from: { resume, overlap },
    isPoll: !isFirst,
    ...(isFirst ? { tally: tallyOf(poll), passed: nonePassed } : {}),
    // Counting from the start of the list is exact wherever new records arrive.
    reading: isFirst || isAgain ? 'known' : 'resume',
    anchored: true,
    trail: true,
    ...(isFirst || isAgain
      ? {}
      : { check: (identified, seen) => checkEnd(poll, identified, seen) }),
    step: (stage) => {
      growth.note(stage);
      // The only page may have moved down: until the end, nothing after it is unread.
      if (isFirst && stage.next !== null) return {};
      // If the previous walk was cut short, these records were there before. Records known from elsewhere show that
      // this is another position.
      const proven = !isFirst && atEnd && stage.next === null && growth.isBehind(again);
      if (proven && arrivedAt !== null) growth.confirm();
      return {
        end: {
          ...resumeAfter(stage).end,
          // A single arrival may come from a server that serves another position by mistake.
          ...(proven ? { provenAt: arrivedAt, arrivedAt: stage.taken.at } : {}),
        },
        // Rows were inserted before those that were read.
        ...(stage.pager.inserted ? { looked: { sweptAt: scanRequested } } : {}),
      };
    },
  };
  const walked = await poll.follow(walk, growth);
  if (walked.outcome !== 'ok') {
    // A rejected window has no other position to try: the failure is reported and the window requested again.
    const isPosition =
      !isFirst && isRefused(walked) && (!startsWindow(poll) || isIgnoredPosition(walked));
    return isPosition ? await recover(poll, walked) : walked;
  }
  const { next, paused } = walked;
  if (scan === null || next === null || paused === null) return null;
  // Too many empty pages for one poll: a full scan continues after them.
  await poll.commit({ end: { resume: null }, whole: { round: { ...scan, next, known: true } } });
  return null;
}

/** The list continues at the first page of a window. */
function startsWindow({ checkpoint: { end } }: Poll): boolean {
  return end.resume?.window !== undefined && isFirstPosition(end.resume);
}

/** Finds the meaning of a rejection or suspicion, and the next position if the cursor is dead. */
async function recover(poll: Poll, refusal: Failure): Promise<Failure | null> {
  const { reader, first, signal, settings } = poll;
  const { growth, end } = poll.checkpoint;
  const dead = await isDead(reader, refusal, { resume: end.resume ?? first, first, signal });
  if (dead !== true) return dead || null;
  const { log, stream } = reader.deps;
  const lost = { end: { resume: null } };
  if (end.resume?.window !== undefined) {
    await poll.commit(lost);
    const back = await readBack(poll, end.resume.window.from);
    return typeof back === 'object' ? back : null;
  }
  // A list that grows at its start has no new records at its end.
  if (growth.order === 'newest_first') {
    await poll.commit(lost);
    return null;
  }
  const what = nameOfPosition(stream.pagination);
  const { cause } = refusal;
  const isSuspicion = isIgnoredPosition(refusal);
  const message = isSuspicion
    ? `upstream seems to answer the ${what} with another position of the list`
    : `upstream no longer accepts the ${what}`;
  log.warn('cursor_refused', message, { error: cause.message });
  // A suspicion may be wrong: only a search that skips no record is safe.
  const reaction = isSuspicion ? 'rewalk' : settings.onCursorInvalid;
  if (reaction === 'halt') return { ...refusal, cause: cursorDead(stream.name, what, cause) };
  if (reaction === 'from_now') {
    const { now, checkpoint } = poll;
    const findings = fromNowFindings(stream.name, cause, {
      from: checkpoint.memory.watermark,
      to: now,
    });
    await poll.commit({ ...lost, ...poll.fromNowOn(now) }, findings);
  } else {
    await poll.commit(lost, [resetFinding(stream.name, message, cause)]);
  }
  return await readEnd(poll);
}

/**
 * If the server serves another position than the requested one, records without ids would look new. Then most of the
 * unexpected records are nevertheless known.
 */
function checkEnd(
  { checkpoint, reader }: Poll,
  identified: Identified,
  { isFirst, left, overlap }: WalkSeen,
): Failure | null {
  // If the page begins with its known rows, records equal to them may have arrived.
  const twins = isFirst && left !== null ? twinsAfter(checkpoint, identified, left) : null;
  const ignored = twins === null ? checkHeeded(reader, identified, isFirst) : null;
  if (ignored !== null || !checkpoint.memory.nameless || overlap > 0) return ignored;
  const seen = keyCount(left ?? '') - keyCount(keysWithout(left ?? '', identified) ?? '');
  const known = reader.memory.countKnown(identified) - seen - (twins ?? 0);
  return known * 2 > identified.count - seen ? ignoredCursor(reader.deps.stream) : null;
}

/**
 * How many records that equal one of the rows `left` follow them on a page. Null: the page does not begin with these
 * rows of its previous reading, or the first page of the list begins with them as well.
 */
function twinsAfter(
  { server: { firstPage } }: ListCheckpoint,
  identified: Identified,
  left: string,
): number | null {
  const rows = Buffer.from(left, 'base64');
  const count = rows.length / keyBytes;
  const head = Buffer.from(firstPage ?? '', 'base64').subarray(0, keyBytes);
  const isSame = keysOf(identified, 0, count).equals(rows);
  if (!isSame || head.equals(rows.subarray(0, keyBytes))) return null;
  const keyAt = (at: number) => keysOf(identified, at, at + 1).toString('latin1');
  const known = new Set(Array.from({ length: count }, (_, at) => keyAt(at)));
  let twins = 0;
  for (let at = count; at < identified.count; at += 1) if (known.has(keyAt(at))) twins += 1;
  return twins;
}
