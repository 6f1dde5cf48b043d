// The kind of server and reader that a seed stands for. Each trait is one that the upstream documents leave open, and
// all of them may come together: a list that grows at both ends, without ids, paged by row numbers whose cursors
// expire. Drawn once, before anything happens, so that a seed can be described in one line.

import type { Pagination } from '../../src/contracts/source.ts';
import type { Random } from '../../src/sandbox/random.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** One kind of server, and how its list is read. */
export interface Traits {
  readonly paging: Pagination['style'];
  readonly order: 'oldest_first' | 'newest_first' | 'both_ends';
  /** The config pins the order. */
  readonly pinned: boolean;
  readonly ids: 'all' | 'some' | 'none';
  /** Records of the list share a few ids. */
  readonly shared: boolean;
  /** Records without an id may be the same, byte for byte. */
  readonly twins: boolean;
  readonly times: 'ms' | 's' | 'none';
  readonly cursor: CursorTraits;
  /** The reader's parameters, and the server's use of them. */
  readonly limit: number;
  readonly limitMax: number | null;
  readonly limitOver: 'clamp' | 'refuse';
  /** Share of pages that are shorter than requested, and of empty ones before the end. */
  readonly short: number;
  readonly empty: number;
  /** Rows of the page before that come again. */
  readonly repeat: number;
  readonly total: 'exact' | 'none' | 'wrong';
  /** How long each answer takes; where that is long, a whole list is read but once a day. */
  readonly answerMs: number;
  /** How late a record may show after it happened; beyond `soon`, a rewind does not reach. */
  readonly late: 'never' | 'soon' | 'very';
  /** How long a record is shown; null: for ever. */
  readonly retentionMs: number | null;
  readonly everyMs: number;
  readonly history: number;
  /** Records that come at a time. */
  readonly burst: number;
  /** Chance at each request of each trouble. */
  readonly trouble: number;
  /** Chance at each step that the process is killed. */
  readonly crash: number;
  /** One row that is refused with 451, until all is well again where the list has cursors. */
  readonly blocked: boolean;
}

/** How cursors behave. */
export interface CursorTraits {
  /** An index in the order, or a number of rows. */
  readonly by: 'place' | 'row';
  /** Rows that a cursor shows: all, those when its walk began, or those when it was issued. */
  readonly bound: 'live' | 'walk' | 'issue';
  /**
   * How the end is marked; `same`: by the cursor that was sent, `empty`: by an empty page. `endless` and `again`: not
   * at all, there is a new cursor for ever, to empty pages or to the last rows again.
   */
  readonly end: 'null' | 'missing' | 'same' | 'empty' | 'endless' | 'again';
  /** How many of the last rows come again. */
  readonly again: number;
  readonly lifetimeMs: number | null;
  /** Statuses for a dead cursor, or the first page instead. */
  readonly refusal: 400 | 404 | 409 | 410 | 422 | 'ignored';
}

/** Draws a server. */
export function traitsOf(random: Random): Traits {
  const isPlain = random.chance(0.25);
  const traits = anyTraitsOf(random);
  return isPlain ? { ...traits, ...plainTraitsOf(random, traits) } : traits;
}

/**
 * The traits of a plain server: new records are required at once there, so that a record lost in a kill, a rejection or
 * at the edge of a page is not found by a later full scan before it is missed.
 */
function plainTraitsOf(random: Random, { order, cursor }: Traits): Partial<Traits> {
  return {
    order: order === 'both_ends' ? 'oldest_first' : order,
    cursor: { ...cursor, by: 'place', bound: 'live', lifetimeMs: null },
    // Late ones are found by full scans alone if these come each hour.
    ...random.pick([
      { answerMs: 0, late: 'never' as const },
      { answerMs: 6_000, late: 'soon' as const },
    ]),
    retentionMs: null,
    trouble: 0,
    crash: random.pick([0, 0.02, 0.1]),
    burst: random.pick([2, 6]),
  };
}

function anyTraitsOf(random: Random): Traits {
  const paging = random.pick<Pagination['style']>([
    'cursor',
    'cursor',
    'cursor',
    'cursor',
    'offset',
    'offset',
    'none',
  ]);
  const order = random.pick<Traits['order']>(['oldest_first', 'newest_first', 'both_ends']);
  const ids = random.pick<Traits['ids']>(['all', 'all', 'all', 'some', 'none']);
  const retentionMs = random.chance(0.3)
    ? random.pick([20 * minuteMs, 3 * hourMs, 30 * hourMs])
    : null;
  const late = random.pick<Traits['late']>(['never', 'never', 'soon', 'very']);
  // Where rows move between pages, only what is on them shows by how many: that takes several that differ.
  const unmarked = paging === 'offset' && ids !== 'all';
  const limit = unmarked ? random.pick([5, 8, 12]) : random.pick([1, 2, 3, 5, 8, 12]);
  // A page of nothing but twins looks known, and two of them look like a cursor loop.
  const mayTwin = ids !== 'all' && retentionMs === null && !unmarked && limit >= 8;
  const twins = mayTwin && random.chance(0.5);
  const times = random.pick<Traits['times']>(['ms', 'ms', 's', 'none']);
  const cursor = cursorTraitsOf(random, ids === 'all');
  // A page that is cut where it was not before leads on with a cursor that is not bound to what was there before.
  const mayShorten = !unmarked && !twins && cursor.bound !== 'issue';
  return {
    paging,
    order,
    pinned: order !== 'both_ends' && random.chance(0.3),
    ids,
    twins,
    times,
    cursor,
    limit,
    limitMax: !unmarked && !twins && random.chance(0.2) ? random.pick([1, 2, 4]) : null,
    limitOver: random.pick(['clamp', 'refuse']),
    short: mayShorten ? random.pick([0, 0, 0, 0.3]) : 0,
    empty: paging === 'cursor' ? random.pick([0, 0, 0, 0.2]) : 0,
    repeat: paging === 'cursor' && ids === 'all' ? random.pick([0, 0, 0, 1, 2]) : 0,
    total: random.pick(['exact', 'none', 'wrong']),
    answerMs: 0,
    late,
    retentionMs,
    everyMs: random.pick([minuteMs, 5 * minuteMs]),
    history: random.pick([0, 1, 5, 20, 40]),
    burst: random.pick([1, 2, 6]),
    trouble: random.pick([0, 0, 0.02, 0.08]),
    crash: random.pick([0, 0, 0.01, 0.05]),
    blocked: paging !== 'none' && random.chance(0.08),
    shared: ids === 'all' && random.chance(0.15),
  };
}

function cursorTraitsOf(random: Random, named: boolean): CursorTraits {
  // Without ids the last row again could be another one that looks the same.
  const again: readonly CursorTraits['end'][] = named ? ['again'] : [];
  return {
    by: named ? random.pick(['place', 'place', 'place', 'row']) : 'place',
    bound: random.pick(['live', 'live', 'live', 'walk', 'issue']),
    end: random.pick(['null', 'null', 'missing', 'same', 'empty', 'endless', ...again]),
    again: random.pick([1, 2, 3, 8]),
    lifetimeMs: random.chance(0.25) ? random.pick([3 * minuteMs, 40 * minuteMs, 5 * hourMs]) : null,
    refusal: random.pick([400, 404, 409, 410, 422, 'ignored', 'ignored']),
  };
}
