// An object store in memory, for tests that read thousands of archives which differ in a bit.
import type { ObjectStore } from '../../../src/objects/store.ts';

/** The objects, which may be changed beside it; what readers do not call is not there. */
export function memoryStore(files: ReadonlyMap<string, Uint8Array>): ObjectStore {
  const never = () => Promise.reject(new Error('a reader writes nothing'));
  return {
    place: 'memory',
    create: never,
    replace: never,
    locks: async () => false,
    put: never,
    remove: never,
    async read(
      name,
      { from = 0, length = Number.POSITIVE_INFINITY } = { from: 0, length: 2 ** 40 },
    ) {
      const body = files.get(name)?.subarray(from, from + length);
      return body === undefined ? null : { body, tag: '' };
    },
    async facts(name) {
      const bytes = files.get(name)?.length;
      return bytes === undefined ? null : { bytes, tag: '', metadata: {} };
    },
    async *list(prefix, after = '') {
      for (const name of [...files.keys()].sort()) {
        const bytes = files.get(name)?.length ?? 0;
        if (name.startsWith(prefix) && name > after) yield { name, bytes };
      }
    },
    close: () => undefined,
  };
}
