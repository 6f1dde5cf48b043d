// A walk: reads a list from a position, page by page, for one of the strategies of poller.ts. Each page is committed
// with its checkpoint step, in order; small pages are grouped (stage.ts). The next page is requested meanwhile.
// Invariant: when a walk ends, everything it accepted is committed, or the commit's failure is the walk's result. A
// walk ends at the end of the list, if its strategy says so, at a cursor loop, or to give other streams their turn.

import { type Answer, ExportError, type Failure } from '../contracts/index.ts';
import { type CheckpointChange, joinedChange } from './checkpoint.ts';
import { type Identified, keysOf, overlapEnd, sameEnd } from './identity.ts';
import type { PageRole } from './idless.ts';
import {
  type FetchedPage,
  fetchWith,
  isFirst,
  type ListPosition,
  overlapMax,
  type Page,
  type Pager,
  type PagerDeps,
  partialPage,
  sameWindow,
  startOf,
} from './page.ts';
import { pagerFor } from './pagers.ts';
import { EndWatch, type Last, notKnown } from './paging-doubt.ts';
import {
  gapAt,
  IdlessTally,
  keysWithout,
  learnedFrom,
  type Stage,
  stageOfPart,
  type Taken,
} from './stage.ts';
import { restartedWalk, type Walk, type Walked, type WalkReader } from './walk.ts';
import { CursorLoopWatch, type Looked, type Sameness, TailWatch } from './walk-end.ts';

/** Restarts of a walk after rows moved, before the poll fails. */
const restartsMax = 3;

/** Follows the list. Fails if a page fails, at a cursor loop, or if rows do not stop moving. */
export async function follow(
  reader: WalkReader,
  walk: Walk,
  signal: AbortSignal,
): Promise<Answer<Walked>> {
  const { name, pagination } = reader.deps.stream;
  let current = walk;
  for (let restarts = 0; restarts <= restartsMax; restarts += 1) {
    const walked = await new Following(reader, current).run(signal);
    if (!('shifted' in walked)) {
      return walked.outcome === 'ok' ? { ...walked, restarted: restarts > 0 } : walked;
    }
    reader.deps.log.info(
      'rows_moved',
      'rows moved while the list was read; reading the list again from its start',
    );
    current = restartedWalk(walk, startOf(pagination, walked.shifted));
  }
  const moving = `reading ${name}: rows keep moving between pages`;
  const next = 'It is read again by itself; newest first (order_by and order), rows move less.';
  return { outcome: 'retry', cause: new ExportError('upstream_nonsense', moving, { next }) };
}

/** Ends the request for a page that is no longer needed. */
const walkOver = new Error('the walk is over');

/** The end of one walk; `shifted`: rows moved, and the walk must restart at this position. */
type Ended = Answer<Omit<Walked, 'restarted'>> | { readonly shifted: ListPosition };

/** A page that was read, and the walk's next position. `last`: input for the verdicts if the walk ends here. */
interface Read extends Pick<Stage, 'next' | 'onward' | 'ended' | 'taken' | 'overlap'> {
  readonly last: Last;
}

/** One walk under way. */
class Following {
  readonly #reader: WalkReader;
  readonly #walk: Walk;
  readonly #pager: Pager;
  readonly #tally: IdlessTally;
  #loops: CursorLoopWatch;
  readonly #tail: TailWatch;
  readonly #end: EndWatch;
  #reading: PageRole;
  #left: string | null;
  /** No page with records so far. */
  #isFirst = true;
  /** The first page of the list was read and was shorter than its limit. */
  #isShort = false;
  /** Keys of the last records of the previous page. */
  #before: Buffer = Buffer.alloc(0);
  #fresh = 0;

  constructor(reader: WalkReader, walk: Walk) {
    const { name, pagination } = reader.deps.stream;
    this.#reader = reader;
    this.#walk = walk;
    this.#pager = pagerFor(pagination, walk.from, reader.deps.clock.now());
    this.#tally = walk.tally ?? new IdlessTally();
    this.#loops = new CursorLoopWatch(name, walk.isPoll === true);
    this.#tail = new TailWatch(reader.checkpoint, {
      isPoll: walk.isPoll === true,
      isWindow: walk.from.resume.window !== undefined,
      run: walk.empties ?? { count: 0 },
    });
    const isWhole = reader.deps.start === 'beginning';
    this.#end = new EndWatch(reader.deps.stream, isWhole, walk.passed ?? notKnown);
    this.#reading = walk.reading;
    this.#left = walk.reading === 'resume' ? reader.checkpoint.end.resumePage : null;
  }

  async run(signal: AbortSignal): Promise<Ended> {
    // A listener, because AbortSignal.any leaves objects behind that only a collection of the whole heap frees.
    const over = new AbortController();
    const stop = () => over.abort(signal.reason);
    signal.addEventListener('abort', stop);
    try {
      signal.throwIfAborted();
      return await this.#follow(over.signal);
    } finally {
      signal.removeEventListener('abort', stop);
      over.abort(walkOver);
      // Commit the pages accepted so far also after a failure.
      await this.#flush();
    }
  }

  async #follow(signal: AbortSignal): Promise<Ended> {
    const deps: PagerDeps = {
      ask: (position, overlap) => this.#reader.ask(position, overlap, signal),
      identify: (page) => this.#reader.identify(page),
      isFull: (identified) => this.#isFull(identified),
    };
    const ask = (position: ListPosition) => fetchWith(this.#pager, position, deps);
    let position = this.#walk.from.resume;
    let upcoming = ask(position);
    for (;;) {
      const asked = await this.#arrival(upcoming, () => ask(position));
      if (asked.outcome !== 'ok') return asked;
      const read = this.#read(position, asked);
      if (read === 'shifted') return { shifted: position };
      if (asked.page.partial !== null) {
        if (!('cause' in read)) this.#stagePart(position, read);
        return partialPage(asked.page.partial);
      }
      if ('cause' in read) return read;
      const { last, ...rest } = read;
      const { next, onward, taken } = rest;
      const ended = next === null || this.#walk.stopAt?.(taken) === true;
      const paused = this.#pause();
      const goesOn = !ended && paused === null;
      if (goesOn) {
        upcoming = ask(next);
        // An error is handled when the page is awaited, after this one is staged; without this it would be unhandled.
        upcoming.catch(() => undefined);
      }
      if (this.#left !== null) this.#left = keysWithout(this.#left, taken.judged.identified);
      const stage = this.#stageOf(position, rest);
      const part = rest.ended === undefined ? null : this.#end.partOfWindow(position, last);
      this.#stage(part === null ? stage : this.#restarted(stage), asked.hidden);
      if (part !== null) return part;
      if (!goesOn) {
        const verdicts = next === null ? this.#end.verdicts(position, last) : {};
        const leadsOn = next === null && onward !== null && taken.page.records.length === 0;
        const walked = { fresh: this.#fresh, paused: ended ? null : paused, next, verdicts };
        return { outcome: 'ok', ...walked, leadsOn };
      }
      if (this.#reader.isWhole) await this.#flush();
      position = next;
      if (this.#reading === 'resume' && this.#left === null) this.#reading = 'onward';
    }
  }

  /** Accepts the new records of a page and finds the next position. */
  #read(position: ListPosition, { page, hidden }: FetchedPage): Read | Failure | 'shifted' {
    const identified = this.#reader.identify(page);
    if (page.partial !== null) return this.#readPart(position, page, identified);
    const isFull = this.#isFull(identified);
    const heeded = this.#end.isHeeded(position, page, { identified, isFull });
    if (typeof heeded === 'object') return heeded;
    const accepted = this.#pager.accept(identified);
    if (accepted === null) return 'shifted';
    this.#tally.at = null;
    // Counted rows cannot loop, and some rows are requested twice on purpose.
    const sameness = position.by === 'offset' ? 'other' : this.#loops.look(identified, isFull);
    if (sameness === 'loop') return this.#loops.failure;
    const overlap = Math.max(accepted, this.#again(identified, sameness));
    const seen = { isFirst: this.#isFirst, left: this.#left, overlap };
    const flaw = this.#walk.check?.(identified, seen) ?? null;
    if (flaw !== null) return flaw;
    this.#isFirst &&= identified.count === 0;
    const taken = this.#take(page, identified, overlap);
    this.#loops.note(taken.span);
    const ahead =
      hidden === null
        ? this.#pager.next(position, page, identified)
        : this.#pager.past(position, page, identified);
    const mayGoOn = isFull && sameness === 'other' && this.#loops.isOneSecond;
    const isWithin = ahead !== null && sameWindow(ahead, position);
    const way = heeded && isWithin ? this.#way(ahead, taken, { sameness, mayGoOn }) : 'end';
    if (way === 'loop') return this.#loops.failure;
    const last = { page, onward: isWithin ? ahead : null, sameness, isFull };
    const rest = { taken, overlap, last };
    if (way === 'on') return { next: ahead, onward: ahead, ended: undefined, ...rest };
    // Without a closed window, nothing was requested.
    const reported = position.window?.to === null ? undefined : null;
    const ended = !isWithin ? reported : identified.count === 0 ? 'empty' : 'again';
    if (position.window === undefined) return { next: null, onward: ahead, ended, ...rest };
    this.#loops = new CursorLoopWatch(this.#reader.deps.stream.name, false);
    this.#tail.enter();
    const next = isWithin ? (this.#pager.leave?.(position) ?? null) : ahead;
    return { next, onward: next, ended, ...rest };
  }

  /**
   * Accepts the records of a page from which others are missing, and ends the walk: the position is not passed. Fails
   * if its records cannot be distinguished from known ones.
   */
  #readPart(position: ListPosition, page: Page, identified: Identified): Read | Failure {
    const known = this.#pager.accept(identified);
    const seen = { isFirst: this.#isFirst, left: this.#left, overlap: known ?? 0 };
    const isUnclear = known === null && identified.named.includes(0);
    const flaw = this.#walk.check?.(identified, seen) ?? null;
    if (flaw !== null || isUnclear) return flaw ?? partialPage(page.partial as ExportError);
    this.#tally.at = null;
    const taken = this.#take(page, identified, known ?? 0);
    const last = { page, onward: position, sameness: 'other', isFull: false } as const;
    return { next: position, onward: position, ended: undefined, taken, overlap: known ?? 0, last };
  }

  /** Stages a partial page. The page is requested again, and its records are known then. */
  #stagePart(position: ListPosition, { last: _, ...rest }: Read): void {
    const { identified, fresh, identities } = rest.taken.judged;
    const nameless = this.#reader.checkpoint.memory.nameless || identified.named.includes(0);
    const found = { position, nameless, left: this.#left, passed: this.#end.passed };
    const stage = stageOfPart({ ...rest, ...found }, this.#pager);
    const step = this.#walk.step(stage);
    const isAhead = this.#reading === 'known' && step.end?.resume === undefined;
    const countAnew = isAhead && fresh.some((index) => identified.named[index] === 0);
    const change = joinedChange(
      { memory: { nameless }, ...(countAnew && { end: { countAnew } }) },
      step,
    );
    if (identities.length === 0 && !this.#reader.differs(change)) return;
    this.#reader.stage(rest.taken, change, { trail: null, findings: [] });
  }

  /**
   * Awaits a page. If it is slow, the steps before it are committed meanwhile. If the response leaves open whether a
   * next page exists, the position is requested once more.
   */
  async #arrival(
    upcoming: Promise<Answer<FetchedPage>>,
    askAgain: () => Promise<Answer<FetchedPage>>,
  ): Promise<Answer<FetchedPage>> {
    if (await this.#reader.isLate(upcoming)) await this.#flush();
    const asked = await upcoming;
    if (asked.outcome !== 'ok' || asked.page.partial !== null) return asked;
    if (!this.#tail.doubts(asked.page)) return asked;
    const second = await askAgain();
    if (second.outcome === 'ok') this.#tail.compare(asked.page.next, second.page);
    return second;
  }

  async #flush(): Promise<void> {
    const { at } = this.#tally;
    this.#tally.at = null;
    await this.#reader.flush();
    this.#tally.at = at;
  }

  #take(page: Page, identified: Identified, overlap: number): Taken {
    const taken = this.#reader.take(page, identified, {
      reading: this.#reading,
      tally: this.#tally,
      overlap,
      anchored: this.#walk.anchored,
      horizon: this.#walk.horizon ?? null,
      resumePage: this.#left === null ? null : Buffer.from(this.#left, 'base64'),
    });
    this.#fresh += taken.judged.fresh.length;
    return taken;
  }

  /** Number of leading records that were on the previous page; without ids they would look new. */
  #again(identified: Identified, sameness: Sameness): number {
    if (sameness !== 'other') return identified.count;
    const mayBegin = this.#reader.checkpoint.server.endless === 'again' && this.#before.length > 0;
    return mayBegin ? Math.max(0, overlapEnd(identified, this.#before)) : 0;
  }

  #isFull({ count }: Identified): boolean {
    return count >= (this.#reader.limit ?? 2);
  }

  #way(onward: ListPosition, { judged }: Taken, looked: Looked): 'on' | 'end' | 'loop' {
    if (onward.by === 'offset') return 'on';
    const { identified, fresh } = judged;
    if (this.#tail.isEnd(identified.count, fresh.length, looked)) return 'end';
    const isSure = (index: number) => this.#reading === 'known' || identified.named[index] === 1;
    const progress = fresh.some(isSure);
    return this.#loops.follow(onward, { progress, isEmpty: identified.count === 0 });
  }

  #stageOf(position: ListPosition, rest: Omit<Read, 'last'>): Stage {
    const { taken } = rest;
    const { identified } = taken.judged;
    const { count, named } = identified;
    const before = this.#before;
    const overlap = before.length === 0 ? 0 : Math.max(rest.overlap, sameEnd(identified, before));
    this.#before = keysOf(identified, Math.max(0, count - overlapMax));
    const nameless = this.#reader.checkpoint.memory.nameless || named.includes(0);
    this.#end.pass(position, taken.page, count - overlap);
    const found = { pager: this.#pager, passed: this.#end.passed, left: this.#left };
    return { ...rest, ...found, position, overlap, nameless };
  }

  /** Restarts a window that ended before it was read completely. */
  #restarted(stage: Stage): Stage {
    const start = startOf(this.#reader.deps.stream.pagination, stage.position);
    const resume = () => ({ resume: start, overlap: null });
    return { ...stage, next: start, onward: start, pager: { inserted: false, resume } };
  }

  #pause(): Walked['paused'] {
    const { until } = this.#walk;
    if (this.#tail.isPause) return 'empty';
    return until !== undefined && this.#reader.deps.clock.now() >= until ? 'time' : null;
  }

  #stage(stage: Stage, hidden: ExportError | null): void {
    const { position, next, taken } = stage;
    const { identified, fresh, changed, identities } = taken.judged;
    const step = this.#walk.step(stage);
    const { name } = this.#reader.deps.stream;
    const { server, told: reported } = this.#reader.checkpoint;
    if (isFirst(position)) this.#isShort = !this.#isFull(identified);
    const gap = hidden === null ? null : gapAt(stage, { hidden, name, reported: reported.gaps });
    const ahead = this.#reading === 'known' && step.end?.resume === undefined;
    const countAnew = ahead && fresh.some((index) => identified.named[index] === 0);
    const learned: CheckpointChange = {
      server: learnedFrom(stage, { server, isShort: this.#isShort, gap: this.#tail.gap }),
      memory: { nameless: stage.nameless },
      ...(countAnew ? { end: { countAnew } } : {}),
      ...(gap === null ? {} : { told: { gaps: gap.gaps } }),
    };
    const change = joinedChange(learned, step);
    // A window is found again by its time, so it needs no trail.
    const isOnTrail = this.#walk.trail && position.window === undefined && next !== null;
    const trail = isOnTrail && position.by === 'cursor' ? position.cursor : null;
    if (identities.length > 0 || changed.length > 0 || this.#reader.differs(change)) {
      this.#reader.stage(taken, change, { trail, findings: gap === null ? [] : [gap.finding] });
    }
    this.#tally.at = next;
  }
}
