// When too few records of a pair match, what does not match is held instead of delivered: it would
// be delivered twice, in two forms. What must stay true: a record is held only where the other side
// was read past it; so a side whose other side cannot be read delivers when its patience is over.

import type { PairSide } from '../contracts/succession.ts';
import type { PairRows } from './pair-rows.ts';
import { comparedSince, type PairState } from './pair-state.ts';
import { momentsOf } from './receipts.ts';
import { parsedObject } from './requests.ts';
import type { Statements } from './statements.ts';

/** So many of the first comparable records say whether the two sides fit. */
const firstMax = 50;
/** Fewer say nothing. */
const firstMin = 10;
/** Later, of the last hour's records, more than so many and this share must not match. */
const unmatchedMax = 10;
const unmatchedShareMax = 0.3;
const hourMs = 3_600_000;

/** Up to when all that these streams' upstream showed is stored, epoch milliseconds; 0: never. */
export function reachedBy(statements: Statements, streams: readonly string[]): number {
  const read = "SELECT facts FROM note WHERE kind = 'reached' AND name = ?";
  const moments = streams.map((stream) => {
    const facts = parsedObject(statements.row(read, stream)?.facts);
    return momentsOf(facts).at(-1)?.at ?? 0;
  });
  return moments.length === 0 ? 0 : Math.min(...moments);
}

/**
 * The brake from now on; null: nothing is held. `before`: records of this side that were stored
 * before then have waited long enough, and the other side was read past them.
 */
export function brakeOf(
  state: PairState,
  rows: PairRows,
  how: { readonly side: PairSide; readonly before: number; readonly now: number },
): PairState['brake'] {
  if (areFirstFit(state, rows, how) && isHourFit(state, rows, how)) return null;
  const { examples } = rows.alone(state.id, how.side, {
    ...{ from: 0, before: how.before },
    since: comparedSince(state, how.side),
  });
  return state.brake ?? { since: how.now, examples };
}

function areFirstFit(
  state: PairState,
  rows: PairRows,
  { side, before }: { readonly side: PairSide; readonly before: number },
): boolean {
  if (state.isProven) return true;
  const { compared, matched } = rows.first(state.id, side, {
    ...{ before, max: firstMax },
    since: comparedSince(state, side),
  });
  const isFit = compared < firstMin || matched * 2 >= compared;
  state.isProven = isFit && compared >= firstMax;
  return isFit;
}

function isHourFit(
  state: PairState,
  rows: PairRows,
  { side, before, now }: { readonly side: PairSide; readonly before: number; readonly now: number },
): boolean {
  const { count } = rows.alone(state.id, side, {
    ...{ from: now - hourMs, before },
    since: comparedSince(state, side),
  });
  const hours = Math.floor(now / hourMs) - state.hour;
  const { matchedInHour, matchedInHourBefore } = state;
  const recent = [matchedInHour + matchedInHourBefore, matchedInHour];
  const matched = recent[hours] ?? 0;
  return count <= unmatchedMax || count <= unmatchedShareMax * (count + matched);
}
