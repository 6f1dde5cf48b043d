// Cuts pages out of lists in the documents' two styles: cursor (`limit`, `cursor`) and offset (`limit`, `offset`,
// `total`). In any order, a list is a row of keys that grows only at its ends. So one walk serves all orders, and a
// page requested again after growth begins at the same record. Pages of final records are cached, so large tests do not
// wait for the sandbox.
import type { Api, SandboxPage, SandboxRefusal } from './answers.ts';
import type { ListBehaviour } from './behaviour.ts';
import type { Cursors } from './cursors.ts';
import type { PagedList } from './lists.ts';
import type { PageCache } from './page-cache.ts';

/** A page, or the rejection. */
export type Paged =
  | { readonly outcome: 'page'; readonly page: SandboxPage }
  | { readonly outcome: 'refused'; readonly failure: SandboxRefusal };

/** The parameters of a page. */
export interface PageCut {
  readonly api: Api;
  readonly query: URLSearchParams;
  readonly behaviour: ListBehaviour;
  readonly cursors: Cursors;
  readonly cache: PageCache;
  readonly limitMax: number;
  readonly nowMs: number;
}

const LIMIT_DEFAULT = 100;

/** A page of a cursor list: `next_cursor`, and for services also `limit` and `prev_cursor`. */
export function cursorPage(list: PagedList, cut: PageCut): Paged {
  const limit = limitOf(cut);
  if (typeof limit !== 'number') return { outcome: 'refused', failure: limit };
  const { api, behaviour, cursors } = cut;
  const keys = behaviour.order === undefined ? list.keys : undefined;
  const place = placeOf(list, cut, keys);
  if (place === null) return { outcome: 'refused', failure: badCursor(cut) };
  const { after, page, bound } = place;
  const end = bound ?? list.size();
  const view: View = { list, order: behaviour.order ?? 'oldest_first', first: list.first(), end };
  const empty = behaviour.empty_every !== undefined && page % behaviour.empty_every === 0;
  const repeat = after === null ? 0 : Math.min(behaviour.repeat_last ?? 0, limit - 1);
  const cutting = { limit: empty ? 0 : limit, from: after === null ? null : after - repeat };
  const stretch = walk(view, cutting);
  const blocked = blockedBy(stretch.indices, behaviour);
  if (blocked !== null) return { outcome: 'refused', failure: blocked };

  const frozen = behaviour.frozen_tail === true ? end : null;
  const issuedS = Math.floor(cut.nowMs / 1000);
  const write = (key: number | null, pageNumber: number) => {
    const after = key === null || keys === undefined ? key : (keys[key] ?? -1);
    return JSON.stringify(
      cursors.write(list.path, { after, page: pageNumber, bound: frozen, issuedS }),
    );
  };
  const last =
    stretch.lastKey === null || (after ?? stretch.lastKey) > stretch.lastKey
      ? after
      : stretch.lastKey;
  const fields = new Map<string, string>();
  if (api === 'services') fields.set('limit', String(limit));
  const tail = behaviour.tail ?? 'null';
  // A tail that did not move keeps its cursor, because equal cursors have equal text.
  if (empty || stretch.more) fields.set('next_cursor', write(last, page + 1));
  else if (tail === 'null') fields.set('next_cursor', 'null');
  else if (tail === 'same') {
    const asked = cut.query.get('cursor');
    const unmoved = asked !== null && last === after;
    fields.set('next_cursor', unmoved ? JSON.stringify(asked) : write(last, page + 1));
  }
  if (api === 'services') {
    const before = page <= 1 || after === null ? null : after - limit;
    fields.set('prev_cursor', before === null ? 'null' : write(before, page - 1));
  }
  const startCursor = () => write(null, 1);
  return { outcome: 'page', page: pageOf(stretch.indices, { list, cut, fields, startCursor }) };
}

/** A page of an offset list: `limit` and `offset` as used, and `total`. */
export function offsetPage(list: PagedList, cut: PageCut): Paged {
  const limit = limitOf(cut);
  if (typeof limit !== 'number') return { outcome: 'refused', failure: limit };
  const { behaviour, query } = cut;
  const offset = wholeNumber(query.get('offset') ?? '0');
  if (offset === null) return refused('offset', 'must be a whole number, 0 or more', 400);
  if (behaviour.offset_max !== undefined && offset > behaviour.offset_max) {
    return refused('offset', `must not exceed ${behaviour.offset_max}`, 400);
  }
  const [first, end] = [list.first(), list.size()];
  const view: View = { list, order: orderOf(query, behaviour), first, end };
  const { indices, total } = slice(view, offset, limit);
  const blocked = blockedBy(indices, behaviour);
  if (blocked !== null) return { outcome: 'refused', failure: blocked };
  const fields = new Map(Object.entries({ limit, offset, total }).map(([k, v]) => [k, String(v)]));
  const startCursor = () => 'null';
  return { outcome: 'page', page: pageOf(indices, { list, cut, fields, startCursor }) };
}

interface View {
  readonly list: PagedList;
  readonly order: NonNullable<ListBehaviour['order']>;
  readonly first: number;
  /** One more than the highest index seen. */
  readonly end: number;
}

interface Stretch {
  readonly indices: readonly number[];
  readonly lastKey: number | null;
  readonly more: boolean;
}

// Keys: oldest first counts up from the first index; newest first counts up from minus the newest; mixed has the odd
// records newest first on the left, then the even ones oldest first.
function keysOf({ order, first, end }: View): readonly [first: number, last: number] {
  if (order === 'oldest_first') return [first, end - 1];
  return order === 'newest_first' ? [1 - end, -first] : [1 - end, end - 1];
}

function indexAt({ list, order, first }: View, key: number): number | null {
  const index = Math.abs(key);
  if (order === 'mixed' && key < 0 !== (index % 2 === 1)) return null;
  return index >= first && list.visible(index) ? index : null;
}

function walk(
  view: View,
  cutting: { readonly limit: number; readonly from: number | null },
): Stretch {
  const [firstKey, lastPossible] = keysOf(view);
  const indices: number[] = [];
  let lastKey: number | null = null;
  for (
    let key = Math.max(firstKey, cutting.from === null ? firstKey : cutting.from + 1);
    key <= lastPossible;
    key += 1
  ) {
    const index = indexAt(view, key);
    if (index === null) continue;
    if (indices.length >= cutting.limit) return { indices, lastKey, more: true };
    indices.push(index);
    lastKey = key;
  }
  return { indices, lastKey, more: false };
}

function slice(
  view: View,
  offset: number,
  limit: number,
): { indices: readonly number[]; total: number } {
  const [firstKey, lastKey] = keysOf(view);
  const indices: number[] = [];
  if (view.list.dense() && view.order !== 'mixed') {
    const total = lastKey - firstKey + 1;
    const to = Math.min(total, offset + limit);
    for (let at = offset; at < to; at += 1) indices.push(Math.abs(firstKey + at));
    return { indices, total };
  }
  let total = 0;
  for (let key = firstKey; key <= lastKey; key += 1) {
    const index = indexAt(view, key);
    if (index === null) continue;
    if (total >= offset && indices.length < limit) indices.push(index);
    total += 1;
  }
  return { indices, total };
}

function pageOf(
  indices: readonly number[],
  whole: { readonly list: PagedList; readonly cut: PageCut } & Pick<
    SandboxPage,
    'fields' | 'startCursor'
  >,
): SandboxPage {
  const { list, cut, fields, startCursor } = whole;
  const items = () => indices.map((index) => list.textAt(index));
  return {
    fields,
    startCursor,
    items,
    joined: () => cut.cache.joined(list, indices, () => Buffer.from(items().join(','))),
  };
}

function placeOf(
  list: PagedList,
  { query, cursors, behaviour, nowMs }: PageCut,
  keys: readonly number[] | undefined,
) {
  const start = { after: null, page: 1, bound: null };
  const cursor = query.get('cursor');
  if (cursor === null) return start;
  const place = cursors.read(list.path, cursor);
  const lifetimeS = behaviour.cursor_lifetime_s ?? Number.POSITIVE_INFINITY;
  const usable = place !== null && nowMs / 1000 < place.issuedS + lifetimeS;
  if (usable && place.after !== null && keys !== undefined) {
    const { after } = place;
    const next = keys.findIndex((key) => key > after);
    return { ...place, after: (next === -1 ? keys.length : next) - 1 };
  }
  if (usable) return place;
  return behaviour.bad_cursor === 'ignored' ? start : null;
}

function badCursor({ api, behaviour }: PageCut): SandboxRefusal {
  const requested = behaviour.bad_cursor;
  const status = typeof requested === 'number' ? requested : api === 'unified' ? 422 : 400;
  return { status, message: 'cursor is invalid or has expired', field: 'cursor' };
}

function limitOf({ api, behaviour, limitMax, query }: PageCut): number | SandboxRefusal {
  const max = Math.min(limitMax, behaviour.limit_max ?? limitMax);
  const status = api === 'unified' ? 422 : 400;
  const asked = query.get('limit');
  if (asked === null) return Math.min(LIMIT_DEFAULT, max);
  const limit = wholeNumber(asked);
  if (limit === null || limit === 0) {
    return { status, message: 'limit must be a whole number, 1 or more', field: 'limit' };
  }
  if (limit > max && behaviour.limit_over === 'refuse') {
    return { status, message: `limit must not exceed ${max}`, field: 'limit' };
  }
  return Math.min(limit, max);
}

function orderOf(query: URLSearchParams, behaviour: ListBehaviour): View['order'] {
  const asked = query.get('order');
  if (asked === 'DESC') return 'newest_first';
  return asked === 'ASC' ? 'oldest_first' : (behaviour.order ?? 'oldest_first');
}

function blockedBy(
  indices: readonly number[],
  { blocked_index: blocked }: ListBehaviour,
): SandboxRefusal | null {
  if (blocked === undefined || !indices.includes(blocked)) return null;
  return { status: 451, message: 'the page holds content that may not be served' };
}

function refused(field: string, message: string, status: number): Paged {
  return { outcome: 'refused', failure: { status, message: `${field} ${message}`, field } };
}

function wholeNumber(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}
