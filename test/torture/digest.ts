// Contents are compared by digest: hours of events in full, in every sink, would not fit into memory.

import { hash } from 'node:crypto';

/** The same for the same content, and for no other that a run will meet. */
export function digestOf(content: string): string {
  return hash('sha1', content, 'base64');
}
