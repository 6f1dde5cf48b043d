// What attention says of a source that moves to its successor.

import { expect, test } from 'vitest';
import type { SuccessionFacts } from '../../src/watch/status-facts.ts';
import { successionMatters } from '../../src/watch/successions.ts';

const facts: SuccessionFacts = {
  ...{ source: 'audit', successor: 'logs', phase: 'shadow', matched: 10, waiting: 1_200 },
  ...{ only_old: 0, only_new: 0, differing: 0, fields: [], held: false, not_ready: ['early'] },
};
const command = (...words: readonly string[]) => `sluice ${words.join(' ')}`;

test('a pair that compares, or is cut over, needs no attention', () => {
  expect(successionMatters([facts, { ...facts, phase: 'cut_over' }], command)).toEqual([]);
});

test('a pair that is ready names the command', () => {
  const [matter] = successionMatters([{ ...facts, phase: 'ready' }], command);

  expect(matter?.next).toBe('Cut over with sluice succession cutover logs');
});

test('records that are held name their number and the settings', () => {
  const [matter] = successionMatters([{ ...facts, held: true }], command);

  expect(matter?.what).toContain('1,200 are stored and not delivered');
  expect(matter?.next).toContain('sources.logs.succeeds');
});
