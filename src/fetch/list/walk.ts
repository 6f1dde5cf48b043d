// Following a list from a place, page by page, under one of the strategies of poller.ts. Each page is committed with the
// step of the checkpoint that follows from it, in order, small ones together (group.ts); the next page is asked for meanwhile.
// However a walk ends, all that it took is committed by then, or the commit's failure is how it ends.
// A walk ends at the end of the list, where its strategy says so, at a loop, or when others are to have their turn.

import { ExportError } from '../../contracts/errors.ts';
import { NoPage } from '../outcome.ts';
import { type CheckpointChange, joined } from './checkpoint.ts';
import { CircleWatch, type Sameness } from './circle.ts';
import { EndWatch, nonePassed, notKnown, type Passed } from './end-watch.ts';
import { gapAt } from './gap.ts';
import type { Identified } from './identity.ts';
import type { Reading } from './judge.ts';
import { headOf, keysOf, overlapEnd, sameEnd } from './keys.ts';
import { firstPlace, isFirst, type Page, type Place } from './page.ts';
import type { Asked } from './page-asker.ts';
import { overlapMax, type Pager, pagerFor, type Resume } from './pager.ts';
import type { Verdicts } from './paging-doubt.ts';
import type { ListReader } from './reader.ts';
import { keysWithout, type Seen, type Stage, type Taken, type Tally } from './stage.ts';
import { type EmptyRun, TailWatch } from './tail.ts';

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
  /** It asks where the list ended when it was asked before. */
  readonly isPoll?: boolean;
  /** What was passed before its first page; left out: not known. */
  readonly passed?: Passed;
  /** Counting of records without ids that this walk goes on with. */
  readonly tally?: Tally;
  /** Empty pages met right before its first one. */
  readonly empties?: EmptyRun;
  /** Epoch milliseconds after which it pauses, with a page read at least. */
  readonly until?: number;
  /**
   * Looks at a page before it is taken, and throws where it cannot be what was asked for.
   */
  check?(identified: Identified, seen: Seen): void;
  /** Ends the walk before the end of the list. */
  stopAt?(taken: Taken): boolean;
  /** The checkpoint's step with a page, after which the walk goes on at `next` or has ended at `place`. */
  step(stage: Stage): CheckpointChange;
}

/** How a walk ended. */
export interface Walked {
  readonly fresh: number;
  /** The rest of the list is still to be read: it met many empty pages, or its time was over. */
  readonly paused: 'empty' | 'time' | null;
  /** Where that begins; null where all was read. */
  readonly next: Place | null;
  /** What its end says of the paging. */
  readonly verdicts: Verdicts;
  /** Rows moved, so that it began anew at the list's start: what was new says nothing about where. */
  readonly restarted: boolean;
}

/** Records by which the list's first page is known again. */
const headMax = 8;
/** Walks begun anew because rows moved, before the poll gives up. */
const restartsMax = 3;

/** Follows the list. Throws NoPage for an answer that is none, a loop, or rows that do not stop moving. */
export async function follow(reader: ListReader, walk: Walk, signal: AbortSignal): Promise<Walked> {
  const { name, pagination } = reader.means.stream;
  let current = walk;
  for (let restarts = 0; restarts <= restartsMax; restarts += 1) {
    const walked = await new Following(reader, current, signal).run();
    if (walked !== 'shifted') return { ...walked, restarted: restarts > 0 };
    reader.means.log.info('rows moved while the list was read; reading it again from its start');
    current = anew(walk, firstPlace(pagination));
  }
  throw new NoPage({
    outcome: 'retry',
    cause: new ExportError('upstream_nonsense', `reading ${name}: rows keep moving between pages`, {
      next: 'It is read again by itself; newest first (order_by and order), rows move less.',
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
    passed: nonePassed,
    ...(walk.anchored
      ? { step: (stage: Stage) => (stage.next === null ? walk.step(stage) : {}) }
      : {}),
  };
}

/** One walk under way. */
class Following {
  readonly #reader: ListReader;
  readonly #walk: Walk;
  readonly #signal: AbortSignal;
  readonly #pager: Pager;
  readonly #tally: Tally;
  readonly #circle: CircleWatch;
  readonly #tail: TailWatch;
  readonly #end: EndWatch;
  #reading: Reading;
  #left: string | null;
  /** No page with records was met so far. */
  #isFirst = true;
  /** The list's first page was met, and had less than was asked for. */
  #isShort = false;
  /** Keys of the last records of the page before. */
  #before: Buffer = Buffer.alloc(0);
  #fresh = 0;

  constructor(reader: ListReader, walk: Walk, signal: AbortSignal) {
    const { name, pagination } = reader.means.stream;
    this.#reader = reader;
    this.#walk = walk;
    this.#signal = signal;
    this.#pager = pagerFor(pagination, walk.from);
    this.#tally = walk.tally ?? { counts: new Map(), at: null };
    this.#circle = new CircleWatch(name);
    this.#tail = new TailWatch(reader.checkpoint, {
      isPoll: walk.isPoll === true,
      run: walk.empties ?? { count: 0 },
    });
    const isWhole = reader.means.start === 'beginning';
    this.#end = new EndWatch(reader.means.stream, isWhole, walk.passed ?? notKnown);
    this.#reading = walk.reading;
    this.#left = walk.reading === 'resume' ? reader.checkpoint.end.resumePage : null;
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
        const { page, hidden } = await this.#surely(await this.#arrival(upcoming), () =>
          ask(place),
        );
        const identified = this.#reader.identify(page);
        const isFull = this.#isFull(identified);
        const isHeeded = this.#end.isHeeded(place, page, { identified, isFull });
        const accepted = this.#pager.accept(identified);
        if (accepted === null) {
          await this.#flush();
          return 'shifted';
        }
        const sameness = this.#sameness(place, identified);
        const overlap = Math.max(accepted, this.#again(identified, sameness));
        this.#walk.check?.(identified, { isFirst: this.#isFirst, left: this.#left, overlap });
        this.#isFirst &&= identified.count === 0;
        const taken = this.#take(page, identified, overlap);
        const onward = this.#onward(place, taken, hidden !== null);
        const next = isHeeded && this.#goesOn(onward, taken, sameness) ? onward : null;
        const ended = next === null || this.#walk.stopAt?.(taken) === true;
        const paused = this.#pause();
        const goesOn = !ended && paused === null;
        if (goesOn) {
          upcoming = ask(next);
          // A failure is met when the page is awaited, after this one is staged.
          upcoming.catch(() => undefined);
        }
        if (this.#left !== null) this.#left = keysWithout(this.#left, identified);
        const stage = this.#stageOf(place, { next, onward, taken, overlap });
        this.#stage(stage, hidden);
        if (!goesOn || this.#reader.isWhole) await this.#flush();
        if (!goesOn) {
          const last = { page, onward, sameness, isFull };
          const verdicts = next === null ? this.#end.verdicts(place, last) : {};
          return { fresh: this.#fresh, paused: ended ? null : paused, next, verdicts };
        }
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

  /** An answer, or a second one where the first leaves open whether its cursor leads on. */
  async #surely(asked: Asked, askAgain: () => Promise<Asked>): Promise<Asked> {
    if (!this.#tail.doubts(asked.page)) return asked;
    const second = await askAgain();
    this.#tail.compare(asked.page.next, second.page);
    return second;
  }

  #sameness(place: Place, identified: Identified): Sameness {
    this.#tally.at = null;
    // Rows that are counted go nowhere but on, and some of them are asked for twice.
    return place.by === 'offset'
      ? 'other'
      : this.#circle.look(identified, this.#isFull(identified));
  }

  /** How many leading records came on the page before; without ids they would look new. */
  #again(identified: Identified, sameness: Sameness): number {
    if (sameness !== 'other') return identified.count;
    const mayBegin = this.#reader.checkpoint.server.endless === 'again' && this.#before.length > 0;
    return mayBegin ? Math.max(0, overlapEnd(identified, this.#before)) : 0;
  }

  #isFull({ count }: Identified): boolean {
    const { limit } = this.#reader;
    return count >= (limit ?? 2);
  }

  #onward(place: Place, taken: Taken, isBeforeHidden: boolean): Place | null {
    const { page, judged } = taken;
    return isBeforeHidden
      ? this.#pager.past(place, page, judged.identified)
      : this.#pager.next(place, page, judged.identified);
  }

  #goesOn(onward: Place | null, { judged }: Taken, sameness: Sameness): boolean {
    if (onward === null || onward.by === 'offset') return onward !== null;
    const { identified, fresh } = judged;
    if (this.#tail.isEnd(identified.count, fresh.length, sameness)) return false;
    const isSure = (index: number) => this.#reading === 'known' || identified.named[index] === 1;
    const progress = fresh.some(isSure);
    return this.#circle.follow(onward, { progress, isEmpty: identified.count === 0 });
  }

  #stageOf(place: Place, met: Pick<Stage, 'next' | 'onward' | 'taken' | 'overlap'>): Stage {
    const { taken } = met;
    const { identified } = taken.judged;
    const { count, named } = identified;
    const isFirst = this.#before.length === 0;
    const overlap = isFirst ? 0 : Math.max(met.overlap, sameEnd(identified, this.#before));
    const tail = keysOf(identified, Math.max(0, count - overlapMax), count);
    this.#before = Buffer.from(tail, 'base64');
    const nameless = this.#reader.checkpoint.memory.nameless || named.includes(0);
    this.#end.pass(taken.page, count - overlap);
    const { passed } = this.#end;
    return { ...met, place, pager: this.#pager, overlap, passed, left: this.#left, nameless };
  }

  #pause(): Walked['paused'] {
    const { until } = this.#walk;
    if (this.#tail.isPause) return 'empty';
    return until !== undefined && this.#reader.means.clock.now() >= until ? 'time' : null;
  }

  #stage(stage: Stage, hidden: ExportError | null): void {
    const { place, next, taken } = stage;
    const { identified, fresh, changed, identities } = taken.judged;
    const { name } = this.#reader.means.stream;
    const step = this.#walk.step(stage);
    const { gaps: told } = this.#reader.checkpoint.told;
    const gap = hidden === null ? null : gapAt(stage, { hidden, name, told });
    const ahead = this.#reading === 'known' && step.end?.resume === undefined;
    const countAnew = ahead && fresh.some((index) => identified.named[index] === 0);
    const learned: CheckpointChange = {
      server: this.#learned(stage),
      memory: { nameless: stage.nameless },
      ...(countAnew ? { end: { countAnew } } : {}),
      ...(gap === null ? {} : { told: { gaps: gap.gaps } }),
    };
    const change = joined(learned, step);
    const isOnTrail = this.#walk.trail && place.by === 'cursor' && next !== null;
    const trail = isOnTrail ? place.cursor : null;
    const findings = gap === null ? [] : [gap.finding];
    if (identities.length > 0 || changed.length > 0 || this.#reader.differs(change)) {
      this.#reader.stage(taken, change, { trail, findings });
    }
    this.#tally.at = next;
  }

  /** What a page shows of the server: how the list begins, and how it ends. */
  #learned({ place, next, onward, taken }: Stage): NonNullable<CheckpointChange['server']> {
    const { identified } = taken.judged;
    const ended = onward === null ? null : identified.count === 0 ? 'empty' : 'again';
    const endless = next === null ? ended : this.#reader.checkpoint.server.endless;
    const isAtStart = isFirst(place);
    // What is not full may be the last page as well, which comes again by right.
    if (isAtStart) this.#isShort = !this.#isFull(identified);
    const head = isAtStart && next !== null ? headOf(identified, headMax) : '';
    const mayEnd = endless !== null && this.#isShort;
    return {
      ...(mayEnd ? { firstPage: null } : head === '' ? {} : { firstPage: head }),
      endless,
      gap: this.#tail.gap,
    };
  }
}
