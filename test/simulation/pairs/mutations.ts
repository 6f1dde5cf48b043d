// Flaws of pairs that the simulation must find.

import type { Mutation } from '../mutations.ts';

const hold = 'src/hold';
const succession = 'src/succession';

/** See mutations.ts. */
export const ofPairs: readonly Mutation[] = [
  {
    ...{ of: 'pairs', file: `${hold}/pair-matching.ts` },
    what: 'the identities of the side that delivers are forgotten',
    from: "if (delivers && !mayBeDelivered) return 'deliver';",
    to: "if (delivers) { this.#rows.remove(id); return 'deliver'; }",
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-matching.ts` },
    what: 'what the old side had delivered before the pairing is not known',
    from: 'if (record.before.length === 0) return false;',
    to: 'if (record.before.length >= 0) return false;',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-matching.ts` },
    what: 'before the pairing, an id of one company is known in all',
    from: '(companies[stream] ?? whose) === whose',
    to: '(companies[stream] ?? whose) !== null',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-matching.ts` },
    what: 'a record matches again and again',
    from: 'return all.filter((row) => row[side] === null && row[other] !== null);',
    to: 'return all.filter((row) => row[other] !== null);',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-matching.ts` },
    what: 'a record that waits counts as delivered',
    from: "return same.state === 0 ? 'drop' : 'deliver';",
    to: "return 'drop';",
  },
  {
    ...{ of: 'pairs', file: 'src/run/succession.ts' },
    what: 'a pair is cut over before its tail is read',
    from: "const read = [...(old === undefined ? [] : [old]), ...(phase === 'cut_over' ? [pair] : [])];",
    to: 'const read: string[] = old === pair ? [pair] : [];',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-cutover.ts` },
    what: 'a pair is moved back by force where the old side cannot be read',
    from: "reasons.length === 0 || (phase === 'cut_over' && isForced);",
    to: 'reasons.length === 0 || isForced;',
  },
  {
    ...{ of: 'pairs', file: `${succession}/side.ts` },
    what: 'records match by their time alone',
    from: "id === null ? ['at', time ?? fields] : ['id', id]",
    to: "['at', time ?? fields]",
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-match.ts` },
    what: 'without ids records match by their time alone',
    from: 'if (!isSame(value, there)) return false;',
    to: 'if (one === other) return false;',
  },
  {
    ...{ of: 'pairs', file: `${succession}/side.ts` },
    what: 'two ids that begin alike are one',
    from: "['at', time ?? fields] : ['id', id]",
    to: "['at', time ?? fields] : ['id', id.slice(0, -1)]",
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-match.ts` },
    what: 'an id is the same record in all companies',
    from: 'company !== record.company;',
    to: 'company === record.id;',
  },
  {
    ...{ of: 'pairs', file: `${succession}/pairing.ts` },
    what: 'where one side names no company the id is enough',
    from: 'needsContent: companies.size > 1 || companies.has(undefined)',
    to: 'needsContent: companies.size < 0',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-match.ts` },
    what: 'the clocks are compared by records of two companies',
    from: 'const difference = differenceTo(near, record, side);',
    to: 'const difference = differenceTo(rows, record, side);',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-brake.ts` },
    what: 'patience counts only while the other side answers',
    from: 'if (isRetired || everyMs === 0) return patient;',
    to: 'if (isRetired || everyMs === 0) return Math.min(patient, reachedBy(statements, streams) - 1);',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-rows.ts` },
    what: 'patience counts from when a record happened',
    from: '...[id, pair, now, JSON.stringify(context), uid, bytes],',
    to: '...[id, pair, record.happenedAt ?? now, JSON.stringify(context), uid, bytes],',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pairs.ts` },
    what: 'records that wait are forgotten at a kill',
    from: 'this.rows = new PairRows(statements);',
    to: "this.rows = new PairRows(statements); statements.run('DELETE FROM pair_waiting');",
  },
  {
    ...{ of: 'pairs', file: `${hold}/pairs.ts` },
    what: 'a record that waits is delivered at each look',
    from: 'for (const { id } of rows) this.rows.settle(id);',
    to: 'if (rows.length < 0) this.rows.settle(0);',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pairs.ts` },
    what: 'what waits stays where it is at a cutover',
    from: 'if (waiting.length === 0) break;',
    to: 'if (waiting.length >= 0) break;',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pairs.ts` },
    what: 'the brake holds while the other side is dead',
    from: '{ ...due, from: reached }',
    to: '{ ...due, from: Number.MAX_SAFE_INTEGER }',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-brake.ts` },
    what: 'one stream is enough to have read a side',
    from: 'moments.length === 0 ? 0 : Math.min(...moments)',
    to: 'moments.length === 0 ? 0 : Math.max(...moments)',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-brake.ts` },
    what: 'there is no brake',
    from: 'const isFit = compared < firstMin || matched * 2 >= compared;',
    to: 'const isFit = compared >= 0 || matched < 0;',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-report.ts` },
    what: 'what the other side was not read past counts as one-sided',
    from: 'const before = Math.min(patient, reached[otherSide(side)]);',
    to: 'const before = patient + Math.min(0, reached[otherSide(side)]);',
  },
  {
    ...{ of: 'pairs', file: `${hold}/pair-rows.ts` },
    what: 'what is not decided counts as one-sided',
    from: '(at < ? AND NOT (${isOpen(side, plan)}))',
    to: '(at < ?)',
  },
  {
    ...{ of: 'pairs', file: `${succession}/compared-from.ts` },
    what: 'without ids records of before the pairing are compared',
    from: 'if (memory.nameless || memory.horizon === noHorizon)',
    to: 'if (memory.horizon === noHorizon)',
  },
  {
    ...{ of: 'pairs', file: `${succession}/compared-from.ts` },
    what: 'nothing of before the pairing is compared',
    from: '(begunAt ?? Date.now()) - plan.overlapMs;',
    to: '(begunAt ?? Date.now()) - Math.min(0, plan.overlapMs);',
  },
];
