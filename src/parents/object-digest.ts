// The digest of an object's content, by which a parent's state identifies the last reported content.

import { scanBody } from '../tools/index.ts';

/** Path of an object's id, and ignored paths. */
export interface ObjectRules {
  readonly id: string | null;
  readonly ignore?: readonly string[] | undefined;
}

/** The digest of an array that contains only the object, without the paths in `ignore`. */
export function objectDigest(array: Buffer, { id, ignore }: ObjectRules): string {
  const { records } = scanBody(array, '', id, ignore);
  return `${records?.contents[0]}.${records?.contents[1]}`;
}
