// The judge distinguishes a repeat that an act explains from one without an explanation.

import { expect, test } from 'vitest';
import { withoutCause } from './repeats.ts';

const kill = { lane: 'process', name: 'SIGKILL', fromMs: 10_000, toMs: 11_000 };
const repeatOf = (beforeMs: number) => ({ uid: String(beforeMs), beforeMs, atMs: 20_000 });

test('withoutCause leaves the repeats of events that were not in flight when anything broke', () => {
  const [settled, sentShortlyBefore, sentMeanwhile, sentLater] = [
    repeatOf(6_900),
    repeatOf(7_100),
    repeatOf(10_500),
    repeatOf(14_100),
  ];
  const all = [settled, sentShortlyBefore, sentMeanwhile, sentLater].filter(
    (it) => it !== undefined,
  );

  const odd = withoutCause(all, [kill], 3_000);

  expect(odd).toEqual([settled, sentLater]);
});

test('withoutCause lets the last two requests before an act come again, however slow the machine', () => {
  const requests = [1_000, 2_000, 3_000];

  const odd = withoutCause(requests.map(repeatOf), [kill], 3_000, requests);

  expect(odd.map(({ beforeMs }) => beforeMs)).toEqual([1_000]);
});
