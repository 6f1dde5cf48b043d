// The schedule of a torture run: for each lane (the process, each sink, upstream) an endless sequence of acts, drawn
// from the seed alone, so that a failing seed does the same again. Acts come in shuffled rounds, each act once a round:
// a short run includes nearly all of them. The moment of an act in the program depends on the machine; the acts do not.

import { Random, saltOf } from '../../src/sandbox/random.ts';

/** One thing done to the program or its surroundings. */
export interface Act {
  readonly lane: string;
  readonly name: string;
  /** Milliseconds of peace before it. */
  readonly afterMs: number;
  /** How long a broken connection stays broken, in milliseconds. */
  readonly forMs: number;
  /** For choices of its own: in [0, 1). */
  readonly draw: number;
}

/** The bounds from which a lane's times are drawn, in milliseconds. */
export interface Pace {
  readonly after: readonly [min: number, max: number];
  readonly lasts: readonly [min: number, max: number];
}

/** The acts of one lane, without end; the same for the same seed, lane, names and pace. */
export function* actsOf(
  seed: number,
  lane: string,
  names: readonly string[],
  pace: Pace,
): Generator<Act, never> {
  const random = new Random(seed, saltOf(lane));
  for (;;) {
    for (const name of shuffled(names, random)) {
      const afterMs = between(pace.after, random);
      const forMs = between(pace.lasts, random);
      yield { lane, name, afterMs, forMs, draw: random.next() };
    }
  }
}

function shuffled(names: readonly string[], random: Random): readonly string[] {
  return names
    .map((name) => ({ name, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ name }) => name);
}

function between([min, max]: readonly [number, number], random: Random): number {
  return min + random.below(max - min + 1);
}
