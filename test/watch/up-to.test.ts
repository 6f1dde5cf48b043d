// Up to when everything is at a sink: too early a time may be said, never too late a one.

import { expect, test } from 'vitest';
import { settledUpTo } from '../../src/watch/up-to.ts';

type Streams = Parameters<typeof settledUpTo>[0]['streams'];

/** What is known of streams, as far as this looks. */
const known = (streams: Readonly<Record<string, object>>) => ({
  streams: new Map(Object.entries(streams)) as unknown as Streams,
});
const reached = [
  { at: 1_000, end: 5 },
  { at: 2_000, end: 9 },
];

function upTo(streams: Readonly<Record<string, object>>, position: number): number | null {
  const plan = {
    sources: [{ name: 'a', streams: Object.keys(streams).map((name) => ({ name })) }],
    routes: [{ from: ['a'], to: ['s'] }],
  } as unknown as Parameters<typeof settledUpTo>[1]['plan'];
  return settledUpTo(known(streams), { plan, sink: 's', position });
}

test.each<[string, Readonly<Record<string, object>>, number, number | null]>([
  ['the latest moment whose events are settled', { one: { reached } }, 8, 1_000],
  ['the earliest of all streams', { one: { reached }, two: { reached: [reached[0]] } }, 9, 1_000],
  ['nothing while a stream has none', { one: { reached }, two: { reached: [] } }, 9, null],
  ['nothing before the first moment is settled', { one: { reached } }, 4, null],
  [
    'of parents before they were last all asked',
    { one: { reached, parents: { rotation_ms: 400 } } },
    9,
    1_600,
  ],
  [
    'nothing of parents that were not all asked',
    { one: { reached, parents: { rotation_ms: null } } },
    9,
    null,
  ],
])('is %s', (_, streams, position, reported) => {
  expect(upTo(streams, position)).toBe(reported);
});
