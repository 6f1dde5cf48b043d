// Decodes responses from gzip, deflate, br and zstd (RFC 9110 section 8.4). Upstream's pages are
// compressed fivefold and more, but a few kilobytes can also decode to gigabytes. Invariant: the
// bound on the decoded body is enforced while decoding, never after. Decoding runs on the thread
// pool, so a large page does not block the event loop.

import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import {
  brotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
  gunzip,
  inflate,
  inflateRaw,
  zstdDecompress,
} from 'node:zlib';
import { errorCodeOf, HttpFailure } from '../contracts/index.ts';
import type { Lease } from './bytes-in-flight.ts';
import { cleanText } from './clean-text.ts';
import { free, GrowingBody } from './counted-memory.ts';

/** The Accept-Encoding header, best first: zstd costs a third less than gzip to decode. */
export const acceptEncoding = 'zstd, gzip;q=0.9, br;q=0.8, deflate;q=0.5';

/** The common options of zlib, brotli and zstd. */
interface UnpackOptions {
  readonly maxOutputLength: number;
  readonly chunkSize: number;
}

/** One coding: in one call, and as a stream. */
interface Unpacker {
  readonly whole: (packed: Uint8Array, options: UnpackOptions) => Promise<Uint8Array>;
  readonly stream: (options: { readonly chunkSize: number }) => Transform;
}

/** Limits of decoding. */
interface Bounds {
  readonly bytesMax: number;
  /** Counts decoded bytes; null: not counted. */
  readonly lease: Lease | null;
}

/** More layers than a proxy that compresses a compressed body are an attack on CPU time. */
const codingsMax = 2;
const chunkBytesMin = 64 * 1024;
const chunkBytesMax = 1024 * 1024;
/** A body that decodes to more is decoded in pieces, so that less is in memory at once. */
const wholeBytesMax = 1024 * 1024;

/**
 * The body before `contentEncoding` was applied. Throws HttpFailure: `too_large` beyond `bytesMax`,
 * `cut` if the compressed body ends early, `encoding` if it is damaged or its coding unknown.
 */
export async function decode(
  body: Uint8Array,
  contentEncoding: string,
  bounds: Bounds,
): Promise<Uint8Array> {
  const codings = contentEncoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length > codingsMax) {
    throw new HttpFailure('encoding', `the answer is packed ${codings.length} times over`);
  }
  let decoded = body;
  for (const coding of codings.reverse()) {
    if (decoded.length > 0) decoded = await unpackOnce(decoded, coding, bounds);
  }
  return decoded;
}

/** Magic bytes of compressed data (RFC 1952, section 2.3.1; RFC 8878, section 3.1.1). */
const magics = [
  ['gzip', '1f8b'],
  ['zstd', '28b52ffd'],
] as const;

/** Throws HttpFailure `encoding` for a compressed body without a header for it. */
export function refusePacked(body: Uint8Array): void {
  const start = Buffer.from(body.subarray(0, 4)).toString('hex');
  const name = magics.find(([, magic]) => start.startsWith(magic))?.[0];
  if (name === undefined) return;
  throw new HttpFailure(
    'encoding',
    `the answer is packed with ${name}, and has no Content-Encoding`,
  );
}

async function unpackOnce(packed: Uint8Array, coding: string, bounds: Bounds) {
  const { bytesMax } = bounds;
  const unpacker = unpackers(packed)[coding];
  if (unpacker === undefined) {
    const name = cleanText(coding, 40);
    const message = `the answer has Content-Encoding ${name}, which is none of gzip, deflate, br and zstd`;
    throw new HttpFailure('encoding', message);
  }
  // Fewer, larger steps on the thread pool: 16 KiB steps take twice the time in hand-overs.
  const chunkSize = Math.min(Math.max(packed.length * 4, chunkBytesMin), chunkBytesMax);
  try {
    const maxOutputLength = Math.min(bytesMax, wholeBytesMax);
    return await unpacker.whole(packed, { maxOutputLength, chunkSize });
  } catch (error) {
    if (errorCodeOf(error) !== tooLarge || bytesMax <= wholeBytesMax) {
      throw unpackFailure(error, bytesMax);
    }
  }
  return await unpackInPieces(packed, unpacker, bounds);
}

async function unpackInPieces(packed: Uint8Array, unpacker: Unpacker, bounds: Bounds) {
  const { bytesMax, lease } = bounds;
  const stream = unpacker.stream({ chunkSize: chunkBytesMin });
  const body = new GrowingBody(bytesMax, wholeBytesMax * 2);
  stream.end(packed);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer<ArrayBuffer>>) {
      const { length } = chunk;
      if (body.length + length > bytesMax) throw unpackedTooLarge(bytesMax);
      body.add(chunk);
      // A full chunk is not written to any more; hundreds would wait for the garbage collector.
      if (length === chunk.buffer.byteLength) free(chunk);
      if (lease?.add(length) === false) {
        await new Promise<void>((resolve) => lease.onTurn(resolve));
      }
    }
    return body.take();
  } catch (error) {
    body.drop();
    throw unpackFailure(error, bytesMax);
  } finally {
    stream.destroy();
  }
}

function unpackers(packed: Uint8Array): Readonly<Record<string, Unpacker>> {
  const gzip: Unpacker = { whole: promisify(gunzip), stream: createGunzip };
  return {
    gzip,
    'x-gzip': gzip,
    br: { whole: promisify(brotliDecompress), stream: createBrotliDecompress },
    zstd: { whole: promisify(zstdDecompress), stream: createZstdDecompress },
    deflate: hasZlibHeader(packed)
      ? { whole: promisify(inflate), stream: createInflate }
      : { whole: promisify(inflateRaw), stream: createInflateRaw },
  };
}

/** Some servers send `deflate` without the zlib header that the name requires (RFC 1950, 2.2). */
function hasZlibHeader(packed: Uint8Array): boolean {
  const [first = 0, second = 0] = packed;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

const tooLarge = 'ERR_BUFFER_TOO_LARGE';

function unpackedTooLarge(bytesMax: number, cause?: unknown): HttpFailure {
  return new HttpFailure('too_large', `the unpacked answer exceeds ${bytesMax} bytes`, cause);
}

function unpackFailure(error: unknown, bytesMax: number): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const code = errorCodeOf(error);
  if (code === tooLarge) return unpackedTooLarge(bytesMax, error);
  const message = error instanceof Error ? error.message : '';
  if (/unexpected end of file/i.test(message)) {
    return new HttpFailure('cut', 'the packed answer ends before it is whole', error);
  }
  return new HttpFailure('encoding', `the answer cannot be unpacked (${code || 'damaged'})`, error);
}
