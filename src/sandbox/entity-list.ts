// A collection as a list that can be paged, as it stands at the request. Cursors remember entities,
// so one that goes between two pages hides no other; offsets count, so there it does.
import type { Collection } from './collection.ts';
import type { PagedList } from './lists.ts';

/** What of a collection a list shows. */
export interface Showing {
  /** Whether an entity is in the list; left out: all are. */
  readonly keep?: (entity: object) => boolean;
  /** What the list shows of an entity; left out: all of it. */
  readonly shown?: (entity: object) => object;
}

/** The entities that stand now. */
export function entityList(collection: Collection, { keep, shown }: Showing = {}): PagedList {
  const entityAt = (key: number) => collection.entity(key) ?? {};
  const all = collection.keys();
  const keys = keep === undefined ? all : all.filter((key) => keep(entityAt(key)));
  return {
    path: collection.plan.path,
    keys,
    size: () => keys.length,
    first: () => 0,
    visible: () => true,
    dense: () => true,
    textAt(index) {
      const entity = entityAt(keys[index] ?? -1);
      return JSON.stringify(shown === undefined ? entity : shown(entity));
    },
  };
}
