// Sources that move to their successors, as status, page and attention show them.

import type { PairReport } from '../contracts/index.ts';
import { cleanText } from '../tools/index.ts';
import type { Matter, SuccessionFacts } from './status-facts.ts';

/** A pair as status shows it. */
export function successionFacts(report: PairReport): SuccessionFacts {
  return {
    ...{ source: report.predecessor, successor: report.successor, phase: report.phase },
    ...{ matched: report.matched, waiting: report.waiting },
    ...{ only_old: report.onlyOld.count, only_new: report.onlyNew.count },
    ...{ differing: report.differing.count, fields: report.fields.map(({ path }) => path) },
    ...{ held: report.brake !== null, not_ready: [...report.notReady] },
  };
}

/** Matters for pairs that can be cut over, or whose records do not match. */
export function successionMatters(
  successions: readonly SuccessionFacts[],
  command: (command: string, ...words: readonly string[]) => string,
): readonly Matter[] {
  return successions.flatMap(({ source, successor, phase, held, waiting }): readonly Matter[] => {
    const who = `Source ${cleanText(successor, 80)}`;
    const old = cleanText(source, 80);
    if (held) {
      const what = `too few of its records match those of ${old}: ${waiting.toLocaleString('en')} are stored and not delivered`;
      const next = `Set id, fields or ignore of sources.${successor}.succeeds; ${command('succession')} lists the differences`;
      return [{ mood: 'warn', who, what, message: null, next }];
    }
    if (phase !== 'ready') return [];
    const what = `can take over from ${old}: all records match`;
    const next = `Cut over with ${command('succession cutover', successor)}`;
    return [{ mood: 'warn', who, what, message: null, next }];
  });
}
