// Following a list from a place, page by page, under one of the strategies of list-poller.ts. Each page is committed with the
// step of the checkpoint that follows from it, in order; the next page is asked for while this one is committed.
// A walk ends at the end of the list, where its strategy says so, at a loop, or after many empty pages in a row.

import { ExportError } from '../contracts/errors.ts';
import type { Place } from '../contracts/source.ts';
import type { ListCheckpoint } from './checkpoint.ts';
import type { Reading, WalkCounts } from './judge.ts';
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
  /** The last place it asked. */
  readonly end: Place;
}

/** Empty pages with a new cursor that are followed before others have their turn. */
const emptyPagesMax = 100;
/** Walks begun anew because rows moved, before the poll gives up. */
const restartsMax = 3;

/** Follows the list. Throws NoPage for an answer that is none, a loop, or rows that do not stop moving. */
export async function follow(reader: ListReader, walk: Walk, signal: AbortSignal): Promise<Walked> {
  const style = reader.means.stream.paging;
  let current = walk;
  for (let restarts = 0; restarts <= restartsMax; restarts += 1) {
    const walked = await once(reader, current, signal);
    if (walked !== 'shifted') return walked;
    reader.means.log.info('rows moved while the list was read; reading it again from its start');
    current = { ...walk, from: firstPlace(style), overlap: null, reading: 'known' };
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
): Promise<Walked | 'shifted'> {
  const pager = pagerFor(reader.means.stream.paging, walk.overlap);
  const counts: WalkCounts = new Map();
  const visited = new Set<string>();
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
    const next = pager.next(place, page, identified);
    const stop = walk.stopAt?.(taken) === true;
    emptyPages = page.records.length === 0 ? emptyPages + 1 : 0;
    const pause = emptyPages >= emptyPagesMax;
    const goesOn = next !== null && !stop && !pause;
    if (goesOn) {
      checkLoop(reader, next, visited, taken.judged.fresh.length > 0);
      upcoming = reader.fetch(pager.ask(next), signal);
      // A failure is met when the page is awaited, after this one is committed.
      upcoming.catch(() => undefined);
    }
    await commit(reader, walk, { place, next, taken, pager });
    if (!goesOn)
      return { fresh, more: pause && next !== null, end: pause && next !== null ? next : place };
    place = next;
    if (reading === 'resume') reading = 'onward';
  }
}

async function commit(reader: ListReader, walk: Walk, stage: Stage): Promise<void> {
  const { place, next, taken } = stage;
  const change = walk.step(stage);
  const trail = place.by === 'cursor' && next !== null ? place.cursor : null;
  if (taken.judged.fresh.length > 0 || taken.judged.changed.length > 0 || reader.differs(change)) {
    await reader.commit(taken, change, { trail });
  }
}

/** A place that was asked before in this walk, with nothing new since, is a circle. */
function checkLoop(reader: ListReader, next: Place, visited: Set<string>, progress: boolean): void {
  if (next.by !== 'cursor') return;
  if (progress) visited.clear();
  const cursor = next.cursor ?? '';
  if (visited.has(cursor)) {
    throw new NoPage({
      outcome: 'retry',
      cause: new ExportError(
        'pagination_loop',
        `reading ${reader.means.stream.name}: upstream's cursors lead in a circle with no new record in it`,
        { next: 'Report it to upstream; the checkpoint stays at the last page before the circle.' },
      ),
    });
  }
  visited.add(cursor);
}
