// Which notes are worth a transaction where the database is the cache of a log.

import { expect, test } from 'vitest';
import { isNews } from '../../src/hold/notes.ts';

const stream = {
  state: 'waiting',
  caught_up_at: 1_000,
  next_poll_at: 2_000,
  polls: 1,
  records: 5,
  error: null,
};
const reached = {
  moments: [
    { at: 1_000, end: 3 },
    { at: 2_000, end: 5 },
  ],
};
const used = { at: 1_000, noted: 3, unnoted: 0.1, gates: { g: { '*': [[0, 1]] } } };

test.each([
  ['a first note', 'stream', null, stream, true],
  [
    'a later poll',
    'stream',
    stream,
    { ...stream, caught_up_at: 3_000, next_poll_at: 4_000, polls: 2 },
    false,
  ],
  ['the first poll to the end', 'stream', { ...stream, caught_up_at: null }, stream, true],
  ['another state', 'stream', stream, { ...stream, state: 'retrying', polls: 2 }, true],
  ['an error', 'stream', stream, { ...stream, error: { code: 'scope_lost' } }, true],
  ['a record', 'stream', stream, { ...stream, records: 6 }, true],
  [
    'the same end, later',
    'reached',
    reached,
    {
      moments: [
        { at: 1_000, end: 3 },
        { at: 9_000, end: 5 },
      ],
    },
    false,
  ],
  [
    'another end',
    'reached',
    reached,
    { moments: [...reached.moments, { at: 3_000, end: 6 }] },
    true,
  ],
  ['requests that may be missing', 'throttle', used, { ...used, at: 2_000, gates: {} }, false],
  ['requests that must be known', 'throttle', used, { ...used, at: 2_000, noted: 4 }, true],
  ['a sink', 'sink', { state: 'idle', polls: 1 }, { state: 'idle', polls: 2 }, true],
] as const)('%s', (_, kind, before, facts, isNew) => {
  const text = before === null ? null : JSON.stringify(before);
  expect(isNews(kind, text, JSON.stringify(facts))).toBe(isNew);
});
