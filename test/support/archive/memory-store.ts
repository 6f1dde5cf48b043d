// Object stores in memory: for tests that read thousands of archives which differ in a bit, and for those that have a
// writer killed at each of its steps.

import type { ObjectStore } from '../../../src/objects/store.ts';

/** The objects, which may be changed beside it; what readers do not call is not there. */
export function memoryStore(files: ReadonlyMap<string, Uint8Array>): ObjectStore {
  const never = () => Promise.reject(new Error('a reader writes nothing'));
  return {
    location: 'memory',
    create: never,
    replace: never,
    locks: async () => false,
    put: never,
    remove: never,
    removeOlder: async () => undefined,
    hold: async () => undefined,
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

/** A store that is written to, too; its tags count versions. */
export function writableStore(): ObjectStore {
  const files = new Map<string, Uint8Array>();
  const tags = new Map<string, string>();
  let versions = 0;
  const reader = memoryStore(files);
  const write = (name: string, body: readonly Uint8Array[]) => {
    versions += 1;
    const tag = String(versions);
    files.set(name, Buffer.concat(body));
    tags.set(name, tag);
    return tag;
  };
  const replace: ObjectStore['replace'] = async (name, body, tag) =>
    (tags.get(name) ?? null) === tag ? write(name, body) : null;
  return {
    ...reader,
    create: async (name, body) =>
      (await replace(name, body, null)) === null ? 'exists' : 'created',
    replace,
    async put(name, body) {
      write(name, body);
    },
    async read(name, range) {
      const found = await reader.read(name, range);
      return found === null ? null : { ...found, tag: tags.get(name) ?? '' };
    },
    async facts(name) {
      const found = await reader.facts(name);
      return found && { ...found, tag: tags.get(name) ?? '' };
    },
    async remove(name) {
      files.delete(name);
      tags.delete(name);
    },
  };
}
