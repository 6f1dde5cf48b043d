// Signs that a list continues after a response in some other paging than the configured one: an address or cursor of a
// next page, a flag, a page count, a length. Names are those of common list APIs; a value under another name is
// ignored. The caller decides whether a sign matters at the end of the configured paging.

import { isObject, type Json, type Pagination } from '../contracts/index.ts';
import { valueAt } from '../tools/index.ts';
import { nextLinks } from './next-address.ts';
import { isFirst, type MoreSign, type PageQuery } from './page.ts';

/** A response and its context. */
interface Shown extends Pick<Pagination, 'items' | 'next' | 'style' | 'more'> {
  /** The body without its records. */
  readonly value: Json;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: PageQuery;
  /** Number of records in it. */
  readonly count: number;
}

/** One member of the envelope: its path, its name without punctuation, its value. */
type Member = readonly [path: string, name: string, value: Json];

/** Members that contain paging data. */
const holders =
  /^(links?|meta(data)?|pag(e|er|es|ing|ination)(info)?|cursors?|response(metadata)?)$/;
const nexts =
  /^(next|nextpage)(link|url|uri|href|cursor|token|marker|offset)?$|^(next)?continuationtoken$/;
const moreWhenTrue =
  /^has(more|next|nextpage)|^more(available|records|results|items)?$|^(is)?truncated$/;
const moreWhenFalse = /^(is)?last(page)?$/;
const pageCounts = /^(total|num|last)?pages?(count|total)?$/;
const pageNumbers = /^(current)?page(number|num|no|index)?$/;
const totals = /^(total|full)(count|results|records|items|elements|size|hits)?$|^(record)?count$/;
const offsets = /^(offset|skip|start|startindex|from)$/;

/** The sign that there is more; null: none. */
export function signOfMore(shown: Shown): MoreSign | null {
  const members = membersOf(shown.value, shown.items);
  return (
    linked(shown) ?? named(members, shown) ?? flagged(members, shown) ?? numbered(members, shown)
  );
}

/** The length of the list under any of its usual names; null: the response has none. */
export function totalOf(
  value: Json,
  path: string | null,
  headers: Shown['headers'],
): number | null {
  if (path === null) return null;
  const reported = numberOf(valueAt(value, path));
  if (reported !== null) return reported;
  const found = membersOf(value, '').flatMap(([, name, one]) =>
    totals.test(name) ? (numberOf(one) ?? []) : [],
  );
  const range = /\/(\d{1,15})$/.exec(headers['content-range'] ?? '');
  const header = headers['x-total-count'] ?? headers['x-total'] ?? range?.[1];
  return found.length > 0 ? Math.max(...found) : numberOf(header);
}

function isCount(value: Json): boolean {
  return numberOf(value) !== null;
}

function numberOf(value: Json | undefined): number | null {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : null;
}

/** The members of the envelope, those beside the records, and those of paging containers. */
function membersOf(value: Json, items: string): readonly Member[] {
  const beside = items.includes('.') ? items.slice(0, items.lastIndexOf('.')) : '';
  const members: Member[] = [];
  const add = (object: Json | undefined, path: string, depth: number) => {
    if (!isObject(object)) return;
    for (const [key, inner] of Object.entries(object)) {
      if (inner === undefined) continue;
      const at = path === '' ? key : `${path}.${key}`;
      const name = key
        .replace(/^@odata\./, '')
        .replace(/[^a-z]/gi, '')
        .toLowerCase();
      members.push([at, name, inner]);
      if (depth > 0 && holders.test(name)) add(inner, at, depth - 1);
    }
  };
  add(value, '', 2);
  if (beside !== '') add(valueAt(value, beside), beside, 0);
  return members;
}

/** A link to a next page, and headers with page numbers. */
function linked({ headers, style, count }: Shown): MoreSign | null {
  const [address] = style === 'link' ? [] : nextLinks(headers.link);
  if (address !== undefined) {
    return { sign: 'Link: rel="next"', likely: offsetIn(address, count) ?? { style: 'link' } };
  }
  const page = headers['x-next-page'] ?? '';
  return /^[1-9]\d*$/.test(page) ? { sign: 'X-Next-Page', likely: { style: 'page' } } : null;
}

function named(members: readonly Member[], { style, next, count }: Shown): MoreSign | null {
  const isFollowed = style === 'cursor' || style === 'shown' || style === 'next_url';
  for (const [path, name, value] of members) {
    if (!nexts.test(name) || (isFollowed && path === next)) continue;
    const target = isObject(value) ? value.href : value;
    if (typeof target === 'number' && target > 0) {
      const likely = name === 'nextoffset' ? 'offset' : 'page';
      return { sign: path, likely: { style: likely } };
    }
    if (typeof target !== 'string' || target === '') continue;
    if (/^([a-z][a-z0-9+.-]*:\/\/|[/?])/i.test(target)) {
      return { sign: path, likely: offsetIn(target, count) ?? { style: 'next_url', next: path } };
    }
    return { sign: path, likely: { style: 'cursor', next: path } };
  }
  return null;
}

/** If the next page's address counts rows, so do offsets. */
function offsetIn(address: string, count: number): MoreSign['likely'] {
  if (!URL.canParse(address, 'http://upstream')) return null;
  for (const [name, value] of new URL(address, 'http://upstream').searchParams) {
    if (offsets.test(name.toLowerCase()) && count > 0 && Number(value) === count) {
      return { style: 'offset', offset_param: name };
    }
  }
  return null;
}

/** The flag that the config names; undefined: the response does not have it. */
export function flagAt(value: Json, path: string | undefined): boolean | undefined {
  const flag = path === undefined ? undefined : valueAt(value, path);
  if (typeof flag === 'string') return { true: true, false: false }[flag.toLowerCase()];
  return typeof flag === 'boolean' || typeof flag === 'number' ? Boolean(flag) : undefined;
}

function flagged(members: readonly Member[], { value, more }: Shown): MoreSign | null {
  const isNamed = flagAt(value, more) === true;
  const flag = isNamed
    ? [more ?? '']
    : members.find(([, name, value]) =>
        value === true ? moreWhenTrue.test(name) : value === false && moreWhenFalse.test(name),
      );
  if (flag === undefined) return null;
  const has = (names: RegExp) =>
    members.some(([, name, value]) => names.test(name) && isCount(value));
  const style = has(offsets) ? 'offset' : has(pageNumbers) ? 'page' : null;
  return { sign: flag[0], likely: style === null ? null : { style } };
}

/** Pages may be counted from 1 or from 0: the last but one may be the last. */
function numbered(members: readonly Member[], { query: { position } }: Shown): MoreSign | null {
  const find = (names: RegExp) =>
    members.find(([path, name, value]) => names.test(name) && isCount(value) && path !== '');
  const current = find(pageNumbers);
  const pages = members.find(
    (one) => one !== current && pageCounts.test(one[1]) && one[1] !== 'page' && isCount(one[2]),
  );
  const count = numberOf(pages?.[2]);
  if (pages === undefined || count === null) return null;
  const first = isFirst(position);
  const at = numberOf(current?.[2]) ?? (first ? 1 : count);
  const left = count - at;
  const isMore = left >= 2 || (left === 1 && first && at === 1);
  return isMore ? { sign: pages[0], likely: { style: 'page' } } : null;
}
