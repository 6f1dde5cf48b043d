// A bucket in which an archive's objects cannot be deleted or changed (S3 Object Lock): each object
// that is written once is locked. Objects that are replaced are not locked: the checkpoint and the
// writer's claim, and partial tiles and bundles of the right edge, which full ones supersede;
// locked ones would stay, and cost storage, by the hundred thousand.

import { type Clock, ExportError } from '../../../src/contracts/index.ts';
import type { ObjectLock, ObjectStore } from '../../../src/objects/index.ts';

/** `object_lock`, as parsed. */
export interface LockSettings {
  readonly mode: NonNullable<ObjectLock['mode']>;
  /** Milliseconds from the object's write. */
  readonly retain: number;
}

/** The store with locks; writes fail if it does not support them. */
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
    location: store.location,
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

/** Throws if objects cannot be locked. */
export async function checkLocks(store: ObjectStore): Promise<void> {
  if (await store.locks()) return;
  throw new ExportError(
    'sink_refused',
    `object_lock: ${store.location} has no Object Lock, so nothing there can be locked`,
    { next: 'Enable Object Lock on the bucket, or name one that has it; nothing was written.' },
  );
}
