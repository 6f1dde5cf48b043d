// Following a list from a place, page by page, under one of the strategies of list-poller.ts. Each page is committed with the
// step of the checkpoint that follows from it, in order; the next page is asked for while this one is committed.
// A walk ends at the end of the list, where its strategy says so, at a loop, or after many empty pages in a row.

import { ExportError } from '../contracts/errors.ts';
import type { Place } from '../contracts/source.ts';
import { type ListCheckpoint, samePlace } from './checkpoint.ts';
import { CircleWatch } from './circle.ts';
import { headOf, type Reading, type WalkCounts } from './judge.ts';
import type { ListReader, Taken } from './list-reader.ts';
import { NoPage } from './outcome.ts';
import { firstPlace, type Pager, pagerFor } from './pager.ts';

/** One strategy's walk. */
export interface Walk {
  readonly from: Place;
  /** What the first page is; the pages after a `resume` page are `onward`. */
  readonly reading: Reading;
  /** False while what the walk finds is not anchored until it has joined up with what was known. */
  readonly anchored: boolean;
  /** The overlap kept for `from`, where the walk goes on from a checkpoint. */
  readonly overlap: string | null;
  /** Ends the walk before the end of the list. */
  stopAt?(taken: Taken): boolean;
  /** The checkpoint's step with a page, after which the walk goes on at `next` or has ended at `place`. */
  step(stage: Stage): Partial<ListCheckpoint>;
}

/** A page on its way into the spool, and what is around it. */
export interface Stage {
  readonly place: Place;
  readonly next: Place | null;
  readonly taken: Taken;
  readonly pager: Pager;
}

/** How a walk ended. */
export interface Walked {
  readonly fresh: number;
  /** It stopped to let others have their turn; the rest of the list is still to be read. */
  readonly more: boolean;
  /** Rows moved, so that it began anew at the list's start: what was new says nothing about where. */
  readonly restarted: boolean;
  /** The last place it asked. */
  readonly end: Place;
}

/** Empty pages with a new cursor that are followed before others have their turn. */
const emptyPagesMax = 100;
/** Records by which the list's first page is known again. */
const headMax = 8;
/** Stands in the trail for the list's first page, which has no cursor. */
export const trailStart = '';
/** Walks begun anew because rows moved, before the poll gives up. */
const restartsMax = 3;

/** Follows the list. Throws NoPage for an answer that is none, a loop, or rows that do not stop moving. */
export async function follow(reader: ListReader, walk: Walk, signal: AbortSignal): Promise<Walked> {
  const style = reader.means.stream.paging;
  let current = walk;
  for (let restarts = 0; restarts <= restartsMax; restarts += 1) {
    const walked = await once(reader, current, signal);
    if (walked !== 'shifted') return { ...walked, restarted: restarts > 0 };
    reader.means.log.info('rows moved while the list was read; reading it again from its start');
    // Until it is through again, the checkpoint stays where it was: after a crash all from there on counts as unread.
    const step = walk.anchored
      ? (stage: Stage) => (stage.next === null ? walk.step(stage) : {})
      : walk.step;
    current = { ...walk, from: firstPlace(style), overlap: null, reading: 'known', step };
  }
  throw new NoPage({
    outcome: 'retry',
    cause: new ExportError(
      'upstream_nonsense',
      `reading ${reader.means.stream.name}: rows keep moving between pages`,
      {
        next: 'It is read again by itself; a list with a cursor, or newest first, does not have this problem.',
      },
    ),
  });
}

async function once(
  reader: ListReader,
  walk: Walk,
  signal: AbortSignal,
): Promise<Omit<Walked, 'restarted'> | 'shifted'> {
  const pager = pagerFor(reader.means.stream.paging, walk.overlap);
  const counts: WalkCounts = new Map();
  const circle = new CircleWatch(reader.means.stream.name);
  let { from: place, reading } = walk;
  let fresh = 0;
  let emptyPages = 0;
  let upcoming = reader.fetch(pager.ask(place), signal);
  for (;;) {
    const page = await upcoming;
    const identified = reader.identify(page);
    const overlap = pager.accept(identified);
    if (overlap === null) return 'shifted';
    const taken = reader.take(page, identified, {
      reading,
      counts,
      overlap,
      anchored: walk.anchored,
    });
    fresh += taken.judged.fresh.length;
    const ahead = pager.next(place, page, identified);
    const next = circle.isStill(taken, ahead, reading) ? null : ahead;
    const stop = walk.stopAt?.(taken) === true;
    emptyPages = page.records.length === 0 ? emptyPages + 1 : 0;
    const pause = emptyPages >= emptyPagesMax;
    const goesOn = next !== null && !stop && !pause;
    if (goesOn) {
      upcoming = reader.fetch(pager.ask(next), signal);
      // A failure is met when the page is awaited, after this one is committed.
      upcoming.catch(() => undefined);
    }
    await commit(reader, walk, { place, next, taken, pager }, reading);
    if (!goesOn)
      return { fresh, more: pause && next !== null, end: pause && next !== null ? next : place };
    place = next;
    if (reading === 'resume') reading = 'onward';
  }
}

async function commit(
  reader: ListReader,
  walk: Walk,
  stage: Stage,
  reading: Reading,
): Promise<void> {
  const { place, next, taken } = stage;
  const { judged } = taken;
  const isFirst = samePlace(place, firstPlace(reader.means.stream.paging));
  const head = isFirst && next !== null ? headOf(judged.identified, headMax) : '';
  const step = walk.step(stage);
  const { identified, fresh } = judged;
  const ahead = reading === 'known' && step.resume === undefined;
  const countAnew = ahead && fresh.some((index) => identified.named[index] === 0);
  const change = {
    ...(head === '' ? {} : { firstPage: head }),
    ...(countAnew ? { countAnew } : {}),
    ...step,
  };
  const trail = place.by === 'cursor' && next !== null ? (place.cursor ?? trailStart) : null;
  if (judged.fresh.length > 0 || judged.changed.length > 0 || reader.differs(change)) {
    await reader.commit(taken, change, { trail });
  }
}
