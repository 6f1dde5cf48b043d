// When the usage of ceilings is noted: each second while the program runs, and once more at its end.

import { expect, test, vi } from 'vitest';
import { keepCeilings } from '../../src/run/keep-ceilings.ts';

test.each([
  ['a state in Kafka may lack requests up to a tenth of a ceiling', true, 0.1],
  ['a state on this machine has all requests of the last second', false, 0],
])('%s; at an orderly end nothing is missing', (_, isInKafka, share) => {
  vi.useFakeTimers();
  try {
    const notes: unknown[] = [];
    const spool = { note: (...all: readonly unknown[]) => notes.push(all) };
    const throttles = { used: (unnoted: number) => (notes.length === 3 ? null : { unnoted }) };
    const keeping = keepCeilings(spool as never, throttles as never, { isInKafka });
    vi.advanceTimersByTime(2_000);
    keeping.close();
    vi.advanceTimersByTime(5_000);

    const note = (unnoted: number) => ['throttle', 'used', { unnoted }];
    expect(notes).toEqual([note(share), note(share), note(0)]);
  } finally {
    vi.useRealTimers();
  }
});
