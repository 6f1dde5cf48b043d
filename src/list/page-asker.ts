// Requests one page until a complete one arrives: with the largest limit that upstream accepts, again if the response
// lacks a key that it had before, around a hidden row, and without a sorting that upstream rejects. Facts learned about
// the server go into the checkpoint with the next commit.

import {
  type Answer,
  type Clock,
  ExportError,
  type Failure,
  invariant,
  type ListEndpoint,
  type Log,
  type Spool,
} from '../contracts/index.ts';
import { scanBody } from '../tools/index.ts';
import type { ListCheckpoint } from './checkpoint.ts';
import { fetchPage } from './fetch-page.ts';
import { type FetchedPage, isFirst, type ListPosition, type Page, withinWindow } from './page.ts';

/** Facts learned about the server. */
export type ServerTraits = Pick<ListCheckpoint['server'], 'limitMax' | 'hasNext' | 'endsWithNull'>;

/** One request for a page. */
interface Requested {
  readonly position: ListPosition;
  /** Rows of the page that were read before. */
  readonly overlap: number;
  /** The list ended at this position at the last request. */
  readonly isEnd: boolean;
  /** Omit the sorting, which upstream rejects. */
  readonly unsorted: boolean;
}

/** Page limits to try in turn if upstream rejects one; 0: the parameter is omitted. */
const limitSteps = [100, 50, 25, 0];
/**
 * A larger limit is tried again after this time, at the start of the list, because a cursor may be bound to a limit.
 */
const tryMoreMsMin = 60_000;
const tryMoreMsMax = 3_600_000;
/** Assumed size of a blocked page that was requested without a limit. */
const blockedLimit = 100;

interface PageDeps {
  readonly stream: ListEndpoint;
  readonly spool: Pick<Spool, 'room'>;
  readonly log: Log;
  readonly clock: Clock;
}

/** Requests the pages of one stream. */
export class PageAsker {
  traits: ServerTraits = { limitMax: null, hasNext: false, endsWithNull: false };
  readonly #deps: PageDeps;
  /** When a limit above the learned one is tried again; each rejection doubles the wait. */
  #tryMoreAt: number;
  #tryMoreMs = tryMoreMsMin;
  #askedAt: number | null = null;

  constructor(deps: PageDeps) {
    this.#deps = deps;
    this.#tryMoreAt = deps.clock.monotonic() + tryMoreMsMin;
  }

  /** When the last request was sent, by the monotonic clock; null: it waits for room in the spool. */
  get askedAt(): number | null {
    return this.#askedAt;
  }

  /**
   * The page at a position. Waits for room in the spool. A rejection is about `sort` if upstream answers only without
   * the sorting: the sorting is then omitted from now on, and the list counts as another one.
   */
  async ask(requested: Requested, signal: AbortSignal): Promise<Answer<FetchedPage>> {
    const before = this.traits;
    const asked = await this.#ask(requested, signal);
    if (asked.outcome !== 'refused') return asked;
    // If every limit is rejected, the rejection says nothing about limits.
    this.traits = before;
    if (!this.#maybeSort(requested, asked)) return asked;
    const unsorted = await this.#ask({ ...requested, unsorted: true }, signal);
    if (unsorted.outcome !== 'ok') {
      this.traits = before;
      return unsorted.outcome === 'refused' ? asked : unsorted;
    }
    const { traits } = this;
    // The cause may have been temporary, so try once more with the sorting.
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

  /** Whether the sorting may be the cause of a rejection; after the first page the position may be. */
  #maybeSort({ position, unsorted }: Requested, { about, status }: Failure): boolean {
    if (this.#deps.stream.sorting.length === 0 || unsorted) return false;
    return about === 'sort' || (isFirst(position) && (status === 400 || status === 422));
  }

  async #ask(
    { position, overlap, isEnd, unsorted }: Requested,
    signal: AbortSignal,
  ): Promise<Answer<FetchedPage>> {
    let mayEnd = isEnd;
    let smaller: number | null = null;
    let blocked: Failure | null = null;
    for (;;) {
      const limit: number | null = smaller ?? this.#limit(position);
      this.#askedAt = null;
      await this.#deps.spool.room(signal);
      this.#askedAt = this.#deps.clock.monotonic();
      const query = { position, limit, ...(unsorted ? { unsorted } : {}) };
      const fetched = await fetchPage(this.#deps.stream, query, signal);
      if (fetched.outcome === 'blocked') {
        blocked = fetched;
        const { style } = withinWindow(this.#deps.stream.pagination);
        const isPaged = style === 'cursor' || style === 'offset';
        smaller = isPaged ? lessThan(limit ?? blockedLimit, overlap) : 0;
        // With another limit, page numbers mean other pages.
        if (smaller === 0 && (position.by === 'cursor' || style === 'page')) return fetched;
        if (smaller === 0) return { outcome: 'ok', page: noRows(), hidden: fetched.cause };
        continue;
      }
      if (fetched.outcome === 'refused' && blocked !== null) {
        // Limits around a blocked row say nothing about the limits that upstream accepts, and a cursor may be bound to
        // one limit.
        smaller = fetched.about === 'limit' && limit !== null ? lessThan(limit, overlap) : 0;
        if (smaller > overlap) continue;
        return blocked;
      }
      if (fetched.outcome === 'refused' && fetched.about === 'limit') {
        if (this.#stepDown(limit, fetched.isNamed === true)) continue;
      }
      if (fetched.outcome !== 'ok') return fetched;
      const { page } = fetched;
      // The next cursor may be among the missing data.
      if (page.partial !== null) return { outcome: 'ok', page, hidden: null };
      this.#noteTaken(limit);
      const hidden = smaller === overlap ? (blocked?.cause ?? null) : null;
      if (this.#hasNext(position, page) || (mayEnd && !this.traits.endsWithNull)) {
        return { outcome: 'ok', page, hidden };
      }
      if (this.traits.endsWithNull) return { outcome: 'retry', cause: this.#withoutNext() };
      mayEnd = true;
    }
  }

  /** Records per page that upstream is known to accept; null: the parameter is omitted. */
  get limit(): number | null {
    const asked = this.#deps.stream.pageLimit;
    const { limitMax } = this.traits;
    if (asked === null || limitMax === null) return asked;
    return limitMax === 0 ? null : Math.min(asked, limitMax);
  }

  #limit(position: ListPosition): number | null {
    const triesMore = isFirst(position) && this.#deps.clock.monotonic() >= this.#tryMoreAt;
    return triesMore ? this.#deps.stream.pageLimit : this.limit;
  }

  /** Steps down to the next smaller limit and keeps it; a limit that upstream did not name is tried again later. */
  #stepDown(limit: number | null, isNamed: boolean): boolean {
    const lower = limitSteps.find((step) => limit !== null && step < limit);
    if (lower === undefined) return false;
    this.#tryMoreAt = isNamed
      ? Number.POSITIVE_INFINITY
      : this.#deps.clock.monotonic() + this.#tryMoreMs;
    const known = this.traits.limitMax;
    // The limit was tried again and is still rejected.
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

  /** A limit that works again had been rejected for another reason. */
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
   * False if the response is doubtful: the list has shown a next cursor before, and this response lacks the key. If the
   * list was seen to end with null, the missing key is an error. Else this server may end a list so, and a second
   * response must confirm it.
   */
  #hasNext(position: ListPosition, { next }: Page): boolean {
    if (this.#deps.stream.pagination.style === 'none' || position.by === 'offset') return true;
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
 * The limit to try after one hit a hidden row: half of the rows after the overlap, then the overlap alone, so that the
 * hidden row is the next one. 0: there is no smaller limit.
 */
function lessThan(limit: number, overlap: number): number {
  const behind = limit - overlap;
  if (behind > 1) return overlap + Math.floor(behind / 2);
  return behind === 1 ? overlap : 0;
}

/** The empty page that stands for a hidden row. */
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
