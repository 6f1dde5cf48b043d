// Following a list from a place, page by page, under one of the strategies of list-poller.ts. Each page is committed with the
// step of the checkpoint that follows from it, in order, small ones together (group.ts); the next page is asked for meanwhile.
// However a walk ends, all that it took is committed by then, or the commit's failure is how it ends.
// A walk ends at the end of the list, where its strategy says so, at a loop, or when others are to have their turn.

import { ExportError } from '../contracts/errors.ts';
import type { Page, Place } from '../contracts/source.ts';
import { type ListCheckpoint, samePlace } from './checkpoint.ts';
import { CircleWatch } from './circle.ts';
import { gapAt } from './gap.ts';
import type { Identified } from './identity.ts';
import { headOf, keyBytes, keysOf, overlapEnd, type Reading, type WalkCounts } from './judge.ts';
import type { ListReader, Taken } from './list-reader.ts';
import { NoPage } from './outcome.ts';
import type { Asked } from './page-asker.ts';
import { firstPlace, overlapMax, type Pager, pagerFor, type Resume } from './pager.ts';

/** One strategy's walk. */
export interface Walk {
  readonly from: Resume;
  /** What the first page is; the pages after a `resume` page are `onward`. */
  readonly reading: Reading;
  /** False while what the walk finds is not anchored until it has joined up with what was known. */
  readonly anchored: boolean;
  /** It aims at the list's end, so that its cursors are places to step back to. */
  readonly trail: boolean;
  /** Records up to this event time count as known: it goes where all was read, and they may be forgotten. */
  readonly horizon?: number | null;
  /** Counting of records without ids that this walk goes on with. */
  readonly tally?: Tally;
  /** Epoch milliseconds after which it pauses, with a page read at least. */
  readonly until?: number;
  /**
   * Looks at a page before it is taken, and throws where it cannot be what was asked for. `isFirst`: no page before had
   * records; `left`: as in Stage, before this page.
   */
  check?(identified: Identified, isFirst: boolean, left: string | null): void;
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
  /** Leading records of the page that this walk has met on the one before: by offset they are asked for again. */
  readonly overlap: number;
  /** Keys of records that were on the page the walk began at and are still to be met: pages may have become shorter. */
  readonly left: string | null;
  /** Records without ids were met, now or before. */
  readonly nameless: boolean;
}

/** What was counted of records without ids in walks that follow each other. */
export interface Tally {
  readonly counts: WalkCounts;
  /** The place up to which that is so; null where a page was counted and not committed. */
  at: Place | null;
}

/** How a walk ended. */
export interface Walked {
  readonly fresh: number;
  /** The rest of the list is still to be read: it met many empty pages, or its time was over. */
  readonly paused: 'empty' | 'time' | null;
  /** Rows moved, so that it began anew at the list's start: what was new says nothing about where. */
  readonly restarted: boolean;
}

/** Empty pages with a new cursor that are followed before others have their turn. */
const emptyPagesMax = 100;
/** Records by which the list's first page is known again. */
const headMax = 8;
/** Walks begun anew because rows moved, before the poll gives up. */
const restartsMax = 3;

/** Follows the list. Throws NoPage for an answer that is none, a loop, or rows that do not stop moving. */
export async function follow(reader: ListReader, walk: Walk, signal: AbortSignal): Promise<Walked> {
  const { name, paging } = reader.means.stream;
  let current = walk;
  for (let restarts = 0; restarts <= restartsMax; restarts += 1) {
    const walked = await new Following(reader, current, signal).run();
    if (walked !== 'shifted') return { ...walked, restarted: restarts > 0 };
    reader.means.log.info('rows moved while the list was read; reading it again from its start');
    current = anew(walk, firstPlace(paging));
  }
  throw new NoPage({
    outcome: 'retry',
    cause: new ExportError('upstream_nonsense', `reading ${name}: rows keep moving between pages`, {
      next: 'It is read again by itself; a list with a cursor, or newest first, does not have this problem.',
    }),
  });
}

/**
 * The walk from the list's start and in one go. Until it is through, the checkpoint stays where it was: after a crash all
 * from there on counts as unread.
 */
function anew({ tally: _, until: __, ...walk }: Walk, first: Place): Walk {
  return {
    ...walk,
    from: { resume: first, overlap: null },
    reading: 'known',
    ...(walk.anchored
      ? { step: (stage: Stage) => (stage.next === null ? walk.step(stage) : {}) }
      : {}),
  };
}

/** Where the list's end is asked for next, after a page. */
export function resumeAfter(stage: Stage): Partial<ListCheckpoint> {
  const { place, next, taken, pager, left, nameless } = stage;
  const { identified } = taken.judged;
  const { resume, overlap } = pager.resume(place, next);
  // Only records without ids need to know what was on the page that is asked again; by offset the overlap says it.
  const wanted = next === null && overlap === null && nameless;
  const resumePage = wanted ? keysOf(identified, 0, identified.count) : null;
  return {
    resume,
    atEnd: next === null,
    again: overlap !== null ? keyCount(overlap) : next === null ? identified.count : 0,
    overlap,
    countAnew: false,
    resumePage: next === null ? resumePage : left,
  };
}

/** How many keys a checkpoint's text holds. */
export function keyCount(keys: string): number {
  return Buffer.byteLength(keys, 'base64') / keyBytes;
}

/** The keys that are left when those of a page are met, each once; null where none is. */
export function keysWithout(keys: string, identified: Identified): string | null {
  const met = new Map<string, number>();
  for (let i = 0; i < identified.count; i += 1) {
    const key = keysOf(identified, i, i + 1);
    met.set(key, (met.get(key) ?? 0) + 1);
  }
  const all = Buffer.from(keys, 'base64');
  const left: Buffer[] = [];
  for (let at = 0; at < all.length; at += keyBytes) {
    const key = all.subarray(at, at + keyBytes);
    const count = met.get(key.toString('base64')) ?? 0;
    if (count === 0) left.push(key);
    else met.set(key.toString('base64'), count - 1);
  }
  return left.length === 0 ? null : Buffer.concat(left).toString('base64');
}

/** One walk under way. */
class Following {
  readonly #reader: ListReader;
  readonly #walk: Walk;
  readonly #signal: AbortSignal;
  readonly #pager: Pager;
  readonly #tally: Tally;
  readonly #circle: CircleWatch;
  #reading: Reading;
  #left: string | null;
  /** No page with records was met so far. */
  #isFirst = true;
  /** Keys of the last records of the page before. */
  #before: Buffer = Buffer.alloc(0);
  #fresh = 0;
  #emptyPages = 0;

  constructor(reader: ListReader, walk: Walk, signal: AbortSignal) {
    const { name, paging } = reader.means.stream;
    this.#reader = reader;
    this.#walk = walk;
    this.#signal = signal;
    this.#pager = pagerFor(paging, walk.from);
    this.#tally = walk.tally ?? { counts: new Map(), at: null };
    this.#circle = new CircleWatch(name);
    this.#reading = walk.reading;
    this.#left = walk.reading === 'resume' ? reader.checkpoint.resumePage : null;
  }

  async run(): Promise<Omit<Walked, 'restarted'> | 'shifted'> {
    const over = new AbortController();
    const { signal } = over;
    const stop = () => over.abort(this.#signal.reason);
    this.#signal.addEventListener('abort', stop, { once: true });
    if (this.#signal.aborted) stop();
    const ask = (place: Place) =>
      this.#reader.ask(this.#pager.ask(place), this.#pager.overlap, signal);
    let place = this.#walk.from.resume;
    let upcoming = ask(place);
    try {
      for (;;) {
        const { page, hidden } = await this.#arrival(upcoming);
        const identified = this.#reader.identify(page);
        const overlap = this.#pager.accept(identified);
        if (overlap === null) {
          await this.#flush();
          return 'shifted';
        }
        this.#walk.check?.(identified, this.#isFirst, this.#left);
        this.#isFirst &&= identified.count === 0;
        const taken = this.#take(page, identified, overlap);
        const next = this.#next(place, taken, hidden !== null);
        const ended = next === null || this.#walk.stopAt?.(taken) === true;
        const paused = this.#pause(page.records.length);
        const goesOn = !ended && paused === null;
        if (goesOn) {
          upcoming = ask(next);
          // A failure is met when the page is awaited, after this one is staged.
          upcoming.catch(() => undefined);
        }
        if (this.#left !== null) this.#left = keysWithout(this.#left, identified);
        this.#stage(this.#stageOf(place, next, { taken, overlap }), hidden);
        if (!goesOn || this.#reader.isWhole) await this.#flush();
        if (!goesOn) return { fresh: this.#fresh, paused: ended ? null : paused };
        place = next;
        if (this.#reading === 'resume' && this.#left === null) this.#reading = 'onward';
      }
    } catch (error) {
      // What was taken before is as good as it was.
      await this.#flush();
      throw error;
    } finally {
      this.#signal.removeEventListener('abort', stop);
      // A page asked for ahead is not wanted any more where a commit has failed.
      over.abort(new Error('the walk is over'));
    }
  }

  /** Awaits a page; where it is long in coming, what was taken before it is committed meanwhile. */
  async #arrival(upcoming: Promise<Asked>): Promise<Asked> {
    if (await this.#reader.isLate(upcoming)) await this.#flush();
    return await upcoming;
  }

  async #flush(): Promise<void> {
    const { at } = this.#tally;
    this.#tally.at = null;
    await this.#reader.flush();
    this.#tally.at = at;
  }

  #take(page: Page, identified: Identified, overlap: number): Taken {
    const { counts } = this.#tally;
    this.#tally.at = null;
    const taken = this.#reader.take(page, identified, {
      reading: this.#reading,
      counts,
      overlap,
      anchored: this.#walk.anchored,
      horizon: this.#walk.horizon ?? null,
      resumePage: this.#left === null ? null : Buffer.from(this.#left, 'base64'),
    });
    this.#fresh += taken.judged.fresh.length;
    return taken;
  }

  #next(place: Place, taken: Taken, isBeforeHidden: boolean): Place | null {
    const { page, judged } = taken;
    const next = isBeforeHidden
      ? this.#pager.past(place, page, judged.identified)
      : this.#pager.next(place, page, judged.identified);
    // Rows that are counted go nowhere but on, and some of them are asked for twice.
    if (place.by === 'offset') return next;
    return this.#circle.isStill(taken, next, this.#reading) ? null : next;
  }

  #stageOf(place: Place, next: Place | null, met: Pick<Stage, 'taken' | 'overlap'>): Stage {
    const { taken } = met;
    const { identified } = taken.judged;
    const { count, named } = identified;
    const isFirst = this.#before.length === 0;
    const overlap = isFirst ? 0 : Math.max(met.overlap, overlapEnd(identified, this.#before));
    const tail = keysOf(identified, Math.max(0, count - overlapMax), count);
    this.#before = Buffer.from(tail, 'base64');
    const nameless = this.#reader.checkpoint.nameless || named.includes(0);
    return { place, next, taken, pager: this.#pager, overlap, left: this.#left, nameless };
  }

  #pause(records: number): Walked['paused'] {
    const { until } = this.#walk;
    this.#emptyPages = records === 0 ? this.#emptyPages + 1 : 0;
    if (this.#emptyPages >= emptyPagesMax) return 'empty';
    return until !== undefined && this.#reader.means.clock.now() >= until ? 'time' : null;
  }

  #stage(stage: Stage, hidden: ExportError | null): void {
    const { place, next, taken } = stage;
    const { identified, fresh, changed, identities } = taken.judged;
    const { paging, name } = this.#reader.means.stream;
    const isFirst = samePlace(place, firstPlace(paging));
    const head = isFirst && next !== null ? headOf(identified, headMax) : '';
    const step = this.#walk.step(stage);
    const gap =
      hidden === null ? null : gapAt(stage, { hidden, name, told: this.#reader.checkpoint.gaps });
    const ahead = this.#reading === 'known' && step.resume === undefined;
    const countAnew = ahead && fresh.some((index) => identified.named[index] === 0);
    const change = {
      ...(head === '' ? {} : { firstPage: head }),
      nameless: stage.nameless,
      ...(countAnew ? { countAnew } : {}),
      ...(gap === null ? {} : { gaps: gap.gaps }),
      ...step,
    };
    const isOnTrail = this.#walk.trail && place.by === 'cursor' && next !== null;
    const trail = isOnTrail ? place.cursor : null;
    const findings = gap === null ? [] : [gap.finding];
    if (identities.length > 0 || changed.length > 0 || this.#reader.differs(change)) {
      this.#reader.stage(taken, change, { trail, findings });
    }
    this.#tally.at = next;
  }
}
