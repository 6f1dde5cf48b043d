// Times that an operator writes. JavaScript reads a day that does not exist as a later one: a `start` of 2026-02-30 would
// skip records, and `--before` would delete more than was meant.

import { expect, test } from 'vitest';
import { sources } from '../../connectors/sources/index.ts';
import { timeTyped } from '../../src/commands/shared/typed.ts';
import type { SourceDefinition } from '../../src/contracts/definition.ts';
import { parseRfc3339 } from '../../src/contracts/rfc3339.ts';
import { parseEnds } from '../../src/upstream/ends.ts';
import { settingsOf } from '../support/plain-upstream.ts';

const logs = sources.find(({ type }) => type === 'logs') as SourceDefinition;

test.for([
  ['2026-01-31T08:00:00Z', 1_769_846_400_000],
  ['2028-02-29T00:00:00.5+01:00', 1_835_391_600_500],
  ['2026-01-31 08:00z', 1_769_846_400_000],
  ['2026-02-29T00:00:00Z', null],
  ['2026-02-30T00:00:00+01:00', null],
  ['2026-04-31T00:00:00Z', null],
  ['2026-01-31T08:00:00', null],
  ['2026-01-31', null],
  ['yesterday', null],
] as const)('%s is %s', ([text, time]) => {
  expect(parseRfc3339(text)).toBe(time);
});

test.for([
  ['start', (text: string) => settingsOf(logs, { path: '/x', start: text })],
  ['ends', (text: string) => expect(parseEnds(text)).not.toBeNull()],
  ['--to', (text: string) => timeTyped('to', text)],
] as const)('%s takes no day that does not exist', ([, take]) => {
  take('2026-02-28T00:00:00Z');
  expect(() => take('2026-02-30T00:00:00Z')).toThrow();
});
