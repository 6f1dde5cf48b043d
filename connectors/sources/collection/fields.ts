// The config keys of every source that reads a collection: when a change or an absence is believed, and what is compared.

import { z } from 'zod';
import type { Settings, SnapshotReading } from '../../../src/contracts/definition.ts';
import { count, duration } from '../../../src/contracts/settings.ts';

const paths = () => z.array(z.string().min(1));

/** The keys that all collections have; `ignore`'s default is each source's own. */
export const collectionFields = {
  confirm_after: duration()
    .prefault('30s')
    .describe('a change is read a second time after this, before it is told (0s: at once)'),
  settle: duration().prefault('10m').describe('how long an absence must last to be a removal'),
  removals_after: count(1, 100)
    .default(2)
    .describe('complete readings in a row that an entity must be missing from'),
  brake: z
    .strictObject({
      share: z.number().min(0).max(1).default(0.3).describe('share of all entities'),
      count: count(0, 1_000_000).default(10).describe('number of entities'),
    })
    .prefault({})
    .describe(
      'more removals at once than both of these are held until three complete readings show them',
    ),
  baseline: z
    .enum(['summary', 'full'])
    .default('summary')
    .describe('the first reading: one summary event per resource, or each entity in full'),
  ignore: paths().default(['updated_at']).describe('paths within an entity that are not compared'),
  unordered: paths().default([]).describe('paths of arrays whose order says nothing'),
};

/** The parsed keys of a collection. */
export type CollectionSettings = Settings<typeof collectionFields>;

/** How the engine compares a collection. */
export function collectionReading(settings: CollectionSettings): SnapshotReading {
  return {
    confirmAfterMs: settings.confirm_after,
    settleMs: settings.settle,
    removalsAfter: settings.removals_after,
    brake: settings.brake,
    baseline: settings.baseline,
    ignore: settings.ignore,
    unordered: settings.unordered,
  };
}
