// The content of the bucket when the sink is opened, and the part that this state knows: its
// last cut may have been written completely, in part or not at all, and a restored or lost state
// does not know the newest objects. Invariants: a cut counts only if the object with its own name
// exists, which is written last; no object moves the position past the cut that the state knows,
// because every writer of the bucket can forge one. Events after that are skipped only by their
// uids, and reported.

import {
  type Numbering,
  type Offset,
  type PositionReach,
  presentEpoch,
  reachOf,
} from '../../../src/contracts/index.ts';
import type { ObjectStore } from '../../../src/objects/index.ts';
import { dayOf, stemIn, type WrittenObject, writtenOf } from './cut.ts';
import { uidListBytes, uidsInList } from './uid-list.ts';

/** The part of an object store that is used. */
export type CutStore = Pick<
  ObjectStore,
  'location' | 'create' | 'read' | 'facts' | 'list' | 'close'
>;

/** Number of the newest objects that are read, and minimum number of remembered events. */
const objectsMax = 500;
const eventsMax = 500_000;
const dayMs = 86_400_000;
/** Names of cuts begin with the year; nothing else is listed, such as tables beside them. */
const namesBegin = '2';

/** The finding. */
export interface TopObjectState {
  readonly reach: PositionReach;
  /** Events in the bucket that the state may not know, by the kept part of their uids. */
  readonly known: Set<string>;
  /** The newest object's name; empty if there is none. */
  readonly last: string;
}

/** The part of the state that a look at the bucket needs. */
export interface KnownCut {
  readonly numbering: Numbering;
  /** Names up to this one are known. */
  readonly after: string;
  /** The state has stored no cut with a later end; infinite: positions of cuts are signed. */
  readonly end: Offset;
  /** Epoch milliseconds. */
  readonly nowMs: number;
}

/** Reads the objects after `after`; changes nothing. */
export async function lookAtBucket(
  store: CutStore,
  { numbering, after, end, nowMs }: KnownCut,
): Promise<TopObjectState> {
  // A name of a later day would move all later objects to that day. A signed cut is not
  // forged: a clock that was ahead wrote it, and names keep the order of cuts.
  const isSigned = end === Number.POSITIVE_INFINITY;
  const lastDay = isSigned ? null : dayOf(nowMs + dayMs, after, presentEpoch(numbering));
  // The name of a clock that was ahead comes after those of all later cuts.
  const isAhead = lastDay !== null && after.slice(0, lastDay.length) > lastDay;
  const found = await newestObjects(store, isAhead ? '' : after, lastDay);
  const reaches = found.map(({ place }) => {
    const { position, ahead } = reachOf(place, numbering);
    return position > end ? { position: 0, ahead: true } : { position, ahead };
  });
  const known = new Set<string>();
  if (reaches.some(({ ahead }) => ahead)) {
    // An older state may have forgotten any record, and so reads it again.
    const all = after === '' ? found : await newestObjects(store, '', lastDay);
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

async function newestObjects(
  store: CutStore,
  after: string,
  lastDay: string | null,
): Promise<readonly WrittenObject[]> {
  let names: string[] = [];
  for await (const { name } of store.list(namesBegin, after)) {
    const isLater = lastDay !== null && name.slice(0, lastDay.length) > lastDay;
    if (stemIn(name) === null || isLater) continue;
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
