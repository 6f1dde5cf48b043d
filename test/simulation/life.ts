// The life of a simulated process: it passes step after step, and at any of them it may be killed
// or stopped. A killed process gets no answer any more, and the next one has only the spool.

import type { Random } from '../../src/sandbox/random.ts';

/** One run of the process. */
export interface Life {
  alive: boolean;
  /** Resolves when it is killed. */
  readonly killed: Promise<'killed'>;
  readonly kill: () => void;
  stop: AbortController;
}

/** What a step is passed with. */
export interface StepMeans {
  readonly random: Random;
  /** Chance that it is killed there; a quarter of that, that it is told to stop. */
  readonly crash: number;
  /** Draws a trouble; never where all is well. */
  readonly happens: (chance: number) => boolean;
  /** Time passes and the world moves. */
  readonly pass: () => void;
  readonly tell: (line: string) => void;
}

export function newLife(): Life {
  const { promise: killed, resolve } = Promise.withResolvers<'killed'>();
  const kill = () => resolve('killed');
  return { alive: true, killed, kill, stop: new AbortController() };
}

/** One step: it never ends for a process that is dead, or dies there. */
export async function passStep(
  life: Life,
  what: string,
  { random, crash, happens, pass, tell }: StepMeans,
): Promise<void> {
  for (let n = random.below(3); n > 0; n -= 1) await Promise.resolve();
  if (!life.alive) await unanswered();
  pass();
  if (happens(crash)) {
    tell(`is killed as it ${what}`);
    life.alive = false;
    life.kill();
    await unanswered();
  }
  if (happens(crash / 4)) {
    tell(`is stopped as it ${what}`);
    life.stop.abort(new Error('stopped'));
  }
}

/**
 * What a killed process waits for; made anew each time, since a shared one would hold every world
 * that ever waited.
 */
export function unanswered(): Promise<never> {
  return new Promise(() => undefined);
}
