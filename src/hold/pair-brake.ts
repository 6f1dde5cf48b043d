// If too few records of a pair match, unmatched records are withheld: they might be delivered
// twice, in two forms. Invariants: the brake withholds a record only if the other side was read
// past it, and patience waits for that only while the other side is readable; so if the other side
// is unreadable, a side delivers when its patience is over.

import type { PairSide } from '../contracts/index.ts';
import type { Statements } from './database.ts';
import type { PairRows } from './pair-rows.ts';
import { comparedSince, otherSide, type PairState } from './pair-state.ts';
import { momentsOf } from './receipts.ts';
import { parsedObject } from './requests.ts';

/** This many of the first comparable records decide whether the two sides fit. */
const firstMax = 50;
/** Fewer decide nothing. */
const firstMin = 10;
/** Later, of the last hour's records: more than this number and this share must be unmatched. */
const unmatchedMax = 10;
const unmatchedShareMax = 0.3;
const hourMs = 3_600_000;

/** Up to when all records of these streams' upstream are stored, epoch milliseconds; 0: never. */
export function reachedBy(statements: Statements, streams: readonly string[]): number {
  const read = "SELECT facts FROM note WHERE kind = 'reached' AND name = ?";
  const moments = streams.map((stream) => {
    const facts = parsedObject(statements.row(read, stream)?.facts);
    return momentsOf(facts).at(-1)?.at ?? 0;
  });
  return moments.length === 0 ? 0 : Math.min(...moments);
}

/** A record waits at most for this many polls of the other side if patience is shorter. */
const pollsMin = 3;
/** Delay of the note about how far a side was read. */
const notedMs = 2_000;

/**
 * Records of a side stored up to the returned time have waited long enough. A record waits for its
 * patience. If patience is less than three polls of the other side, and that side's last poll
 * succeeded, the record waits until that side was read past it, for three polls at most.
 */
export function dueUntil(
  statements: Statements,
  { plan, isRetired }: PairState,
  { side, now }: { readonly side: PairSide; readonly now: number },
): number {
  const patient = now - plan.patienceMs;
  const other = otherSide(side);
  const streams = plan.streams[other];
  const everyMs = plan.everyMs?.[other] ?? 0;
  if (isRetired || everyMs === 0) return patient;
  if (streams.some((stream) => isFailing(statements, stream))) return patient;
  const pollMs = everyMs + Math.max(...streams.map((stream) => readMs(statements, stream)));
  const late = now - Math.max(plan.patienceMs, pollsMin * pollMs + notedMs);
  return Math.max(late, Math.min(patient, reachedBy(statements, streams) - 1));
}

/** True where the last poll of a stream failed. */
function isFailing(statements: Statements, stream: string): boolean {
  const noted = "SELECT facts FROM note WHERE kind = 'stream' AND name = ?";
  return parsedObject(statements.row(noted, stream)?.facts)?.error != null;
}

/** Duration of a stream's last read to its tail. */
function readMs(statements: Statements, stream: string): number {
  const read = "SELECT facts, at FROM note WHERE kind = 'reached' AND name = ?";
  const row = statements.row(read, stream);
  const asked = momentsOf(parsedObject(row?.facts)).at(-1)?.at;
  return asked === undefined ? 0 : Math.max(0, Number(row?.at) - asked);
}

/**
 * The new state of the brake; null: nothing is withheld. `before`: records of this side stored
 * before that time have waited long enough, and the other side was read past them.
 */
export function brakeOf(
  state: PairState,
  rows: PairRows,
  how: { readonly side: PairSide; readonly before: number; readonly now: number },
): PairState['brake'] {
  if (areFirstFit(state, rows, how) && isHourFit(state, rows, how)) return null;
  const { examples } = rows.alone(state, how.side, {
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
  const { compared, matched } = rows.first(state, side, {
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
  const { count } = rows.alone(state, side, {
    ...{ from: now - hourMs, before },
    since: comparedSince(state, side),
  });
  const hours = Math.floor(now / hourMs) - state.hour;
  const { matchedInHour, matchedInHourBefore } = state;
  const recent = [matchedInHour + matchedInHourBefore, matchedInHour];
  const matched = recent[hours] ?? 0;
  return count <= unmatchedMax || count <= unmatchedShareMax * (count + matched);
}
