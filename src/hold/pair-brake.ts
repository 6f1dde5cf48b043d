// When too few records of a pair match, what does not match is held instead of delivered: it would
// be delivered twice, in two forms. What must stay true: a record is held only where the other side
// was read past it; so a side whose other side cannot be read delivers when its patience is over.

import type { PairSide } from '../contracts/succession.ts';
import type { PairRows } from './pair-rows.ts';
import type { PairState } from './pair-state.ts';
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

/** The brake from now on; null: nothing is held. */
export function brakeOf(
  state: PairState,
  rows: PairRows,
  {
    side,
    reached,
    now,
    due,
  }: {
    readonly side: PairSide;
    readonly reached: number;
    readonly now: number;
    readonly due: boolean;
  },
): PairState['brake'] {
  if (!due && state.brake === null) return null;
  const isHeld =
    !areFirstFit(state, rows, { side, reached }) || !isHourFit(state, rows, { side, reached, now });
  if (!isHeld) return null;
  const { examples } = rows.alone(state.id, side, { from: 0, before: reached });
  return state.brake ?? { since: now, examples };
}

function areFirstFit(
  state: PairState,
  rows: PairRows,
  { side, reached }: { readonly side: PairSide; readonly reached: number },
): boolean {
  if (state.isProven) return true;
  const { compared, matched } = rows.first(state.id, side, { reached, max: firstMax });
  const isFit = compared < firstMin || matched * 2 >= compared;
  state.isProven = isFit && compared >= firstMax;
  return isFit;
}

function isHourFit(
  state: PairState,
  rows: PairRows,
  {
    side,
    reached,
    now,
  }: { readonly side: PairSide; readonly reached: number; readonly now: number },
): boolean {
  const before = Math.min(reached, now - state.plan.patienceMs);
  const { count } = rows.alone(state.id, side, { from: now - hourMs, before });
  const hours = Math.floor(now / hourMs) - state.hour;
  const { matchedInHour, matchedInHourBefore } = state;
  const recent = [matchedInHour + matchedInHourBefore, matchedInHour];
  const matched = recent[hours] ?? 0;
  return count <= unmatchedMax || count <= unmatchedShareMax * (count + matched);
}
