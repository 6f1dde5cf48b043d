// How one page is asked for until there is a whole one: with the largest limit that upstream takes,
// again where the answer lacks what it had before, around a row that upstream does not show, and
// without a sorting that upstream refuses. What it learns of the server on the way goes into the
// checkpoint with the next commit.

import type { Answer, Failure } from '../../contracts/answer.ts';
import { ExportError, invariant } from '../../contracts/errors.ts';
import type { ListEndpoint } from '../../contracts/source.ts';
import type { Spool } from '../../contracts/spool.ts';
import type { Clock, Log } from '../../contracts/tools.ts';
import { scanBody } from '../../tools/record-list.ts';
import type { ListCheckpoint } from './checkpoint.ts';
import { fetchPage } from './fetch-page.ts';
import { isFirst, type ListPosition, type Page, withinWindow } from './page.ts';

/** What was learned of the server. */
export type ServerTraits = Pick<ListCheckpoint['server'], 'limitMax' | 'hasNext' | 'endsWithNull'>;

/** What is asked for. */
interface Requested {
  readonly place: ListPosition;
  /** Rows of the page that were read before. */
  readonly overlap: number;
  /** The list ended there when it was last asked for. */
  readonly isEnd: boolean;
  /** Without the sorting, which upstream refuses. */
  readonly unsorted: boolean;
}

/** A whole page. */
export interface FetchedPage {
  readonly page: Page;
  /** Why the row behind the page's last one is not shown, where that is so. */
  readonly hidden: ExportError | null;
}

/** Page limits tried one after the other when upstream refuses one; 0 leaves the parameter out. */
const limitSteps = [100, 50, 25, 0];
/** A larger limit is tried again after this, at the list's start: cursors may hold one. */
const tryMoreMsMin = 60_000;
const tryMoreMsMax = 3_600_000;
/** Taken for the size of a blocked page that was asked for without a limit. */
const blockedLimit = 100;

interface PageDeps {
  readonly stream: ListEndpoint;
  readonly spool: Pick<Spool, 'room'>;
  readonly log: Log;
  readonly clock: Clock;
}

/** Asks for the pages of one stream. */
export class PageAsker {
  traits: ServerTraits = { limitMax: null, hasNext: false, endsWithNull: false };
  readonly #deps: PageDeps;
  /** When a limit above the learned one is tried again; with each refusal in twice the time. */
  #tryMoreAt: number;
  #tryMoreMs = tryMoreMsMin;

  constructor(deps: PageDeps) {
    this.#deps = deps;
    this.#tryMoreAt = deps.clock.monotonic() + tryMoreMsMin;
  }

  /**
   * The page at a place. Waits for room in the spool. A refusal is about `sort` where upstream
   * answers only without the sorting: from then on that is left out, and the list is another one.
   */
  async ask(requested: Requested, signal: AbortSignal): Promise<Answer<FetchedPage>> {
    const before = this.traits;
    const asked = await this.#ask(requested, signal);
    if (asked.outcome !== 'refused') return asked;
    // What is refused with any limit says nothing about limits.
    this.traits = before;
    if (!this.#maybeSort(requested, asked)) return asked;
    const unsorted = await this.#ask({ ...requested, unsorted: true }, signal);
    if (unsorted.outcome !== 'ok') {
      this.traits = before;
      return unsorted.outcome === 'refused' ? asked : unsorted;
    }
    const { traits } = this;
    // What refused everything for a moment may have ended in between.
    const again = await this.#ask(requested, signal);
    if (again.outcome !== 'refused') return again;
    this.traits = traits;
    const { message } = asked.cause;
    this.#deps.log.warn(
      'sorting_refused',
      'upstream refused the sort parameter; requesting pages without it',
      {
        error: message,
      },
    );
    return { ...asked, about: 'sort' };
  }

  /** Whether a refusal may mean the sorting; behind the first page it may mean the place. */
  #maybeSort({ place, unsorted }: Requested, { about, status }: Failure): boolean {
    if (this.#deps.stream.sorting.length === 0 || unsorted) return false;
    return about === 'sort' || (isFirst(place) && (status === 400 || status === 422));
  }

  async #ask(
    { place, overlap, isEnd, unsorted }: Requested,
    signal: AbortSignal,
  ): Promise<Answer<FetchedPage>> {
    let mayEnd = isEnd;
    let smaller: number | null = null;
    let blocked: Failure | null = null;
    for (;;) {
      const limit: number | null = smaller ?? this.#limit(place);
      await this.#deps.spool.room(signal);
      const query = { place, limit, ...(unsorted ? { unsorted } : {}) };
      const fetched = await fetchPage(this.#deps.stream, query, signal);
      if (fetched.outcome === 'blocked') {
        blocked = fetched;
        const { style } = withinWindow(this.#deps.stream.pagination);
        const isPaged = style === 'cursor' || style === 'offset';
        smaller = isPaged ? lessThan(limit ?? blockedLimit, overlap) : 0;
        // With another limit, pages of the same number are others.
        if (smaller === 0 && (place.by === 'cursor' || style === 'page')) return fetched;
        if (smaller === 0) return { outcome: 'ok', page: noRows(), hidden: fetched.cause };
        continue;
      }
      if (fetched.outcome === 'refused' && blocked !== null) {
        // The limits around a blocked row are no measure of what upstream takes, and a cursor may
        // hold for one limit only.
        smaller = fetched.about === 'limit' && limit !== null ? lessThan(limit, overlap) : 0;
        if (smaller > overlap) continue;
        return blocked;
      }
      if (fetched.outcome === 'refused' && fetched.about === 'limit') {
        if (this.#stepDown(limit, fetched.isNamed === true)) continue;
      }
      if (fetched.outcome !== 'ok') return fetched;
      const { page } = fetched;
      // What is missing from it may be its next cursor as well.
      if (page.partial !== null) return { outcome: 'ok', page, hidden: null };
      this.#noteTaken(limit);
      const hidden = smaller === overlap ? (blocked?.cause ?? null) : null;
      if (this.#hasNext(place, page) || (mayEnd && !this.traits.endsWithNull)) {
        return { outcome: 'ok', page, hidden };
      }
      if (this.traits.endsWithNull) return { outcome: 'retry', cause: this.#withoutNext() };
      mayEnd = true;
    }
  }

  /** Records a page that upstream is known to take; null: the parameter is left out. */
  get limit(): number | null {
    const asked = this.#deps.stream.pageLimit;
    const { limitMax } = this.traits;
    if (asked === null || limitMax === null) return asked;
    return limitMax === 0 ? null : Math.min(asked, limitMax);
  }

  #limit(place: ListPosition): number | null {
    const triesMore = isFirst(place) && this.#deps.clock.monotonic() >= this.#tryMoreAt;
    return triesMore ? this.#deps.stream.pageLimit : this.limit;
  }

  /** The next smaller limit, which is kept; one that upstream did not name is tried again. */
  #stepDown(limit: number | null, isNamed: boolean): boolean {
    const lower = limitSteps.find((step) => limit !== null && step < limit);
    if (lower === undefined) return false;
    this.#tryMoreAt = isNamed
      ? Number.POSITIVE_INFINITY
      : this.#deps.clock.monotonic() + this.#tryMoreMs;
    const known = this.traits.limitMax;
    // It was tried again, and is known.
    if (known !== null && limit !== null && limit > known) {
      this.#tryMoreMs = Math.min(tryMoreMsMax, 2 * this.#tryMoreMs);
      return true;
    }
    this.#deps.log.warn(
      'page_limit_lowered',
      'upstream refused the page limit; requesting smaller pages',
      {
        limit,
        instead: lower,
      },
    );
    this.traits = { ...this.traits, limitMax: lower };
    return true;
  }

  /** A limit that works again was refused for another reason. */
  #noteTaken(limit: number | null): void {
    const { limitMax } = this.traits;
    if (limitMax === null || limit === null || limit <= limitMax) return;
    this.#deps.log.info('page_limit_raised', 'upstream accepts a larger page limit again', {
      limit,
      instead_of: limitMax,
    });
    this.traits = { ...this.traits, limitMax: null };
    this.#tryMoreMs = tryMoreMsMin;
  }

  /**
   * Once a list has shown a next cursor, an answer without that key is doubtful: false. Where the
   * list was seen to end with null it is a fault; else it may be how this server ends a list, which
   * a second answer has to confirm.
   */
  #hasNext(place: ListPosition, { next }: Page): boolean {
    if (this.#deps.stream.pagination.style === 'none' || place.by === 'offset') return true;
    if (next === undefined) return !this.traits.hasNext;
    const endsWithNull = this.traits.endsWithNull || next === null;
    this.traits = { ...this.traits, hasNext: true, endsWithNull };
    return true;
  }

  #withoutNext(): ExportError {
    const what = 'the answer has no next cursor, which it had before';
    return new ExportError('upstream_nonsense', `reading ${this.#deps.stream.name}: ${what}`, {
      next: 'sluice requests it again. The checkpoint does not change.',
    });
  }
}

/**
 * The limit to try after one met a row that is not shown: half of what lies behind the overlap,
 * then the overlap alone, so that it is the row behind it. 0: there is no smaller one.
 */
function lessThan(limit: number, overlap: number): number {
  const behind = limit - overlap;
  if (behind > 1) return overlap + Math.floor(behind / 2);
  return behind === 1 ? overlap : 0;
}

/** What stands at a row that is not shown. */
export function noRows(): Page {
  const body = Buffer.from('[]');
  const { records } = scanBody(body, '', null);
  invariant(records !== null, 'an empty array is a list');
  return {
    body,
    records,
    next: undefined,
    total: null,
    isCounted: false,
    more: null,
    partial: null,
  };
}
