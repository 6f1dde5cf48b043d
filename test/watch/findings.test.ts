// What stays known of what fetch has found.

import { expect, test } from 'vitest';
import { Findings } from '../../src/watch/findings.ts';

const found = (stream: string, message: string) => ({
  ...{ condition: 'source.gap', stream, message },
  observed_at: '2026-11-01T00:00:00.000Z',
});

test('Findings keeps the latest fifty, the newest first', () => {
  const findings = new Findings();

  for (let at = 0; at < 60; at += 1) findings.add(found('audit', `${at}`));

  expect(findings.latest).toHaveLength(50);
  expect(findings.latest[0]?.message).toBe('59');
});

test('Findings counts all, by kind and origin', () => {
  const findings = new Findings();

  for (const stream of ['audit', 'logs', 'audit']) findings.add(found(stream, 'one'));

  expect(findings.counts()).toEqual([
    { condition: 'source.gap', stream: 'audit', count: 2 },
    { condition: 'source.gap', stream: 'logs', count: 1 },
  ]);
});
