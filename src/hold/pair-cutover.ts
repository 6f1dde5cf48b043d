// Cutover and rollback: the delivering side of a pair changes, with the waiting records and the
// event that reports it, in one transaction.

import { createHash } from 'node:crypto';
import type { ConditionRecord, NewPage, PairPhase, PairReport } from '../contracts/index.ts';
import type { PairState } from './pair-state.ts';
import type { Pairs } from './pairs.ts';

/** An operator's request. */
export interface CutoverWish {
  /** The successor's name. */
  readonly pair: string;
  readonly phase: PairPhase;
  /** Also if the pair is not ready. */
  readonly isForced: boolean;
  /** Why the delivering side cannot be read; null: it was read to its end. */
  readonly unread: string | null;
  /** The row of the request, whose answer is stored with the change; default: none. */
  readonly request?: number | undefined;
}

/** The result. */
export interface Cutover {
  readonly isDone: boolean;
  /** Why it was refused, or the known gaps if it was forced. */
  readonly reasons: readonly string[];
  /** The report from before the change. */
  readonly report: PairReport | null;
}

/** Changes the delivering side if permitted. Within a transaction. */
export function cutOver(
  { pair, phase, isForced, unread }: CutoverWish,
  {
    pairs,
    reports,
    now,
    store,
  }: {
    readonly pairs: Pairs;
    readonly reports: readonly PairReport[];
    readonly now: number;
    readonly store: (page: NewPage) => unknown;
  },
): Cutover {
  const report = reports.find(({ successor }) => successor === pair) ?? null;
  if (report === null) {
    return { isDone: false, reasons: ['the state has no pair of that name yet'], report };
  }
  const isThere = (report.phase === 'cut_over') === (phase === 'cut_over');
  if (isThere) {
    const reason = phase === 'cut_over' ? 'it is cut over already' : 'it is not cut over';
    return { isDone: false, reasons: [reason], report };
  }
  const reasons = [
    ...(unread === null ? [] : [unread]),
    ...(phase === 'cut_over' ? report.notReady : []),
  ];
  // An unreadable side must not become the delivering one: nothing would be delivered.
  const isAllowed = reasons.length === 0 || (phase === 'cut_over' && isForced);
  if (!isAllowed) return { isDone: false, reasons, report };
  const reportPage = (state: PairState) => cutoverPage(state, { report, phase, reasons, now });
  pairs.turn(pair, phase, { now, store, reportPage });
  return { isDone: true, reasons, report };
}

function cutoverPage(
  { plan, turns }: PairState,
  {
    report,
    phase,
    reasons,
    now,
  }: {
    readonly report: PairReport;
    readonly phase: PairPhase;
    readonly reasons: readonly string[];
    readonly now: number;
  },
): NewPage {
  const { successor, predecessor } = plan;
  const stream = plan.streams.new[0] ?? successor;
  const isForced = reasons.length > 0;
  const record: ConditionRecord = {
    condition: 'source.cut_over',
    ...{ source: successor, stream },
    observed_at: new Date(now).toISOString(),
    message:
      phase === 'cut_over'
        ? `${successor} delivers from now on instead of ${predecessor}${isForced ? ', by force' : ''}`
        : `${predecessor} delivers again instead of ${successor}`,
    details: {
      ...{ phase, predecessor, successor },
      ...{
        matched: report.matched,
        only_old: report.onlyOld.count,
        only_new: report.onlyNew.count,
      },
      ...{ differing: report.differing.count, waiting: report.waiting },
      streams_old: plan.streams.old,
      streams_new: plan.streams.new,
      ...(isForced && { missing: reasons }),
    },
  };
  return {
    context: { source: successor, stream, kind: 'condition', fetchedAt: now },
    body: Buffer.from(JSON.stringify([record])),
    ...{ items: '', kept: null },
    uids: createHash('sha256')
      .update(JSON.stringify(['succession', successor, turns]))
      .digest(),
  };
}
