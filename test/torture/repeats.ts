// Whether a sink repeats only what was in flight when something broke. A repeat needs a cause: an act on the program or
// on that sink's receiver that overlaps the time in which the event was under way. What comes again without one
// was sent again although it had been settled. Seen best in long runs, in which peace lasts longer than flight.

import type { Repeat } from './arrivals.ts';

/** When an act was done. Milliseconds of `performance.now()`. */
export interface Doing {
  readonly lane: string;
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The repeats among `repeats` that none of these acts explains; `inFlightMs` is how long events are under way. */
export function withoutCause(
  repeats: readonly Repeat[],
  acts: readonly Doing[],
  inFlightMs: number,
): readonly Repeat[] {
  return repeats.filter(
    ({ beforeMs }) =>
      !acts.some(
        ({ fromMs, toMs }) => fromMs <= beforeMs + inFlightMs && toMs >= beforeMs - inFlightMs,
      ),
  );
}
