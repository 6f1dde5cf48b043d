// What asking a few parents came to: what is to be committed of each, and whether upstream is at
// fault rather than one of them. Pure; the poller commits it.

import type { Failure } from '../../contracts/answer.ts';
import type { ParentsStream } from '../../contracts/source.ts';
import type { NewPage, ParentChange } from '../../contracts/spool.ts';
import type { Finding } from '../own-pages.ts';
import {
  afterAnswer,
  afterRefusal,
  isExpected,
  isUpstreams,
  type ParentRules,
  type PolledParent,
  shrunk,
} from './next-turn.ts';

/** Failures in a row with no answer between them, by which upstream is at fault and no parent. */
export const failuresMax = 4;

/** What is to be committed. */
export interface Settled {
  readonly changes: readonly ParentChange[];
  readonly pages: readonly NewPage[];
  readonly findings: readonly Finding[];
  /** What is upstream's fault and no parent's, as far as can be told; null: nothing is. */
  readonly failure: (PolledParent & Failure) | null;
  /** How long the one of them that was asked in rotation had waited for it; null: none was. */
  readonly rotationMs: number | null;
}

/** Settles what became of those that were asked. */
export function settle(
  stream: ParentsStream,
  asked: readonly PolledParent[],
  rules: ParentRules,
  random: () => number,
): Settled {
  const failures = asked.filter((one) => one.outcome !== 'done' && !isExpected(one));
  const isDown = failures.length >= failuresMax && rules.answeredAt < rules.now;
  const changes: ParentChange[] = [];
  const pages: NewPage[] = [];
  const findings: Finding[] = [];
  let failure: Settled['failure'] = null;
  let rotationMs: number | null = null;
  for (const one of asked) {
    const { row, known } = one;
    if (one.outcome !== 'done' && (isDown || isUpstreams(one))) {
      failure = failure === null || isUpstreams(one) ? one : failure;
      continue;
    }
    const next =
      one.outcome === 'done' ? afterAnswer(one, rules, random) : afterRefusal(one, rules);
    if (one.outcome !== 'done' && (next === null || next.isUpstreams)) failure ??= one;
    if (next === null) continue;
    const { finding, isUpstreams: _, ...change } = next;
    changes.push({ stream: stream.name, id: row.id, as: 'asked', was: row.due, ...change });
    if (finding !== undefined) findings.push(finding);
    if (one.outcome !== 'done') continue;
    if (row.rank === 1 && known.askedAt > 0) rotationMs = rules.now - known.askedAt;
    if (one.page) pages.push(one.page);
    const gone = stream.listOf(row.id)?.immutable ? shrunk(one) : null;
    if (gone !== null) findings.push(gone);
  }
  return { changes, pages, findings, failure, rotationMs };
}
