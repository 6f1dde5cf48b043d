// Whether a sink repeats only events that were in flight at a fault. A repeat needs a cause: an act on the program or
// on that sink's receiver that overlaps the time in which the event was under way. What comes again without one was
// sent again although it had been settled. Seen best in long runs, in which peace lasts longer than flight.

import type { Repeat } from './arrivals.ts';

/** When an act was done. Milliseconds of `performance.now()`. */
export interface Doing {
  readonly lane: string;
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * The repeats among `repeats` that none of these acts explains; `inFlightMs` is how long events are under way. On a busy machine
 * it takes longer: so the last two of `requestsMs` before an act, the one under way and one more, may come again too.
 */
export function withoutCause(
  repeats: readonly Repeat[],
  acts: readonly Doing[],
  inFlightMs: number,
  requestsMs: readonly number[] = [],
): readonly Repeat[] {
  const spans = acts.map(({ fromMs, toMs }) => {
    const lastButOne = requestsMs.findLast((at, index) => {
      const next = requestsMs[index + 1];
      return at <= fromMs && next !== undefined && next <= fromMs;
    });
    return {
      fromMs: Math.min(fromMs - inFlightMs, lastButOne ?? fromMs),
      toMs: toMs + inFlightMs,
    };
  });
  return repeats.filter(
    ({ beforeMs }) => !spans.some(({ fromMs, toMs }) => fromMs <= beforeMs && toMs >= beforeMs),
  );
}
