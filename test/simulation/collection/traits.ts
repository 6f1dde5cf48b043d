// The kind of collection and server of a seed, and the rules of its reading. Each trait is one that the upstream
// documents leave open, or a night that any server may have.

import type { CollectionReading } from '../../../src/contracts/definition.ts';
import type { Random } from '../../../src/sandbox/random.ts';

const secondMs = 1_000;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** One kind of collection, and how it is read. */
export interface Traits {
  readonly paging: 'cursor' | 'offset' | 'none';
  /** The config says how it is paged; else the answers show it. */
  readonly declared: boolean;
  /** The list shows a part, and each entity is requested by its id. */
  readonly detail: boolean;
  /** Entities have parts, each an entity of its own. */
  readonly parts: boolean;
  /** Elements of the list have ids. */
  readonly named: boolean;
  /** An entity that changes moves to the list's front. */
  readonly moves: boolean;
  readonly pageRows: number;
  /** Share of pages that are shorter, and of empty ones before the end. */
  readonly short: number;
  readonly empty: number;
  readonly end: 'null' | 'missing';
  readonly total: 'exact' | 'none' | 'capped';
  /** An answer shows what stood up to this long ago. */
  readonly lagMs: number;
  readonly rules: CollectionReading;
  readonly everyMs: number;
  readonly history: number;
  /** Changes at a time. */
  readonly burst: number;
  /** Share of updates that are taken back soon. */
  readonly flaps: number;
  /** One time many are deleted at once. */
  readonly bulk: boolean;
  /** Chance at each request of each trouble. */
  readonly trouble: number;
  /** Chance at each step that the process is killed. */
  readonly crash: number;
  /** The clock is set, now and then. */
  readonly jumps: boolean;
  /** The company is denied or gone for some hours. */
  readonly scope: 403 | 404 | null;
  /** For less than the settle time the list says that it is shorter than it is. */
  readonly lie: boolean;
  /** An entity is not listed for a long time, and there by its id. */
  readonly hidden: boolean;
  /** An entity that cannot be read by its id. */
  readonly denied: boolean;
  /** One row that is refused with 451. */
  readonly blocked: boolean;
  /** Over night each entity has a field more. */
  readonly schema: boolean;
  /** The checkpoint is lost once, with the entities or without. */
  readonly loses: 'checkpoint' | 'all' | null;
}

/** Draws a world. */
export function traitsOf(random: Random): Traits {
  const isPlain = random.chance(0.3);
  const traits = anyTraitsOf(random);
  // Forgotten content is found at once there, before a later reading repairs it.
  const plain = { trouble: 0, lagMs: 0, jumps: false, lie: false, scope: null, hidden: false };
  return isPlain ? { ...traits, ...plain, denied: false, blocked: false } : traits;
}

function anyTraitsOf(random: Random): Traits {
  const paging = random.pick<Traits['paging']>(['cursor', 'offset', 'offset', 'none']);
  const declared = random.chance(0.4);
  // The next rows are requested with one of those before, and so a page has more than one.
  const isLong = paging === 'offset';
  const moves = random.chance(0.2);
  const detail = random.chance(0.45);
  const named = detail || random.chance(0.85);
  const jumps = random.chance(0.15);
  const rules = rulesOf(random);
  const { settleMs, confirmAfterMs, removalsAfter } = rules;
  // Changes older than both rules look back are reported by their appearance.
  const mayLag = named && !jumps && settleMs > 0 && confirmAfterMs > 0 && removalsAfter > 1;
  const mayLie = !jumps && settleMs > 0 && removalsAfter > 1;
  return {
    paging,
    declared,
    detail,
    parts: detail && random.chance(0.6),
    named,
    moves: named && moves,
    pageRows: random.pick(isLong ? [2, 3, 5, 20] : [1, 2, 3, 5, 20]),
    short: isLong ? 0 : random.pick([0, 0, 0.3]),
    // What shows itself shows little by an empty page.
    empty: paging === 'cursor' && declared ? random.pick([0, 0, 0.2]) : 0,
    end: random.pick(['null', 'null', 'missing']),
    // Where rows are counted and move, only their number shows that one was passed by.
    total: random.pick(
      paging !== 'offset'
        ? ['exact', 'none', 'capped']
        : moves
          ? ['exact']
          : ['exact', 'exact', 'capped'],
    ),
    lagMs: mayLag ? random.pick([0, 0, 5 * secondMs, 25 * secondMs]) : 0,
    rules,
    everyMs: random.pick([minuteMs, 5 * minuteMs, hourMs]),
    history: random.pick([0, 1, 4, 12, 25]),
    burst: random.pick([1, 2, 5]),
    flaps: random.pick([0, 0, 0.3]),
    bulk: random.chance(0.25),
    trouble: random.pick([0, 0, 0.02, 0.08]),
    crash: random.pick([0, 0, 0.01, 0.05]),
    jumps,
    scope: random.pick([null, null, null, 403, 404]),
    lie: mayLie && random.chance(0.3),
    hidden: detail && random.chance(0.25),
    denied: detail && random.chance(0.1),
    blocked: paging === 'offset' && random.chance(0.08),
    schema: named && random.chance(0.25),
    loses: random.pick([null, null, null, null, 'checkpoint', 'all']),
  };
}

function rulesOf(random: Random): CollectionReading {
  return {
    confirmAfterMs: random.pick([0, 30 * secondMs, 30 * secondMs]),
    settleMs: random.pick([0, 10 * minuteMs, 10 * minuteMs]),
    removals: true,
    removalsAfter: random.pick([1, 2, 2, 3]),
    brake: random.pick([
      { share: 0.3, count: 10 },
      { share: 0.3, count: 2 },
    ]),
    baseline: random.pick(['summary', 'full']),
    sweepMs: 30 * minuteMs,
    ignore: ['updated_at'],
    unordered: ['tags'],
  };
}
