// Compression of request bodies (RFC 9110 section 8.4, `Content-Encoding`). Level 1 of either
// method: on event text it takes most of what there is to gain at a fraction of the default level's
// time. The work is done on Node's thread pool, so that other sinks go on meanwhile.

import { promisify } from 'node:util';
import { constants, gzip, zstdCompress } from 'node:zlib';
import { z } from 'zod';

const gzipAsync = promisify(gzip);
const zstdAsync = promisify(zstdCompress);

/** How a request body is compressed. */
export type Compression = 'none' | 'gzip' | 'zstd';

/** The setting `compression`, with what it is when left out. */
export function compression(byDefault: Compression) {
  return z.enum(['none', 'gzip', 'zstd']).default(byDefault);
}

/** Each piece of the result is a turn of its own between the thread pool and the event loop. */
const pieceBytesMin = 16 * 1024;
const pieceBytesMax = 256 * 1024;

/** The body compressed. The caller names the method as `content-encoding`, none for `none`. */
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
