// Answers unpacked from gzip, deflate, br and zstd (RFC 9110 section 8.4). Upstream's pages shrink five times and more,
// but a few kilobytes can also be made to unpack into gigabytes: the bound on the decoded body is enforced while
// unpacking, never after. Unpacking runs on the thread pool, so a large page does not stall the loop.

import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from 'node:zlib';
import { HttpFailure } from '../contracts/tools.ts';

/** What is asked for, best first: zstd costs a third less than gzip to unpack. */
export const acceptEncoding = 'zstd, gzip;q=0.9, br;q=0.8, deflate;q=0.5';

/** The options that zlib, brotli and zstd have in common. */
interface UnpackOptions {
  readonly maxOutputLength: number;
  readonly chunkSize: number;
}

type Unpack = (packed: Uint8Array, options: UnpackOptions) => Promise<Uint8Array>;

/** More than a proxy's re-packing of a packed body is an attack on this machine's time. */
const codingsMax = 2;
const chunkBytesMin = 64 * 1024;
const chunkBytesMax = 1024 * 1024;

/**
 * The body as it was before `contentEncoding` was applied. Throws HttpFailure: `too_large` beyond `bytesMax`, `cut` when
 * the packed body ends early, `encoding` when it is damaged or its coding unknown.
 */
export async function decode(
  body: Uint8Array,
  contentEncoding: string,
  bytesMax: number,
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
    if (decoded.length > 0) decoded = await unpackOnce(decoded, coding, bytesMax);
  }
  return decoded;
}

async function unpackOnce(packed: Uint8Array, coding: string, bytesMax: number) {
  const unpack = unpackers(packed)[coding];
  if (unpack === undefined) {
    throw new HttpFailure('encoding', 'the answer is packed in a way that was not asked for');
  }
  // Fewer, larger steps on the thread pool: a page in 16 KiB steps costs twice the time in hand-overs.
  const chunkSize = Math.min(Math.max(packed.length * 4, chunkBytesMin), chunkBytesMax);
  try {
    return await unpack(packed, { maxOutputLength: bytesMax, chunkSize });
  } catch (error) {
    throw unpackFailure(error, bytesMax);
  }
}

function unpackers(packed: Uint8Array): Readonly<Record<string, Unpack>> {
  const gzip: Unpack = promisify(gunzip);
  return {
    gzip,
    'x-gzip': gzip,
    br: promisify(brotliDecompress),
    zstd: promisify(zstdDecompress),
    deflate: hasZlibHeader(packed) ? promisify(inflate) : promisify(inflateRaw),
  };
}

/** Some servers send `deflate` without the zlib header that the name stands for (RFC 1950 section 2.2). */
function hasZlibHeader(packed: Uint8Array): boolean {
  const [first = 0, second = 0] = packed;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

function unpackFailure(error: unknown, bytesMax: number): HttpFailure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ERR_BUFFER_TOO_LARGE') {
    return new HttpFailure('too_large', `the unpacked answer exceeds ${bytesMax} bytes`, error);
  }
  const message = error instanceof Error ? error.message : '';
  if (/unexpected end of file/i.test(message)) {
    return new HttpFailure('cut', 'the packed answer ends before it is whole', error);
  }
  return new HttpFailure('encoding', `the answer cannot be unpacked (${code || 'damaged'})`, error);
}
