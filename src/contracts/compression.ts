// Compression of request bodies (RFC 9110 section 8.4, `Content-Encoding`). Both methods use level
// 1: on event text it reaches most of the possible ratio in a fraction of the default level's time.
// The work runs on Node's thread pool, so that other sinks continue meanwhile.

import { promisify } from 'node:util';
import { constants, gzip, zstdCompress } from 'node:zlib';
import { z } from 'zod';

const gzipAsync = promisify(gzip);
const zstdAsync = promisify(zstdCompress);

/** How a request body is compressed. */
export type Compression = 'none' | 'gzip' | 'zstd';

/** The setting `compression` with its default. */
export function compression(byDefault: Compression) {
  return z.enum(['none', 'gzip', 'zstd']).default(byDefault);
}

/** Larger pieces mean fewer switches between the thread pool and the event loop. */
const pieceBytesMin = 16 * 1024;
const pieceBytesMax = 256 * 1024;

/** The compressed body. The caller sets `content-encoding`, and omits the header for `none`. */
export async function compressed(body: Uint8Array, method: Compression): Promise<Uint8Array> {
  const chunkSize = Math.min(Math.max(body.length >> 2, pieceBytesMin), pieceBytesMax);
  switch (method) {
    case 'none':
      return body;
    case 'gzip':
      return await gzipAsync(body, { chunkSize, level: 1 });
    case 'zstd':
      return await zstdAsync(body, {
        chunkSize,
        params: { [constants.ZSTD_c_compressionLevel]: 1 },
      });
  }
}
