// When the mismatch brake may be on, and when it has to be: counted from the records of each side.

import type { PairModel, Reached, Row } from './model.ts';

/** The brake as it is reported. */
export interface Brake {
  readonly isOn: boolean;
}

/** How it is counted. */
interface Counted {
  readonly now: number;
  readonly reached: Reached;
  readonly patienceMs: number;
  readonly overlapMs: number;
}

const hourMs = 3_600_000;
const firstMax = 50;
/** Of fewer nothing is concluded. */
const firstMin = 10;

/** Fewer than half of the first comparable records match, or too many of the last hour's do not. */
export function mayBrake(model: PairModel, how: Counted): boolean {
  const compared = comparable(model, how);
  if (views(model, compared, how).some(isMostlyAlone)) return true;
  const hourAgo = how.now - hourMs;
  const recent = compared.filter(({ at, matchedAt }) => matchedAt === null && at >= hourAgo).length;
  const before = how.now - how.patienceMs;
  const matched = compared.filter(
    (row) => (row.matchedAt ?? 0) > hourAgo && isSettled(row, before),
  );
  return recent > 10 && recent > 0.3 * (recent + matched.length);
}

/** Records are due that would be delivered twice: most of the first ones, which are many, do not match. */
export function mustBrake(model: PairModel, how: Counted): boolean {
  const before = lastCompared(model, how);
  const isDue = model.waiting.some(({ at }) => at <= before);
  const all = views(model, comparable(model, how), how);
  return isDue && all.every((rows) => rows.length >= firstMin && isMostlyAlone(rows));
}

/**
 * The ways to count the first records: in the order in which either side has shown them, or the side
 * that does not deliver; and with or without matches whose patience is not over, which may have to wait
 * for a record that is more equal.
 */
function views(
  { silent }: PairModel,
  compared: readonly Row[],
  how: Counted,
): readonly (readonly Row[])[] {
  const before = how.now - how.patienceMs;
  const shownAt = ({ side, at, matchedAt }: Row) => (side === silent ? at : (matchedAt ?? at));
  const isAlone = ({ matchedAt }: Row) => Number(matchedAt === null);
  // Records of one page may stand in any order.
  const [most, fewest] = [-1, 1].map((sign) =>
    compared.toSorted((a, b) => shownAt(a) - shownAt(b) || sign * (isAlone(a) - isAlone(b))),
  ) as [Row[], Row[]];
  return [compared, most, fewest].flatMap((rows) => [
    rows,
    rows.filter((row) => isSettled(row, before)),
  ]);
}

function isSettled({ at, matchedAt }: Row, before: number): boolean {
  return matchedAt === null || Math.max(at, matchedAt) < before;
}

function isMostlyAlone(rows: readonly Row[]): boolean {
  const first = rows.slice(0, firstMax);
  return first.filter(({ matchedAt }) => matchedAt === null).length * 2 > first.length;
}

/** Records of the side that does not deliver that match, or that the other side was read past. */
function comparable(model: PairModel, how: Counted): readonly Row[] {
  const { silent, begunAt } = model;
  const before = lastCompared(model, how);
  const since = silent === 'old' ? (begunAt ?? 0) - how.overlapMs : Number.NEGATIVE_INFINITY;
  return model.rows.filter(
    ({ side, matchedAt, at, happenedAt }) =>
      matchedAt !== null || (side === silent && at < before && happenedAt >= since),
  );
}

/** Records of before have waited long enough, and the side that delivers was read past them. */
function lastCompared({ delivering }: PairModel, { now, reached, patienceMs }: Counted): number {
  return Math.min(reached[delivering], now - patienceMs);
}
