// The list of uids at an object's end, for readers that must know the bucket's events and cannot
// read every format. Decoders of the compression skip it: in zstd as skippable frames (RFC 8878
// section 3.1.2), in gzip as extra fields of empty members (RFC 1952 section 2.3.1). The data is
// one frame or member before it, so that a decoder of a single one reads everything.

import type { Offset } from '../../../src/contracts/index.ts';
import { keptDigits } from '../../shared/known-events.ts';

/** How objects are compressed. */
export type ObjectCompression = 'gzip' | 'zstd';

/** Kept bytes of a uid. */
export const keptBytes = keptDigits / 2;

/** An extra field holds 64 KiB, including its header; a frame could hold more. */
const uidsOfPiece = 4_000;
const zstdMagic = 0x184d2a5c;
const gzipHead = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255];
/** An empty block, the CRC-32 of nothing, its length. */
const gzipTail = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const headBytes: Readonly<Record<ObjectCompression, number>> = { gzip: 16, zstd: 8 };
const tailBytes: Readonly<Record<ObjectCompression, number>> = { gzip: 10, zstd: 0 };

/** The list as it follows the data. */
export function uidList(uids: Uint8Array, method: ObjectCompression): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < uids.length; at += uidsOfPiece * keptBytes) {
    const piece = uids.subarray(at, at + uidsOfPiece * keptBytes);
    const head = Buffer.alloc(headBytes[method]);
    if (method === 'zstd') {
      head.writeUInt32LE(zstdMagic, 0);
      head.writeUInt32LE(piece.length, 4);
    } else {
      head.set(gzipHead);
      head.writeUInt16LE(piece.length + 4, 10);
      head.write('SL', 12, 'latin1');
      head.writeUInt16LE(piece.length, 14);
    }
    pieces.push(head, piece, ...(method === 'gzip' ? [Uint8Array.from(gzipTail)] : []));
  }
  return Buffer.concat(pieces);
}

/** Length of the list of `count` uids. */
export function uidListBytes(count: number, method: ObjectCompression): number {
  const pieces = Math.ceil(count / uidsOfPiece);
  return count * keptBytes + pieces * (headBytes[method] + tailBytes[method]);
}

/** The kept uids in a list; the caller has cut the list's bytes from the object's end. */
export function uidsInList(list: Uint8Array, count: Offset, method: ObjectCompression): string[] {
  const uids: string[] = [];
  let at = 0;
  for (let left = count; left > 0; left -= uidsOfPiece) {
    at += headBytes[method];
    const end = at + Math.min(left, uidsOfPiece) * keptBytes;
    for (; at < end; at += keptBytes) {
      uids.push(Buffer.from(list.subarray(at, at + keptBytes)).toString('hex'));
    }
    at += tailBytes[method];
  }
  return uids;
}
