// The tree over the records of one page, by which a single record is proven: the hash of a record's
// exact bytes is an entry of it, in the order of the page.

import { hash } from 'node:crypto';
import type { NewPage } from '../contracts/spool.ts';
import { cutRecords } from '../tools/record-list.ts';
import { leafHash } from './merkle.ts';

/** A page as far as its records need it. */
type RecordsPage = Pick<NewPage, 'body' | 'items' | 'kept' | 'slices'>;

/** The bytes of each kept record. Throws a SyntaxError where the body is not JSON. */
export function keptRecords({ body, items, kept, slices }: RecordsPage): readonly Uint8Array[] {
  const { starts, ends, length } = slices ?? cutRecords(body, items);
  return Array.from({ length: kept?.length ?? length }, (_, i) => {
    const at = kept === null ? i : (kept[i] ?? length);
    return body.subarray(starts[at], ends[at]);
  });
}

/** The leaf of a record: that of the entry that is the SHA-256 of its bytes. */
export function recordLeaf(record: Uint8Array): Buffer {
  return leafHash(hash('sha256', record, 'buffer'));
}
