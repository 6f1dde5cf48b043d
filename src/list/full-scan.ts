// A full scan: a walk through the whole list, including known records, that finds what neither end has shown. The first
// scan reads the history and finds the end of the list. Later scans find records that a server hides from a client that
// reads only the ends: a cursor may be bound to a snapshot, a list may grow at an unexpected position, and a record may
// arrive very late.
//
// A scan uses a tenth of the time and continues at the next poll, so new records never wait for it. It runs in one poll
// only if the end of the list is unknown without it. Its progress is committed.

import type { Failure } from '../contracts/index.ts';
import {
  type CheckpointChange,
  type FullScanState,
  joinedChange,
  knowsEnd,
  type ListCheckpoint,
  noHorizon,
  scanRequested,
} from './checkpoint.ts';
import { isPartialPage, samePosition } from './page.ts';
import { isPartRead, nonePassed } from './paging-doubt.ts';
import { type Poll, WalkGrowth } from './poll.ts';
import { checkHeeded, gapBefore, isRefused, leadsNowhere, noReach, reachWith } from './recover.ts';
import { IdlessTally, resumeAfter } from './stage.ts';

/** Share of the time that full scans may use. */
const timeShare = 0.1;
/** How long the end of a list counts as showing or hiding new records after it last did. */
const seenForMs = 24 * 3_600_000;
const dayMs = 24 * 3_600_000;

/**
 * How often the whole list is read, milliseconds. Once a day if a record has arrived through the end lately, because
 * nothing else is likely to be missed. Else each `reconcile_every`, and less often (at least once a day) if a scan
 * takes long.
 */
export function fullScanEveryMs(poll: Poll): number {
  const {
    checkpoint,
    settings,
    memory: { triedBackAt },
    now,
    first,
  } = poll;
  const { growth, end, whole, memory } = checkpoint;
  const { reconcileEveryMs } = settings;
  // Forgotten records without a time would look new.
  if (memory.horizon === noHorizon) return Number.POSITIVE_INFINITY;
  const daily = Math.max(dayMs, reconcileEveryMs);
  const proven =
    growth.order === 'oldest_first' && triedBackAt === null && isRecent(end.provenAt, now);
  // With windows of time, new records are in the newest windows.
  if (proven || first.window !== undefined) return daily;
  if (isBlind(checkpoint, now)) return reconcileEveryMs;
  return Math.min(daily, Math.max(reconcileEveryMs, whole.sweptInMs / timeShare));
}

/** The list grew at its end, and requests there did not show it: only a full scan reads it. */
export function isBlind({ end }: ListCheckpoint, now: number): boolean {
  return isRecent(end.blindAt, now);
}

function isRecent(at: number | null, now: number): boolean {
  return at !== null && now - at < seenForMs;
}

/** Continues the full scan, or starts one. `hurried`: in one poll; `restarts`: from the start of the list. */
export async function runFullScan(
  poll: Poll,
  { hurried, restarts = false }: { readonly hurried: boolean; readonly restarts?: boolean },
): Promise<Failure | null> {
  const { nameless } = poll.checkpoint.memory;
  const { round: scan } = poll.checkpoint.whole;
  const { tally, polledAt } = poll.memory;
  const sinceMs = poll.begunAt - (polledAt ?? Number.NEGATIVE_INFINITY);
  const sliceMs = Math.min(sinceMs, poll.settings.reconcileEveryMs) * timeShare;
  const until = hurried ? Number.POSITIVE_INFINITY : poll.now + sliceMs;
  // Records without ids are counted from the start of the scan; a restart forgets the counts.
  const canResume = scan !== null && (!nameless || samePosition(tally?.at ?? null, scan.next));
  const failure =
    scan === null || restarts || !canResume
      ? await walk(poll, begin(poll), until)
      : await resume(poll, scan, until);
  if (failure?.outcome !== 'blocked' || !knowsEnd(poll.checkpoint)) return failure;
  // Rows after it cannot be read, and new records are read without this scan.
  poll.reader.deps.log.warn(
    'full_scan_cut',
    'full scan ended at a row that upstream does not serve',
    {
      error: failure.cause.message,
    },
  );
  const sweptAt = poll.checkpoint.whole.round?.begunAt ?? poll.begunAt;
  await poll.commit({ whole: { round: null }, looked: { sweptAt } });
  return null;
}

/** A full scan from the start of the list, with no counts. */
export function begin(poll: Poll): FullScanState {
  poll.memory.tally = new IdlessTally();
  poll.memory.reached.pages = 0;
  const { watermark, horizon } = poll.checkpoint.memory;
  const { begunAt, first: next } = poll;
  const nothing = { ...noReach, ...nonePassed };
  return { next, overlap: null, begunAt, spentMs: 0, watermark, horizon, ...nothing };
}

async function resume(poll: Poll, scan: FullScanState, until: number): Promise<Failure | null> {
  const failure = await walk(poll, scan, until);
  if (failure === null || !leadsNowhere(failure)) return failure;
  // A rejection further on may be temporary and is requested again at its position.
  const hasMoved = !samePosition(poll.checkpoint.whole.round?.next ?? null, scan.next);
  if (isRefused(failure) && hasMoved) return failure;
  // Its cursor expired before this poll: scan from the start, and in one poll this time.
  return await walk(poll, begin(poll), Number.POSITIVE_INFINITY);
}

/** The counts of the full scan under way. */
export function tallyOf({ memory }: Poll): IdlessTally {
  memory.tally ??= new IdlessTally();
  return memory.tally;
}

async function walk(poll: Poll, scan: FullScanState, until: number): Promise<Failure | null> {
  const { name } = poll.reader.deps.stream;
  const tally = tallyOf(poll);
  const before = poll.checkpoint;
  const growth = new WalkGrowth(scan.known);
  const from = poll.now;
  let current = scan;
  let atEnd: CheckpointChange = {};
  let pages = 0;
  const walked = await poll.follow({
    from: { resume: scan.next, overlap: scan.overlap },
    reading: 'known',
    anchored: true,
    trail: true,
    passed: { read: scan.read, total: scan.total },
    horizon: before.whole.swept ? scan.horizon : null,
    tally,
    until,
    check: (identified, { isFirst }) =>
      scan.begunAt === poll.begunAt ? null : checkHeeded(poll.reader, identified, isFirst),
    step: (stage) => {
      const { position, next, taken, pager } = stage;
      const { resume, overlap } = pager.resume(position, next);
      const reach = reachWith(current, stage);
      const spentMs = scan.spentMs + poll.now - from;
      current = { ...current, ...reach, ...stage.passed, next: resume, overlap, spentMs };
      growth.note(stage);
      pages += 1;
      poll.memory.reached.pages += 1;
      atEnd = resumeAfter(stage);
      // A page that is committed anyway carries the scan's progress. There may be many empty pages.
      const isStep = taken.judged.fresh.length > 0 || taken.page.records.length === 0;
      return isStep && next !== null ? { whole: { round: current } } : {};
    },
  });
  if (walked.outcome !== 'ok') {
    const isReadAgain = isPartRead(walked) || isPartialPage(walked);
    // A page that is read again would be counted twice.
    if (isReadAgain) tally.at = null;
    if (tally.at !== null || isReadAgain) await poll.commit({ whole: { round: current } });
    return walked;
  }
  if (walked.paused !== null) {
    await poll.commit({ whole: { round: current } });
    return null;
  }
  // Rows that came or went meanwhile are no sign: scan once more.
  const isUnsure = pages > 1 && scan.next.by === 'cursor' && poll.missesRows();
  const now = poll.now;
  const blind = knowsEnd(before) && growth.atEnd && !samePosition(before.end.resume, poll.first);
  await poll.commit(
    joinedChange(atEnd, {
      whole: { round: null, swept: true, sweptInMs: current.spentMs },
      wanted: { standingBefore: null },
      looked: {
        sweptAt: isUnsure ? scanRequested : current.begunAt,
        rewoundAt: Math.max(before.looked.rewoundAt, current.begunAt),
        probedAt: Math.max(before.looked.probedAt, current.begunAt),
      },
      end: blind && !isRecent(before.end.provenAt, now) ? { blindAt: now } : {},
    }),
    // With `start: now`, the records before the new position were already reported as skipped.
    before.wanted.standingBefore === null ? gapBefore(current, name, current.watermark) : [],
  );
  return null;
}
