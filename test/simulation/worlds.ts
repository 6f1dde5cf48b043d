// The kinds of worlds that can be simulated, each by a seed.

import { runCollection } from './collection/run.ts';
import { runPairs } from './pairs/run.ts';
import { runParents } from './parents/run.ts';
import { runList } from './run.ts';
import type { Tell, Verdict } from './verdict.ts';

/** A kind of world. */
export type Kind = 'list' | 'collection' | 'parents' | 'pairs' | 'cluster' | 'archive';

export const worlds: Readonly<Record<Kind, (seed: number, report?: Tell) => Promise<Verdict>>> = {
  list: runList,
  collection: runCollection,
  parents: runParents,
  pairs: runPairs,
  // Loads the cluster's code through the hooks of cluster/hooks.ts, or those of a test.
  cluster: async (seed, report) =>
    await (await import('./cluster/run.ts')).runCluster(seed, report),
  // Likewise, through the hooks of archive/hooks.ts.
  archive: async (seed, report) =>
    await (await import('./archive/run.ts')).runArchive(seed, report),
};
