// The kinds of worlds that can be simulated, each by a seed.

import { runCollection } from './collection/run.ts';
import { runList } from './run.ts';
import type { Tell, Verdict } from './verdict.ts';

/** A kind of world. */
export type Kind = 'list' | 'collection';

export const worlds: Readonly<Record<Kind, (seed: number, tell?: Tell) => Promise<Verdict>>> = {
  list: runList,
  collection: runCollection,
};
