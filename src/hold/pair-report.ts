// The status of a pair for operators, and whether it can be cut over.

import type { PairAlone, PairReport, PairSide } from '../contracts/index.ts';
import type { Statements } from './database.ts';
import { reachedBy } from './pair-brake.ts';
import {
  comparedSince,
  deliveringSide,
  examplesMax,
  otherSide,
  type PairState,
} from './pair-state.ts';
import type { Pairs } from './pairs.ts';

/** All records must have matched for this long, or for the overlap if that is shorter. */
const provenMs = 24 * 3_600_000;
/** A side that was not read to its tail for this long counts as unread. */
const unreadMs = 10 * 60_000;

/** Reports a pair's status at a time. */
export function pairReport(
  state: PairState,
  {
    pairs,
    statements,
    now,
  }: { readonly pairs: Pairs; readonly statements: Statements; readonly now: number },
): PairReport {
  const { plan, phase } = state;
  const reached = {
    old: reachedBy(statements, plan.streams.old),
    new: reachedBy(statements, plan.streams.new),
  };
  const patient = now - plan.patienceMs;
  const aloneOn = (side: PairSide) => {
    const before = Math.min(patient, reached[otherSide(side)]);
    return pairs.rows.alone(state, side, { from: 0, before, since: comparedSince(state, side) });
  };
  const [onlyOld, onlyNew] = [aloneOn('old'), aloneOn('new')];
  const silent = otherSide(deliveringSide(phase));
  const unread = Math.min(patient, reached[otherSide(silent)]);
  const early = pairs.rows.alone(state, silent, {
    ...{ from: unread, before: patient },
    since: comparedSince(state, silent),
  });
  const waiting = pairs.rows.waitingOf(state.id);
  const latest = Math.max(onlyOld.latest ?? 0, onlyNew.latest ?? 0);
  const notReady = whyNotReady(state, { reached, latest, early: early.count, now });
  return {
    successor: plan.successor,
    predecessor: plan.predecessor,
    phase: phase === 'shadow' && notReady.length === 0 ? 'ready' : phase,
    ...{ begunAt: state.begunAt, cutOverAt: state.cutOverAt },
    ...{ matched: state.matched, known: state.known },
    fresh: Object.keys(state.streams).filter((stream) => state.streams[stream]?.before === 0),
    ...{
      onlyOld: together([onlyOld, ...Object.values(state.missing)]),
      onlyNew: counted(onlyNew),
      early: counted(early),
    },
    ...{ waiting: waiting.count, waitingBytes: waiting.bytes },
    differing: state.differing,
    fields: Object.entries(state.fields)
      .map(([path, field]) => ({ path, ...field }))
      .toSorted((a, b) => b.count - a.count),
    ...{ onlyOldFields: state.onlyOldFields, onlyNewFields: state.onlyNewFields },
    ...{ apart: state.apart, brake: state.brake, reached, notReady },
  };
}

function whyNotReady(
  state: PairState,
  {
    reached,
    latest,
    early,
    now,
  }: {
    readonly reached: Readonly<Record<PairSide, number>>;
    readonly latest: number;
    readonly early: number;
    readonly now: number;
  },
): readonly string[] {
  const { plan, streams, brake } = state;
  const windowMs = Math.min(provenMs, plan.overlapMs);
  const since = Math.max(state.begunAt, latest);
  const why: string[] = [];
  for (const side of ['old', 'new'] as const) {
    const { predecessor, successor } = plan;
    const name = side === 'old' ? predecessor : successor;
    if (now - reached[side] > unreadMs) why.push(`${name} is not read to its end`);
  }
  if (brake !== null) why.push('too few records match: set id, fields or ignore');
  for (const [stream, { records, matched }] of Object.entries(streams)) {
    if (records > 0 && matched === 0) why.push(`no record of ${stream} matches`);
  }
  if (state.matched === 0) why.push('no record matches yet');
  if (early > 0) why.push(`${early} records could not be compared yet`);
  if (now - since < windowMs) {
    const from = latest > state.begunAt ? 'one side showed a record alone' : 'the pairing began';
    why.push(`less than ${Math.ceil(windowMs / 1_000)} s have passed since ${from}`);
  }
  return why;
}

function together(all: readonly PairAlone[]): PairAlone {
  return {
    count: all.reduce((sum, { count }) => sum + count, 0),
    examples: all.flatMap(({ examples }) => examples).slice(0, examplesMax),
  };
}

function counted({ count, examples }: PairAlone): PairAlone {
  return { count, examples };
}
