// Evaluates the requests for some parents: the changes to commit for each, and whether upstream is at fault instead of
// one of them. Pure; the poller commits.

import type { Failure, NewPage, ParentChange, ParentsStream } from '../contracts/index.ts';
import type { Finding } from '../poll/index.ts';
import {
  afterAnswer,
  afterRefusal,
  isExpected,
  isUpstreams,
  type ParentRules,
  type PolledParent,
  shrunk,
} from './next-turn.ts';

/** This many failures in a row without a response count as upstream's fault. */
export const failuresMax = 4;

/** The changes to commit. */
export interface Settled {
  readonly changes: readonly ParentChange[];
  readonly pages: readonly NewPage[];
  readonly findings: readonly Finding[];
  /** The failure of upstream as a whole; null: none. */
  readonly failure: (PolledParent & Failure) | null;
  /** How long the last parent requested in rotation had waited, milliseconds; null: none was. */
  readonly rotationMs: number | null;
}

/** Evaluates the requested parents. */
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
