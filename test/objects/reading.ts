// Looking into object stores.

import type { ObjectStore } from '../../src/objects/store.ts';

/** An object as text; null where there is none. */
export async function textOf(store: ObjectStore, name: string): Promise<string | null> {
  const found = await store.read(name);
  return found === null ? null : Buffer.from(found.body).toString('utf8');
}

/** All that comes, in its order. */
export async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
