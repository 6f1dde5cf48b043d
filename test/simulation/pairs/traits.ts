// The kind of pair that a seed stands for: two APIs over one ledger, the view of each API, the faults of either, and
// the operator's actions. Drawn once, before anything happens. Invariant: a world promises no more than the rules of a
// succession do. If those cannot distinguish two records, or see that they are the same, such worlds are not drawn.

import type { Random } from '../../../src/sandbox/random.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** A side of the pair. */
export type Side = 'old' | 'new';

/** How one API shows the ledger. */
export interface SideTraits {
  readonly paging: 'cursor' | 'offset' | 'page';
  readonly order: 'oldest_first' | 'newest_first';
  /** Where a record stands: where it arrived, or by its time. */
  readonly sorted: 'arrival' | 'time';
  readonly pageRows: number;
  /** How long after it happened a record is shown at most. */
  readonly lagMs: number;
  /** How long a record is shown; null: for ever. */
  readonly retentionMs: number | null;
  /** A stream for each company; else one for all. */
  readonly perCompany: boolean;
  /** Share of records that this side alone shows. */
  readonly alone: number;
  /** Chance at each request that it fails. */
  readonly trouble: number;
  /** It answers nothing for some hours, so often. */
  readonly outages: number;
}

/** One pair. */
export interface Traits {
  readonly ids: 'all' | 'some' | 'none';
  /** The ids of the two sides have nothing in common. */
  readonly unrelated: boolean;
  /** Each company counts its ids by itself. */
  readonly shared: boolean;
  /** Records without id may be the same in all that they say. */
  readonly twins: boolean;
  /** Records come again with the same id and another content. */
  readonly versions: boolean;
  /** How far the new API's clock is ahead of the old one's. */
  readonly aheadMs: number;
  readonly oldTimes: 'iso' | 'epoch_ms' | 'epoch_s';
  /** Times are whole seconds, so that records share them. */
  readonly coarse: boolean;
  readonly companies: number;
  /** A company that only the new API knows. */
  readonly stranger: boolean;
  readonly oldShowsCompany: boolean;
  /** The id has another name in the old records than in the new ones. */
  readonly idMoved: boolean;
  /** A field has another name, which `fields` maps. */
  readonly fieldMoved: boolean;
  /** A field whose value differs: left out by `ignore`, or reported; null: there is none. */
  readonly differs: 'ignored' | 'reported' | null;
  readonly old: SideTraits;
  readonly new: SideTraits;
  /** Records that happened long before they are shown. */
  readonly late: 'never' | 'soon' | 'very';
  readonly patienceMs: number;
  readonly overlapMs: number;
  /** How many polls of the old source come before the pairing. */
  readonly alonePolls: number;
  readonly history: number;
  readonly burst: number;
  readonly crash: number;
  /** Chance at each step that a commit fails. */
  readonly commitFails: number;
  /** A side that dies for good, and how. */
  readonly dies: { readonly side: Side; readonly how: 401 | 404 | 410 | 500 } | null;
  /** Chance after each poll that the operator moves the pair or moves it back. */
  readonly turns: number;
  /** Chance that it is done with `--force`. */
  readonly forced: number;
}

/** Draws a pair. */
export function traitsOf(random: Random): Traits {
  const ids = random.pick<Traits['ids']>(['all', 'all', 'all', 'some', 'none']);
  const isNamed = ids === 'all';
  const unrelated = isNamed && random.chance(0.06);
  const companies = random.pick([1, 1, 2, 3]);
  const perCompany = { old: random.chance(0.25), new: random.chance(0.5) };
  const oldShowsCompany = perCompany.old || random.chance(0.7);
  // Content is all that says whose a record is, or which one.
  const stranger = perCompany.new && random.chance(0.2);
  const isOneCompany = perCompany.new && companies === 1 && !stranger;
  const needsContent = !isNamed || (!oldShowsCompany && !isOneCompany);
  const ahead = [0, 0, 0, -7 * minuteMs, -90_000, 2 * minuteMs, 9 * minuteMs];
  const oldTimes = random.pick<Traits['oldTimes']>(['iso', 'iso', 'epoch_ms', 'epoch_s']);
  const differs = random.pick<Traits['differs']>([null, null, 'ignored', 'reported']);
  const patienceMs = random.pick([2 * minuteMs, 10 * minuteMs, hourMs, 6 * hourMs]);
  const side = (of: Side) => sideOf(random, { isNamed, patienceMs, perCompany: perCompany[of] });
  const alonePolls = random.pick([0, 0, 2, 6]);
  // What was delivered before the pairing is known by its id alone, and by its stream's company.
  const mayShare = alonePolls === 0 || perCompany.old;
  const aheadMs = needsContent ? 0 : random.pick(ahead);
  const isEqual = aheadMs === 0 && oldTimes !== 'epoch_s' && differs !== 'reported';
  // What differs in all records is no version, and of before the pairing no content is known.
  const versions = isNamed && !unrelated && isEqual && alonePolls === 0 && random.chance(0.4);
  return {
    ...{ ids, unrelated, companies, stranger, oldShowsCompany, versions },
    shared: mayShare && isNamed && !unrelated && companies > 1 && random.chance(0.4),
    twins: !isNamed && random.chance(0.4),
    aheadMs,
    oldTimes: needsContent && oldTimes === 'epoch_s' ? 'iso' : oldTimes,
    idMoved: isNamed && random.chance(0.2),
    fieldMoved: random.chance(0.3),
    differs: needsContent && differs === 'reported' ? 'ignored' : differs,
    ...{ old: side('old'), new: side('new') },
    late: random.pick(['never', 'never', 'soon', 'very']),
    patienceMs,
    // So long another version may turn out to be the same.
    overlapMs: versions
      ? 72 * hourMs
      : random.pick([minuteMs, 30 * minuteMs, 3 * hourMs, 24 * hourMs]),
    alonePolls,
    history: random.pick([0, 3, 20, 40]),
    burst: random.pick([1, 3, 8]),
    coarse: random.chance(0.3),
    crash: random.pick([0, 0, 0.01, 0.04]),
    commitFails: random.pick([0, 0, 0.02]),
    dies: random.chance(0.25)
      ? { side: random.pick<Side>(['old', 'old', 'new']), how: random.pick([401, 404, 410, 500]) }
      : null,
    turns: random.pick([0, 0, 0.1, 0.3]),
    forced: random.pick([0, 0.5, 1]),
  };
}

function sideOf(
  random: Random,
  of: { readonly isNamed: boolean; readonly patienceMs: number; readonly perCompany: boolean },
): SideTraits {
  const { isNamed, patienceMs, perCompany } = of;
  // Records without id are known by where they stand, so that rows must not move.
  const paging = isNamed
    ? random.pick<SideTraits['paging']>(['cursor', 'offset', 'page'])
    : 'cursor';
  const lags = [0, 0, 30_000, 5 * minuteMs, Math.floor(patienceMs / 2), 2 * patienceMs];
  return {
    ...{ paging, perCompany },
    order: random.pick(['oldest_first', 'newest_first']),
    sorted: random.pick(['arrival', 'arrival', 'time']),
    pageRows: isNamed ? random.pick([3, 8, 20, 40]) : random.pick([12, 30]),
    lagMs: random.pick(lags),
    retentionMs: isNamed && random.chance(0.2) ? random.pick([30 * minuteMs, 5 * hourMs]) : null,
    alone: random.pick([0, 0, 0.05, 0.15, 0.5]),
    trouble: random.pick([0, 0, 0.05, 0.2]),
    outages: random.pick([0, 0, 0.05, 0.15]),
  };
}
