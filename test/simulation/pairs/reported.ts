// The report of a pair for an operator, compared with the ledger's own counts.

import type { PairReport } from '../../../src/contracts/succession.ts';
import type { PairModel, Reached, Row } from './model.ts';
import type { Side } from './traits.ts';

/** How it is counted. */
interface Counted {
  readonly now: number;
  readonly reached: Reached;
  readonly patienceMs: number;
  readonly overlapMs: number;
  /** Names of the streams of both sides. */
  readonly streams: readonly string[];
  /** All records have ids. */
  readonly hasIds: boolean;
}

/** For so long every record has to match before a pair is ready. */
const provenMs = 24 * 3_600_000;

/** What of a report is wrong. */
export function flawsOf(got: PairReport, model: PairModel, how: Counted): readonly string[] {
  const waiting = model.waiting.length;
  return [
    ...aloneFlaws('old', got, aloneOn('old', model, how), how),
    ...aloneFlaws('new', got, aloneOn('new', model, how), how),
    ...(got.waiting === waiting ? [] : [`${got.waiting} wait in place of ${waiting}`]),
    ...(got.phase === 'ready' ? readyFlaws(model, how) : []),
  ];
}

function aloneFlaws(
  side: Side,
  { onlyOld, onlyNew }: PairReport,
  alone: readonly Row[],
  { hasIds }: Counted,
): readonly string[] {
  const { count, examples } = side === 'old' ? onlyOld : onlyNew;
  const keys = alone.map(({ key }) => key).join(' ');
  const ids = new Set(alone.map(({ id }) => id));
  const others = examples.filter((id) => !ids.has(id));
  const isShort = hasIds && examples.length < Math.min(3, count);
  return [
    ...(count === alone.length
      ? []
      : [`only_${side} is ${count} in place of ${alone.length}: ${keys}`]),
    ...(others.length === 0 ? [] : [`only_${side} names ${others.join(', ')}`]),
    ...(isShort ? [`only_${side} has ${examples.length} examples of ${count}`] : []),
  ];
}

function readyFlaws(model: PairModel, how: Counted): readonly string[] {
  const windowMs = Math.min(provenMs, how.overlapMs);
  const isMatched = ({ matchedAt }: Row) => matchedAt !== null;
  const recent = [...aloneOn('old', model, how), ...aloneOn('new', model, how)].find(
    ({ at }) => how.now - at < windowMs,
  );
  const silent = how.streams.filter((stream) => {
    const of = model.rows.filter((row) => row.stream === stream);
    // A record is kept under the stream that has shown it first.
    const mayMatch = model.rows.some((row) => isMatched(row) && row.stream !== stream);
    return of.length > 0 && !of.some(isMatched) && !mayMatch;
  });
  return [
    ...(model.rows.some(isMatched) ? [] : ['ready without one match']),
    ...(recent === undefined ? [] : [`ready, and ${recent.key} does not match`]),
    ...silent.map((stream) => `ready, and nothing of ${stream} matches`),
  ];
}

/** Records that one side only has shown, where the other one was read past them. */
function aloneOn(side: Side, model: PairModel, how: Counted): readonly Row[] {
  const { now, reached, patienceMs, overlapMs } = how;
  const since = (model.begunAt ?? 0) - overlapMs;
  const before = Math.min(now - patienceMs, reached[side === 'old' ? 'new' : 'old']);
  return model.rows.filter(
    (row) =>
      row.side === side &&
      row.matchedAt === null &&
      row.at < before &&
      (side === 'new' || row.happenedAt >= since),
  );
}
