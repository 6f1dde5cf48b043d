// The digest of an object's content, by which a parent's state knows what was reported last.

import { scanBody } from '../../tools/record-list.ts';

/** Path of an object's id, and paths that are left out. */
export interface ObjectRules {
  readonly id: string | null;
  readonly ignore?: readonly string[] | undefined;
}

/** Of an array that holds the object alone; paths in `ignore` are left out. */
export function objectDigest(array: Buffer, { id, ignore }: ObjectRules): string {
  const { records } = scanBody(array, '', id, ignore);
  return `${records?.contents[0]}.${records?.contents[1]}`;
}
