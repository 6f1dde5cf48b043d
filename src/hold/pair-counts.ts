// Counts of matched records: totals, by stream, and by differing field. Invariant: an undone match
// is subtracted again.

import { type FoldedFields, fieldsOf, isSame } from './pair-match.ts';
import { addExample, examplesMax, noteMatch, type PairState, streamOf } from './pair-state.ts';

/** Maximum paths in a report. */
const pathsMax = 100;

/** Two records that match. */
export interface Match {
  /** Their folded fields as JSON. */
  readonly old: unknown;
  readonly new: unknown;
  /** Their streams, as far as stored. */
  readonly streams: readonly unknown[];
  /** The id for reports. */
  readonly id: string | null;
}

/** Counts a match. */
export function countMatch(state: PairState, match: Match, now: number): void {
  noteMatch(state, now);
  count(state, match, 1);
}

/** Subtracts a match, because the records turned out to be different ones. */
export function uncountMatch(state: PairState, match: Match): void {
  state.matched -= 1;
  state.matchedInHour = Math.max(0, state.matchedInHour - 1);
  count(state, match, -1);
}

function count(state: PairState, { old, new: late, streams, id }: Match, by: 1 | -1): void {
  for (const stream of streams) {
    if (typeof stream === 'string') streamOf(state, stream).matched += by;
  }
  if (!countDifferences(state, fieldsOf(old), fieldsOf(late), by)) return;
  if (by === 1) addExample(state.differing, id ?? '');
  else {
    state.differing.count -= 1;
    state.differing.examples = state.differing.examples.filter((one) => one !== id);
  }
}

/** Counts differing fields; true if there is any. */
export function countDifferences(
  state: PairState,
  old: FoldedFields,
  now: FoldedFields,
  by: 1 | -1 = 1,
): boolean {
  let differs = false;
  for (const [path, value] of Object.entries(old)) {
    const there = now[path];
    if (there === undefined) countPath(state.onlyOldFields, path, by);
    else if (!isSame(value, there)) {
      differs = true;
      countDifference(state, { path, types: [value.slice(0, 1), there.slice(0, 1)], by });
    }
  }
  for (const path of Object.keys(now)) {
    if (old[path] === undefined) countPath(state.onlyNewFields, path, by);
  }
  return differs;
}

function countPath(counts: Record<string, number>, path: string, by: 1 | -1): void {
  const known = Object.hasOwn(counts, path) ? (counts[path] ?? 0) : 0;
  if (known + by <= 0) delete counts[path];
  else if (known > 0 || Object.keys(counts).length < pathsMax) counts[path] = known + by;
}

function countDifference(
  { fields }: PairState,
  {
    path,
    types,
    by,
  }: { readonly path: string; readonly types: [string, string]; readonly by: 1 | -1 },
): void {
  const known = Object.hasOwn(fields, path) ? fields[path] : undefined;
  if (known === undefined && (by < 0 || Object.keys(fields).length >= pathsMax)) return;
  const field = known ?? { count: 0, types: [] };
  field.count += by;
  if (field.count <= 0) {
    delete fields[path];
    return;
  }
  const isNew = field.types.every(([a, b]) => a !== types[0] || b !== types[1]);
  if (isNew && field.types.length < examplesMax) field.types.push(types);
  fields[path] = field;
}
