// The kind of parents of a seed: small lists or objects, the origin of their ids, and their changes.

import type { Random } from '../../../src/sandbox/random.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** One stream of parents, and its server. */
export interface Traits {
  /** A timeline of each parent, or one object, which may come to an end. */
  readonly of: 'list' | 'object';
  /** Their ids are in the config, or another source shows them. */
  readonly from: 'ids' | 'noticed';
  /** Share of what happens to a parent that the other source shows. */
  readonly noticed: number;
  readonly immutable: boolean;
  readonly parents: number;
  readonly pageRows: number;
  readonly sweepMs: number;
  readonly everyMs: number;
  /** Chance at each request of each trouble. */
  readonly trouble: number;
  /** Chance at each step that the process is killed. */
  readonly crash: number;
  /** Upstream as a whole answers nothing, or denies everything, for some hours. */
  readonly outage: 500 | 401 | 403 | 404 | null;
  /** One parent is denied or gone for a long time, and may be there again. */
  readonly refused: 403 | 404 | null;
  /** One parent is always answered with 500. */
  readonly failing: boolean;
  /** A timeline is another for a while: an entry is rewritten, or the last ones are gone. */
  readonly bent: 'rewritten' | 'shorter' | null;
  /** The clock is set, now and then. */
  readonly jumps: boolean;
}

/** Draws a world. */
export function traitsOf(random: Random): Traits {
  const isList = random.chance(0.6);
  return {
    of: isList ? 'list' : 'object',
    from: random.pick(['ids', 'noticed']),
    noticed: random.pick([0, 0.5, 1]),
    immutable: random.chance(0.5),
    parents: random.pick([1, 3, 8, 14]),
    pageRows: random.pick([1, 2, 3, 10]),
    sweepMs: random.pick([30 * minuteMs, 2 * hourMs]),
    everyMs: random.pick([minuteMs, 5 * minuteMs]),
    trouble: random.pick([0, 0, 0.02, 0.08]),
    crash: random.pick([0, 0, 0.01, 0.05]),
    outage: random.pick([null, null, null, 500, 401, 403, 404]),
    refused: random.pick([null, null, 403, 404]),
    failing: random.chance(0.15),
    bent: isList ? random.pick([null, null, null, 'rewritten', 'shorter']) : null,
    jumps: random.chance(0.15),
  };
}
