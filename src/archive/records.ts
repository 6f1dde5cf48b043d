// The Merkle tree over the records of one page, which proves a single record: the hash of a record's exact bytes is an
// entry, in the order of the page.

import { hash } from 'node:crypto';
import type { NewPage } from '../contracts/index.ts';
import { cutRecords } from '../tools/index.ts';
import { emptyRoot, hashBytes, leafHash } from './merkle.ts';

/** The parts of a page that its records need. */
type RecordsPage = Pick<NewPage, 'body' | 'items' | 'kept' | 'slices'>;

/** The bytes of each kept record. Throws a SyntaxError if the body is not JSON. */
export function keptRecords({ body, items, kept, slices }: RecordsPage): readonly Uint8Array[] {
  const { starts, ends, length } = slices ?? cutRecords(body, items);
  return Array.from({ length: kept?.length ?? length }, (_, i) => {
    const at = kept === null ? i : (kept[i] ?? length);
    return body.subarray(starts[at], ends[at]);
  });
}

/** The leaf of a record: the leaf hash of the SHA-256 of its bytes. */
export function recordLeaf(record: Uint8Array): Buffer {
  return leafHash(hash('sha256', record, 'buffer'));
}

/**
 * Leaves of the kept records; `erased` has the hashes of erased ones by index in the body. Throws a SyntaxError if an
 * erased record still has content.
 */
export function recordLeaves(
  records: readonly Uint8Array[],
  kept: Uint32Array | null,
  erased: ReadonlyMap<number, string>,
): readonly Buffer[] {
  return records.map((record, i) => {
    const sha256 = erased.get(kept === null ? i : (kept[i] ?? -1));
    if (sha256 === undefined) return recordLeaf(record);
    if (Buffer.compare(record, erasedText) !== 0) {
      throw new SyntaxError('there are bytes at the position of an erased record');
    }
    return leafHash(Buffer.from(sha256, 'hex'));
  });
}

/** The replacement of an erased record. */
export const erasedText: Uint8Array = Buffer.from('null');

const leaf = Buffer.alloc(1 + hashBytes);
const node = Buffer.alloc(1 + 2 * hashBytes);
node[0] = 1;

/**
 * Root of the tree over the records. This is most of an event's archiving cost, so hashes are passed as Latin-1 text: a
 * Buffer for each would cost more than the hashing.
 */
export function recordsRoot(records: readonly Uint8Array[]): Buffer {
  let row = records.map((record) => {
    leaf.write(hash('sha256', record, 'latin1'), 1, 'latin1');
    return hash('sha256', leaf, 'latin1');
  });
  while (row.length > 1) {
    const above: string[] = [];
    for (let i = 0; i + 1 < row.length; i += 2) {
      node.write(row[i] ?? '', 1, 'latin1');
      node.write(row[i + 1] ?? '', 1 + hashBytes, 'latin1');
      above.push(hash('sha256', node, 'latin1'));
    }
    if (row.length % 2 === 1) above.push(row.at(-1) ?? '');
    row = above;
  }
  return row[0] === undefined ? emptyRoot : Buffer.from(row[0], 'latin1');
}
