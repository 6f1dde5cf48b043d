// Groups ailments into the lines of attention: those alike are one line, and so are all ailing streams of one company, whose
// lists may fail in different ways for one cause. Invariants: a company is in one line, except where many companies fail in
// the same few ways; two upstreams may use one company id for two companies.

import type { Ailment } from './health.ts';

/** Ailments of one line. */
export interface AilmentGroup {
  readonly ailments: readonly [Ailment, ...Ailment[]];
  /** The company, if its streams fail in different ways; null: the ailments are alike. */
  readonly company: string | null;
}

/** The groups, in the order of their first ailments. */
export function ailmentGroups(ailments: readonly Ailment[]): readonly AilmentGroup[] {
  const alike = Map.groupBy(ailments, alikeKey);
  const owned = Map.groupBy(ailments, ownerKey);
  const alone = new Set<string | null>();
  const shared = new Set<string>();
  for (const [owner, own] of owned) {
    const ways = new Set(own.map(alikeKey));
    if (owner === null || ways.size === 1) continue;
    alone.add(owner);
    for (const way of ways) shared.add(way);
  }
  // Lines by company must not be more than lines by failure: a failure of upstream concerns all companies.
  const isFew = alone.size <= shared.size;
  const groups = Map.groupBy(ailments, (one) => {
    const owner = ownerKey(one);
    return isFew && alone.has(owner) ? owner : alikeKey(one);
  });
  return Array.from(groups, ([key, group]): AilmentGroup => {
    const [first] = group as [Ailment, ...Ailment[]];
    const company = alike.has(key ?? '') ? null : (first.owner?.company ?? null);
    return { ailments: group as [Ailment, ...Ailment[]], company };
  });
}

function alikeKey({ part, reason, error }: Ailment): string {
  return JSON.stringify([part, reason, error?.code, error?.next]);
}

/** The company of a stream, which is known by its upstream and id; null: none. */
function ownerKey({ owner }: Ailment): string | null {
  return owner === undefined ? null : JSON.stringify([owner.upstream, owner.company]);
}
