// A bucket in which nobody can delete or change what an archive has written (S3 Object Lock): each
// object that is written once is locked. Those that others follow are not: the checkpoint and the
// claim of the writer, which are replaced, and tiles and bundles of the right edge, which whole ones
// supersede; locked they would stay, and be paid for, by the hundred thousand.

import { ExportError } from '../../../src/contracts/errors.ts';
import type { Clock } from '../../../src/contracts/tools.ts';
import type { ObjectLock, ObjectStore } from '../../../src/objects/store.ts';

/** `object_lock`, as parsed. */
export interface LockSettings {
  readonly mode: NonNullable<ObjectLock['mode']>;
  /** Milliseconds from when an object is written. */
  readonly retain: number;
}

/** The store with locks; nothing is written where it has none to give. */
export function lockedStore(
  store: ObjectStore,
  { mode, retain }: LockSettings,
  clock: Pick<Clock, 'now'>,
): ObjectStore {
  let checked: Promise<void> | null = null;
  const check = () => {
    checked ??= checkLocks(store).catch((error) => {
      checked = null;
      throw error;
    });
    return checked;
  };
  return {
    place: store.place,
    async create(name, body, about) {
      await check();
      const lock = { mode, until: clock.now() + retain };
      return await store.create(name, body, name.includes('.p/') ? about : { ...about, lock });
    },
    async replace(name, body, tag) {
      await check();
      return await store.replace(name, body, tag);
    },
    async put(name, body) {
      await check();
      await store.put(name, body);
    },
    read: (name, range) => store.read(name, range),
    facts: (name) => store.facts(name),
    list: (prefix, after) => store.list(prefix, after),
    remove: (name) => store.remove(name),
    removeOlder: (name) => store.removeOlder(name),
    hold: (name, isOn) => store.hold(name, isOn),
    locks: () => store.locks(),
    close: () => store.close(),
  };
}

/** Throws where objects cannot be locked. */
export async function checkLocks(store: ObjectStore): Promise<void> {
  if (await store.locks()) return;
  throw new ExportError(
    'sink_refused',
    `object_lock: ${store.place} has no Object Lock, so nothing there can be locked`,
    { next: 'Enable Object Lock on the bucket, or name one that has it; nothing was written.' },
  );
}
