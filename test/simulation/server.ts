// A server of the kind that a seed stands for: cuts pages from the list, issues cursors and accepts them again or not,
// and has its faults. Its responses are those of a source: whole pages, or the reason that there is none.

import type { Answer } from '../../src/contracts/answer.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Body, UpstreamRequest } from '../../src/contracts/upstream.ts';
import { isFirst, type PageQuery, type TimeWindow } from '../../src/list/page.ts';
import type { Random } from '../../src/sandbox/random.ts';
import { okOf } from '../support/made-up-list.ts';
import { askedFor, type Dress, envelopeOf, isNumbered } from './dress.ts';
import type { ModelList, ModelRecord } from './list.ts';
import type { Traits } from './traits.ts';

/** What a cursor says; written into its text. */
interface CursorText {
  /** The position after which it continues, or the number of rows before it. */
  readonly after: number | null;
  /** The moment whose rows it shows; null: now. */
  readonly asOf: number | null;
  readonly issuedAt: number | null;
  /** Empty pages before it, so that each has a cursor of its own. */
  readonly empty: number;
  /** Distinguishes cursors that lead on for ever. */
  readonly nonce: number;
}

const start: CursorText = { after: null, asOf: null, issuedAt: null, empty: 0, nonce: 0 };

/** One server. */
export class ModelServer {
  /** While it is true, answers go wrong now and then. */
  troubled = true;
  /** The record that is refused with 451. */
  blocked: ModelRecord | null = null;
  readonly #traits: Traits;
  readonly #list: ModelList;
  readonly #random: Random;
  readonly #dress: Dress;
  #query: PageQuery & { readonly window: TimeWindow | null } = {
    position: { by: 'cursor', cursor: null },
    limit: null,
    window: null,
  };
  #firstNext: string | null = null;
  #outageUntil = 0;
  #withoutNext = false;
  #nonce = 0;

  constructor(traits: Traits & { readonly dress: Dress }, list: ModelList, random: Random) {
    this.#dress = traits.dress;
    this.#traits = traits;
    this.#list = list;
    this.#random = random;
  }

  /** The answer to one request at a moment. */
  answer(request: UpstreamRequest, now: number): Answer<Body> {
    const query = askedFor(request, this.#dress);
    this.#query = query;
    const trouble = this.#trouble(query, now);
    if (trouble !== null) return trouble;
    const { limitMax, limitOver, limit: usual } = this.#traits;
    const asked = query.limit ?? usual;
    if (limitMax !== null && limitOver === 'refuse' && query.limit !== null && asked > limitMax) {
      // Only some name it.
      return refused(400, isFirst(query.position) ? undefined : 'limit');
    }
    const limit = Math.min(asked, limitMax ?? asked);
    const { position: place } = query;
    if (place.by === 'offset' && isNumbered(this.#dress)) {
      return this.#numberedPage(place.offset, limit, now);
    }
    if (place.by === 'offset') return this.#offsetPage(place.offset, limit, now);
    return this.#cursorPage(place.cursor, limit, now);
  }

  #offsetPage(offset: number, limit: number, now: number): Answer<Body> {
    const rows = this.#rows(now);
    const count = this.#sizeOf(limit);
    const page = rows.slice(offset, offset + count);
    if (this.#isBlocked(page)) return { outcome: 'blocked', cause: failure('451') };
    const { total } = this.#traits;
    const reported = total === 'none' ? null : total === 'exact' ? rows.length : 7;
    return this.#answerOf(page, undefined, reported);
  }

  #numberedPage(number: number, limit: number, now: number): Answer<Body> {
    const rows = this.#rows(now);
    const { beyond } = this.#dress;
    const last = Math.max(0, Math.ceil(rows.length / limit) - 1);
    if (beyond === 'refusal' && number > last) return refused(404);
    const from = (beyond === 'last' ? Math.min(number, last) : number) * limit;
    const page = rows.slice(from, from + limit);
    if (this.#isBlocked(page)) return { outcome: 'blocked', cause: failure('451') };
    const total = this.#traits.total === 'exact' ? rows.length : null;
    const flag = beyond === 'refusal' ? { has_more: number < last } : {};
    return this.#answerOf(page, undefined, total, flag);
  }

  /** The visible part of the requested window. */
  #rows(now: number, asOf?: number): readonly ModelRecord[] {
    const { window } = this.#query;
    const rows = this.#list.rows(now, asOf);
    if (window === null) return rows;
    const { from, to } = window;
    return rows.filter(({ happenedAt: at }) => at >= from && at < (to ?? 0));
  }

  #answerOf(
    rows: readonly ModelRecord[],
    next: string | null | undefined,
    total?: number | null,
    flag: object = {},
  ): Answer<Body> {
    const { members, headers } = envelopeOf(next, this.#query, this.#dress);
    const length = total === undefined ? {} : { total };
    const answer = this.#dress.lines
      ? this.#linesOf(rows)
      : answerOf(rows, { ...members, ...length, ...flag });
    return answer.outcome === 'ok' ? { ...answer, headers } : answer;
  }

  /** The last one is cut, now and then. */
  #linesOf(rows: readonly ModelRecord[]): Answer<Body> {
    const lines = rows.map(({ text }) => `${text}\n`).join('');
    return okOf(this.#chance(0.3) ? lines.slice(0, -2) : lines);
  }

  #cursorPage(text: string | null, limit: number, now: number): Answer<Body> {
    const { cursor: traits, paging, empty, repeat } = this.#traits;
    const cursor = this.#read(text, now);
    if (cursor === null) return refused(Number(traits.refusal));
    const asOf = cursor.asOf ?? now;
    const rows = this.#rows(now, asOf);
    if (paging === 'none') {
      return this.#isBlocked(rows)
        ? { outcome: 'blocked', cause: failure('451') }
        : this.#answerOf(rows, undefined);
    }
    const from = this.#startOf(cursor, rows);
    const again = from === 0 ? 0 : Math.min(repeat, limit - 1, from);
    const isEmpty = this.#random.chance(empty) && cursor.empty < 3;
    const count = isEmpty ? 0 : this.#sizeOf(limit);
    const isAgain = traits.end === 'again' && from === rows.length;
    const fetched = rows.slice(from - again, from - again + Math.max(count, again + 1));
    const last = rows.slice(-Math.min(limit, traits.again));
    const page = isEmpty ? [] : isAgain ? last : fetched;
    if (this.#isBlocked(page)) return { outcome: 'blocked', cause: failure('451') };
    const to = isEmpty || isAgain ? from : from - again + page.length;
    const next = this.#next({ text, cursor, to, rows, isEmpty, now, asOf });
    if (text === null && typeof next === 'string') this.#firstNext = next;
    // The cursor that was sent would mean the end.
    const mayLoop = this.#traits.ids === 'all' && ![text, null].includes(this.#firstNext);
    const looped = mayLoop && typeof next === 'string' && this.#chance(0.3);
    return this.#answerOf(page, looped ? (this.#firstNext ?? next) : next);
  }

  #next(page: {
    readonly text: string | null;
    readonly cursor: CursorText;
    readonly to: number;
    readonly rows: readonly ModelRecord[];
    readonly isEmpty: boolean;
    readonly now: number;
    readonly asOf: number;
  }): string | null | undefined {
    const { text, cursor, to, rows, isEmpty, now, asOf } = page;
    const { by, bound, end, lifetimeMs } = this.#traits.cursor;
    const more = to < rows.length;
    const moved = to > this.#startOf(cursor, rows);
    const isEndless = end === 'endless' || end === 'again';
    const isReported = end !== 'same' && end !== 'empty';
    const goesOn = more || isEmpty || isEndless || (!isReported && moved);
    if (!goesOn) {
      if (end === 'missing') return undefined;
      if (end === 'same' && text !== null) return text;
      if (end !== 'same') return null;
    }
    // A server that ends its lists like this, or marks it twice, can end one early without a sign.
    this.#withoutNext = end !== 'missing' && !this.#withoutNext && this.#chance(0.3);
    if (this.#withoutNext) return undefined;
    const last = rows[to - 1]?.place ?? null;
    const after = by === 'row' ? to : isEmpty || !moved ? cursor.after : last;
    return JSON.stringify({
      after,
      asOf: bound === 'live' ? null : bound === 'walk' || isEmpty ? asOf : now,
      issuedAt: lifetimeMs === null ? null : now,
      empty: isEmpty ? cursor.empty + 1 : 0,
      nonce: isEndless ? ++this.#nonce : 0,
    } satisfies CursorText);
  }

  #startOf({ after }: CursorText, rows: readonly ModelRecord[]): number {
    if (after === null) return 0;
    if (this.#traits.cursor.by === 'row') return Math.min(after, rows.length);
    const first = rows.findIndex(({ place }) => place > after);
    return first < 0 ? rows.length : first;
  }

  #read(text: string | null, now: number): CursorText | null {
    if (text === null) return start;
    const cursor = JSON.parse(text) as CursorText;
    const { lifetimeMs, refusal } = this.#traits.cursor;
    const dead = lifetimeMs !== null && now - (cursor.issuedAt ?? now) > lifetimeMs;
    // Without ids the rows that come again could be others that look the same.
    const isReset = this.#traits.ids === 'all' && this.#chance(0.2);
    if (!dead) return isReset ? start : cursor;
    return refusal === 'ignored' ? start : null;
  }

  #sizeOf(limit: number): number {
    return this.#random.chance(this.#traits.short) ? 1 + this.#random.below(limit) : limit;
  }

  #isBlocked(rows: readonly ModelRecord[]): boolean {
    return this.blocked !== null && rows.includes(this.blocked);
  }

  #chance(share: number): boolean {
    return this.troubled && this.#random.chance(this.#traits.trouble * share);
  }

  #trouble({ position: place }: PageQuery, now: number): Answer<Body> | null {
    if (!this.troubled) return null;
    if (this.#chance(0.1)) this.#outageUntil = now + this.#random.below(3 * 3_600_000);
    if (now < this.#outageUntil || this.#chance(1)) {
      return { outcome: 'retry', cause: failure('500') };
    }
    if (this.#chance(0.1)) return { outcome: 'denied', status: 403, cause: failure('403') };
    const isFollowing = place.by === 'cursor' && place.cursor !== null;
    if (isFollowing && this.#chance(0.5)) return refused(400);
    return null;
  }
}

function failure(what: string): ExportError {
  return new ExportError('upstream_unreachable', `simulating: ${what}`, { next: 'nothing' });
}

function refused(status: number, field?: string): Answer<Body> {
  const cause = failure(`${status} about ${field ?? 'something'}`);
  return { outcome: 'refused', status, ...(field === undefined ? {} : { field }), cause };
}

function answerOf(rows: readonly ModelRecord[], envelope: object): Answer<Body> {
  const rest = JSON.stringify(envelope).slice(1);
  const data = `"data":[${rows.map(({ text }) => text).join(',')}]`;
  return okOf(`{${data}${rest === '}' ? '' : ','}${rest}`);
}
