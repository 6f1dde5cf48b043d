// Objects of a few lines: the checkpoint, the writer's claim, holds and requests. Others can write to the store, so
// none of them is read completely whatever its length: a file of a gigabyte, sparse or not, is damaged and costs no
// more than the longest valid one.

import type { Json } from '../contracts/index.ts';
import type { ObjectContent, ObjectStore } from '../objects/index.ts';

const bytesMaxUsual = 1024 * 1024;

/**
 * An object's bytes and tag; null: it does not exist. One longer than `bytesMax` has no bytes, which every reader
 * treats as damage; its tag is valid, so it can be replaced.
 */
export async function readSmall(
  store: Pick<ObjectStore, 'read'>,
  name: string,
  bytesMax = bytesMaxUsual,
): Promise<ObjectContent | null> {
  const found = await store.read(name, { from: 0, length: bytesMax + 1 });
  if (found === null || found.body.length <= bytesMax) return found;
  return { ...found, body: new Uint8Array(0) };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses bytes as JSON in UTF-8. Throws a SyntaxError without any of the content, which may be any file of the machine.
 */
export function jsonIn(bytes: Uint8Array): Json {
  try {
    return JSON.parse(utf8.decode(bytes)) as Json;
  } catch {
    throw new SyntaxError('it is no JSON in UTF-8');
  }
}
