// The stored state of a pair without its records: plan, phase and counts, as one row of JSON that
// changes in the transaction of the counted records.

import type { PairAlone, PairPhase, PairPlan, PairSide } from '../contracts/index.ts';
import type { Row } from './database.ts';
import { parsedObject } from './requests.ts';

/** Counts of one stream of a pair. */
export interface PairStream {
  records: number;
  matched: number;
  /** Blocks of identities up to this one were stored before the pairing; null: all of them. */
  before: number | null;
}

/** The row of a pair. Times are epoch milliseconds. */
export interface PairState {
  /** The pair's number, used by its records. */
  readonly id: number;
  plan: PairPlan;
  phase: PairPhase;
  begunAt: number;
  cutOverAt: number | null;
  /** No config has it any more: nothing is compared. */
  isRetired: boolean;
  /** Number of phase changes: each change is one event. */
  turns: number;
  matched: number;
  known: number;
  streams: Record<string, PairStream>;
  differing: { count: number; examples: string[] };
  fields: Record<string, { count: number; types: [string, string][] }>;
  onlyOldFields: Record<string, number>;
  onlyNewFields: Record<string, number>;
  /** Entities of the old side that the new side's first full scan did not show, by stream. */
  missing: Record<string, PairAlone>;
  apart: { count: number; examples: string[] };
  /** The latest time differences of matched records: new minus old, milliseconds. */
  differences: number[];
  /** Matched records by hour, in this hour and the one before. */
  hour: number;
  matchedInHour: number;
  matchedInHourBefore: number;
  /** Enough of the first records of the side that does not deliver have matched. */
  isProven: boolean;
  brake: { since: number; examples: string[] } | null;
}

/** A new pair. */
export function freshPair(id: number, plan: PairPlan, now: number): PairState {
  return {
    ...{ id, plan, phase: 'shadow', begunAt: now, cutOverAt: null, isRetired: false, turns: 0 },
    ...{ matched: 0, known: 0, streams: {}, differing: { count: 0, examples: [] }, fields: {} },
    ...{
      onlyOldFields: {},
      onlyNewFields: {},
      missing: {},
      apart: { count: 0, examples: [] },
      differences: [],
    },
    ...{ hour: 0, matchedInHour: 0, matchedInHourBefore: 0, isProven: false, brake: null },
  };
}

/** The state in a row of the table of pairs; null if no such version has written it. */
export function pairStateOf({ id, body }: Row): PairState | null {
  const parsed = parsedObject(body) as unknown as Omit<PairState, 'id'> | null;
  if (parsed === null || typeof parsed.plan?.successor !== 'string') return null;
  return { ...freshPair(Number(id), parsed.plan, 0), ...parsed, id: Number(id) };
}

/** The state as stored. */
export function pairBody({ id: _, ...body }: PairState): string {
  return JSON.stringify(body);
}

/**
 * From when records of a side are compared, epoch milliseconds: the successor's first walk begins
 * `overlap` before the pairing, so it does not show older records of the old side.
 */
export function comparedSince({ begunAt, plan }: PairState, side: PairSide): number {
  return side === 'old' ? begunAt - plan.overlapMs : Number.MIN_SAFE_INTEGER;
}

/** The side that delivers in a phase. */
export function deliveringSide(phase: PairPhase): PairSide {
  return phase === 'shadow' ? 'old' : 'new';
}

/** The other one. */
export function otherSide(side: PairSide): PairSide {
  return side === 'old' ? 'new' : 'old';
}

/** Maximum stored time differences, and the minimum for an estimate of the clock difference. */
const [differencesMax, differencesMin] = [31, 5];

/** Stores a time difference. */
export function noteDifference(state: PairState, difference: number): void {
  state.differences.push(difference);
  if (state.differences.length > differencesMax) state.differences.shift();
}

/**
 * How far the new side's times are ahead of the old side's, milliseconds; null: too few were
 * compared.
 */
export function aheadMs({ differences }: PairState): number | null {
  if (differences.length < differencesMin) return null;
  return differences.toSorted((a, b) => a - b)[differences.length >> 1] ?? null;
}

const hourMs = 3_600_000;

/** Counts a match. */
export function noteMatch(state: PairState, now: number): void {
  state.matched += 1;
  const hour = Math.floor(now / hourMs);
  if (hour !== state.hour) {
    state.matchedInHourBefore = hour === state.hour + 1 ? state.matchedInHour : 0;
    state.matchedInHour = 0;
    state.hour = hour;
  }
  state.matchedInHour += 1;
}

/** The counts of a stream. */
export function streamOf(state: PairState, stream: string): PairStream {
  const known = state.streams[stream];
  if (known !== undefined) return known;
  const counts = { records: 0, matched: 0, before: null };
  state.streams[stream] = counts;
  return counts;
}

/** Adds an example, up to three. */
export function addExample(counted: { count: number; examples: string[] }, id: string): void {
  counted.count += 1;
  if (counted.examples.length < examplesMax && id !== '') counted.examples.push(id);
}

/** Examples in a report. */
export const examplesMax = 3;
