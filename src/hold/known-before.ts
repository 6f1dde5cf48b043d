// Ids of records that a stream had delivered before its pair was configured, from its stored
// identities. Invariant: memory is 8 bytes per identity, and only while a pair uses them.

import { identityBytes } from '../contracts/index.ts';
import type { Statements } from './database.ts';

/** Of a stream and of the lists of its parents, whose names are its own name, a colon and more. */
const ofStream = `SELECT keys FROM identities
  WHERE (stream = ? OR (stream >= ? AND stream < ?)) AND block <= ?`;

/** The first halves of a stream's keys, one per id; sorted. */
export class KnownBefore {
  readonly #ids: BigUint64Array;

  /** From the blocks up to `until`. */
  constructor(statements: Statements, streams: readonly { stream: string; until: number }[]) {
    const blocks: Uint8Array[] = [];
    for (const { stream, until } of streams) {
      for (const { keys } of statements.each(ofStream, stream, `${stream}:`, `${stream};`, until)) {
        if (keys instanceof Uint8Array) blocks.push(keys);
      }
    }
    const count = blocks.reduce((sum, { length }) => sum + Math.floor(length / identityBytes), 0);
    this.#ids = new BigUint64Array(count);
    let next = 0;
    for (const block of blocks) {
      const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
      for (let at = 0; at + identityBytes <= block.length; at += identityBytes) {
        this.#ids[next] = view.getBigUint64(at, true);
        next += 1;
      }
    }
    this.#ids.sort();
  }

  /** How many known records have an id with one of these digests. */
  count(digests: readonly (readonly [number, number])[]): number {
    let count = 0;
    for (const [low, high] of digests) {
      const id = (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
      for (let at = this.#firstOf(id); this.#ids[at] === id; at += 1) count += 1;
    }
    return count;
  }

  #firstOf(id: bigint): number {
    let [low, high] = [0, this.#ids.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ids[middle] ?? 0n) < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
