// Reads new records at the start of a list: walks from the first page to known records. A walk that did not finish is
// first continued to that point. Its records are known but no sign of having reached older known records, so the new
// walk passes through them.

import type { Failure } from '../contracts/index.ts';
import type { CheckpointChange } from './checkpoint.ts';
import type { Resume } from './page.ts';
import { nonePassed } from './paging-doubt.ts';
import { type Poll, WalkGrowth } from './poll.ts';
import { gapBefore, leadsNowhere, noReach, reachWith } from './recover.ts';
import { resumeAfter, type Stage } from './stage.ts';
import type { Walk } from './walk.ts';

/** Reads the start of the list. */
export async function readStart(poll: Poll): Promise<Failure | null> {
  const { reader, begunAt, settings, memory } = poll;
  const { openWalk: before } = poll.checkpoint.start;
  const hasPaused = before !== null && memory.empties.before(before.next).count > 0;
  const failed = await goOnWithOpenWalk(poll);
  if (failed !== null || poll.more) return failed;
  if (hasPaused) {
    // The open walk was among empty pages and has now finished: the next poll reads the start.
    reader.memory.anchorAll();
    await poll.commit({ start: { openWalk: null } });
    return null;
  }
  const { name } = reader.deps.stream;
  const { growth: known, looked, start, end } = poll.checkpoint;
  const { watermark } = poll.checkpoint.memory;
  // Late records are further down: now and then the walk continues to where none is expected.
  const deep = known.order === 'newest_first' && poll.due('rewoundAt', settings.rewindEveryMs);
  const lookedUpTo = Math.min(watermark ?? looked.rewoundAt, looked.rewoundAt);
  const horizon = deep && watermark !== null ? lookedUpTo - settings.lookbackMs : null;
  const block = start.openWalk?.block ?? reader.nextBlock;
  let reach = noReach;
  let atEnd: CheckpointChange = { end: { countAnew: end.countAnew } };
  const growth = new WalkGrowth(false);
  const from = { resume: poll.first, overlap: null };
  const whole = topWalk(poll, { from, block, horizon }, (stage) => {
    growth.note(stage);
    reach = reachWith(reach, stage);
    const { next, onward, taken } = stage;
    // If empty pages never end, the end was followed beyond the first of them.
    const leadsOn = onward !== null && taken.page.records.length === 0;
    if (next === null && !(leadsOn && end.resume !== null)) atEnd = resumeAfter(stage);
  });
  const walked = await poll.follow({ ...whole, passed: nonePassed }, growth);
  if (walked.outcome !== 'ok') return walked;
  if (poll.more) return null;
  reader.memory.anchorAll();
  await poll.commit(
    { ...atEnd, start: { openWalk: null }, ...(deep ? { looked: { rewoundAt: begunAt } } : {}) },
    gapBefore(reach, name, watermark),
  );
  return null;
}

async function goOnWithOpenWalk(poll: Poll): Promise<Failure | null> {
  const { openWalk } = poll.checkpoint.start;
  if (openWalk === null) return null;
  const { next: resume, block } = openWalk;
  const from = { resume, overlap: null };
  const walked = await poll.follow(topWalk(poll, { from, block, horizon: null }));
  // If the open walk's cursor is dead, the new walk passes through its records and beyond.
  return walked.outcome === 'ok' || leadsNowhere(walked) ? null : walked;
}

/** Where a walk begins and ends. */
interface TopWalk {
  readonly from: Resume;
  /** The first block of identities that may belong to the walk. */
  readonly block: number;
  /** Epoch milliseconds; null: down to known records. */
  readonly horizon: number | null;
}

/** Ends on a page of anchored records that are older than `horizon`, if late records are searched for. */
function topWalk(
  poll: Poll,
  { from, block, horizon }: TopWalk,
  onStage?: (stage: Stage) => void,
): Walk {
  return {
    from,
    reading: 'known',
    anchored: false,
    trail: false,
    horizon: poll.forgottenUpTo,
    stopAt: ({ page, judged, span }) => {
      if (!judged.joined || page.records.length === 0) return false;
      return span === null || horizon === null || span.latest < horizon;
    },
    step: (stage) => {
      onStage?.(stage);
      const { position, next, taken, pager } = stage;
      const isKnown = taken.page.records.length > 0 && taken.judged.fresh.length === 0;
      if (next === null || isKnown) return {};
      return { start: { openWalk: { next: pager.resume(position, next).resume, block } } };
    },
  };
}
