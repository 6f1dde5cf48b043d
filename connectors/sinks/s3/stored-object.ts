// What stands in the bucket when the sink is opened, and what of it this state knows: its last cut
// may have been written whole, in part or not at all, and a state that was put back from a copy, or
// lost, knows nothing of the newest objects. What must stay true: a cut counts only where the object
// of its own name is there, which is written last.

import type { Numbering, PositionReach } from '../../../src/contracts/numbering.ts';
import { reachOf } from '../../../src/contracts/numbering.ts';
import type { ObjectStore } from '../../../src/objects/store.ts';
import { stemIn, type WrittenObject, writtenOf } from './cut.ts';
import { uidListBytes, uidsInList } from './uid-list.ts';

/** What is asked of the place of objects. */
export type CutStore = Pick<ObjectStore, 'place' | 'create' | 'read' | 'facts' | 'list' | 'close'>;

/** So many of the newest objects are looked at, and so many events remembered at least. */
const objectsMax = 500;
const eventsMax = 500_000;
/** Names of cuts begin with the year; nothing else is listed, such as tables beside them. */
const namesBegin = '2';

/** What was found. */
export interface TopObjectState {
  readonly reach: PositionReach;
  /** Events that stand there and that the state may know nothing of, by what is kept of uids. */
  readonly known: Set<string>;
  /** The newest object's name; empty where there is none. */
  readonly last: string;
}

/** Looks at the objects behind `after`; nothing is changed. */
export async function lookAtBucket(
  store: CutStore,
  { numbering, after }: { readonly numbering: Numbering; readonly after: string },
): Promise<TopObjectState> {
  const found = await newestObjects(store, after);
  const reaches = found.map(({ place }) => reachOf(place, numbering));
  const known = new Set<string>();
  if (reaches.some(({ ahead }) => ahead)) {
    // Such a state may have forgotten any record, and so reads it again.
    const all = after === '' ? found : await newestObjects(store, '');
    for (const one of all.toReversed()) {
      if (known.size >= eventsMax) break;
      for (const uid of await uidsOf(store, one)) known.add(uid);
    }
  }
  return {
    reach: {
      position: Math.max(0, ...reaches.map(({ position }) => position)),
      ahead: reaches.at(-1)?.ahead ?? false,
    },
    known,
    last: found.at(-1)?.name ?? after,
  };
}

async function newestObjects(store: CutStore, after: string): Promise<readonly WrittenObject[]> {
  let names: string[] = [];
  for await (const { name } of store.list(namesBegin, after)) {
    if (stemIn(name) === null) continue;
    names.push(name);
    if (names.length >= objectsMax * 2) names = names.slice(-objectsMax);
  }
  const found = await Promise.all(
    names.slice(-objectsMax).map(async (name) => writtenOf(name, await store.facts(name))),
  );
  return found.filter((one) => one !== null);
}

async function uidsOf(store: CutStore, { name, bytes, events }: WrittenObject): Promise<string[]> {
  const method = name.endsWith('.zst') ? 'zstd' : 'gzip';
  const length = uidListBytes(events, method);
  if (length > bytes) return [];
  const list = await store.read(name, { from: bytes - length, length });
  return list?.body.length === length ? uidsInList(list.body, events, method) : [];
}
