// Segments contain bodies of pages, byte for byte, so `zstd -d` opens them without sluice. Each page has two frames
// (RFC 8878): the body as a zstd frame, and a skippable frame, which decompressors ignore, with the facts on its
// records that are not in the body:
//
// - uids: 32 bytes each, of the kept records in order
// - kept: if not all records were kept, the index of each kept one: 32 bits, little-endian
//
// Invariants: a page can be read alone, from its entry's `at` on; no bytes are trusted before their hash matches the
// entry.

import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompressSync } from 'node:zlib';
import { uidBytes } from '../contracts/index.ts';
import type { ObjectRange } from '../objects/index.ts';
import type { PageEntry } from './entries.ts';

const compress = promisify(zstdCompress);
const level = 3;
const chunkBytesMin = 16 * 1024;
const chunkBytesMax = 1024 * 1024;

/** A page is text during processing, and this is V8's longest string. */
export const pageBytesMax: number = 2 ** 29;

const skippable = 0x184d2a50;
const headerBytes = 8;
const indexBytes = 4;

/** A body as a frame; compressed off the event loop. */
export function compressBody(body: Uint8Array): Promise<Buffer> {
  const params = {
    [constants.ZSTD_c_compressionLevel]: level,
    [constants.ZSTD_c_checksumFlag]: 1,
  };
  // Most bodies are then one chunk, and each chunk costs a turn of the event loop.
  const chunkSize = Math.min(Math.max(body.length >> 2, chunkBytesMin), chunkBytesMax);
  return compress(body, { params, chunkSize, pledgedSrcSize: body.length });
}

/** The facts on a page's records that are not in the body. */
export interface KeptRecords {
  /** `uidBytes` each, for the kept records in order. */
  readonly uids: Uint8Array;
  /** Indices of these records in the body; null: all. */
  readonly kept: Uint32Array | null;
}

/** The content of the frame after a body. */
export function encodeKept({ uids, kept }: KeptRecords): Buffer {
  const indexes = Buffer.allocUnsafe((kept?.length ?? 0) * indexBytes);
  for (const [i, index] of kept?.entries() ?? []) indexes.writeUInt32LE(index, i * indexBytes);
  return Buffer.concat([uids, indexes]);
}

/**
 * The uids after a page's body with the indices of their records; they stay when records are erased. Throws a
 * SyntaxError if they do not match the entry.
 */
export async function keptUids(
  reader: { named(kind: 'segment', name: string, range: ObjectRange): Promise<Uint8Array | null> },
  entry: PageEntry,
): Promise<KeptRecords> {
  const content = await reader.named('segment', entry.body.segment, uidsRange(entry));
  if (content !== null && hash('sha256', content, 'hex') === entry.uids.sha256) {
    return decodeKept(content, entry);
  }
  throw new SyntaxError('the uids after the body differ from the entry');
}

/** Parses the frame's content. Throws a SyntaxError if its length does not match the entry. */
function decodeKept(bytes: Uint8Array, entry: Pick<PageEntry, 'records' | 'kept'>): KeptRecords {
  const all = entry.kept === entry.records;
  const uidsEnd = entry.kept * uidBytes;
  if (bytes.length !== uidsEnd + (all ? 0 : entry.kept * indexBytes)) {
    throw new SyntaxError('the uids behind a body are not as many as its entry says');
  }
  const indexes = Buffer.from(bytes.subarray(uidsEnd));
  return {
    uids: bytes.subarray(0, uidsEnd),
    kept: all
      ? null
      : Uint32Array.from({ length: entry.kept }, (_, i) => indexes.readUInt32LE(i * indexBytes)),
  };
}

/** A skippable frame with this content. */
export function skippableFrame(content: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + content.length);
  frame.writeUInt32LE(skippable, 0);
  frame.writeUInt32LE(content.length, 4);
  frame.set(content, headerBytes);
  return frame;
}

/** Turns these bytes of a segment into a skippable frame of zeros, which erases their content. */
export function blankFrame(frame: Buffer): void {
  frame.fill(0);
  frame.writeUInt32LE(skippable, 0);
  frame.writeUInt32LE(frame.length - headerBytes, 4);
}

/** The byte range of a page in its segment: both frames. */
export function pageRange({ body, uids }: Pick<PageEntry, 'body' | 'uids'>) {
  return { from: body.at, length: body.length + headerBytes + uids.bytes };
}

/** The byte range of the uids and indices after a page's body. */
export function uidsRange({ body, uids }: Pick<PageEntry, 'body' | 'uids'>) {
  return { from: body.at + body.length + headerBytes, length: uids.bytes };
}

/** A page's body, and the indices of its kept records. */
export interface ArchivedPage extends KeptRecords {
  readonly body: Buffer<ArrayBuffer>;
}

/** Parses a page from the bytes of its range. Throws a SyntaxError if they do not match the entry. */
export function readPage(entry: PageEntry, range: Uint8Array): ArchivedPage {
  const { body, uids } = entry;
  if (range.length !== pageRange(entry).length) throw new SyntaxError('the segment ends too early');
  const tail = Buffer.from(range.subarray(body.length));
  const content = tail.subarray(headerBytes);
  const isFramed = tail.readUInt32LE(0) === skippable && tail.readUInt32LE(4) === uids.bytes;
  if (!isFramed || hash('sha256', content, 'hex') !== uids.sha256) {
    throw new SyntaxError('the uids after the body differ from the entry');
  }
  const bytes = decompressed(range.subarray(0, body.length), body.bytes);
  if (bytes.length !== body.bytes || hash('sha256', bytes, 'hex') !== body.sha256) {
    throw new SyntaxError('the body differs from the entry');
  }
  return { body: bytes, ...decodeKept(content, entry) };
}

function decompressed(frame: Uint8Array, bytesMax: number): Buffer<ArrayBuffer> {
  if (bytesMax > pageBytesMax) throw new SyntaxError('the body is longer than any can be');
  try {
    // In one chunk and on this thread: for most pages a thread switch costs more than the work.
    return zstdDecompressSync(frame, {
      maxOutputLength: Math.max(bytesMax, 1),
      chunkSize: Math.max(bytesMax + 1, 64),
    });
  } catch (error) {
    throw new SyntaxError('the body cannot be decompressed', { cause: error });
  }
}
