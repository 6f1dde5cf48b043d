// A collection as a pageable list, as it is at the request. Cursors refer to entities, so a deletion between two pages
// hides no other entity; with offsets it does.
import type { Collection } from './collection.ts';
import type { PagedList } from './lists.ts';

/** The part of a collection that a list shows. */
export interface Showing {
  /** Whether an entity is in the list; default: all are. */
  readonly keep?: (entity: object) => boolean;
  /** The listed part of an entity; default: the whole entity. */
  readonly shown?: (entity: object) => object;
}

/** The present entities. */
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
