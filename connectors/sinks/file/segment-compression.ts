// Compresses finished segments in the background, one after the other. A finished segment never
// changes, so this can be done at any time and repeated after a crash. Invariant: the compressed
// file gets its name only when it is complete and durable, and only then is the original deleted. A
// failure is logged and retried at the next start; the segment is safe.

import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { errorCodeOf, flushNames, type Log } from '../../../src/contracts/index.ts';
import { fileMode } from './durable-files.ts';

/** The compression of one file sink. */
export interface SegmentCompression {
  add(path: string): void;
  /** Resolves when all added segments are compressed or have failed. */
  done(): Promise<void>;
}

/** Starts idle; `add` begins the work. */
export function compressSegments(log: Log): SegmentCompression {
  let work = Promise.resolve();
  return {
    add: (path) => {
      work = work.then(async () => {
        const temporary = `${path}.gz.part`;
        try {
          await compressSegment(path, temporary);
        } catch (error) {
          // On a full disk its space is needed.
          await rm(temporary, { force: true }).catch(() => undefined);
          const facts = { path, error: errorCodeOf(error) };
          log.warn(
            'file_not_compressed',
            'a finished file could not be compressed; retrying at the next start',
            facts,
          );
        }
      });
    },
    done: () => work,
  };
}

async function compressSegment(path: string, temporary: string): Promise<void> {
  await pipeline(
    createReadStream(path, { highWaterMark: 256 * 1024 }),
    // The default level would cost as much as fetching, storing and formatting together.
    createGzip({ level: 1 }),
    createWriteStream(temporary, { mode: fileMode, flush: true }),
  );
  await rename(temporary, `${path}.gz`);
  await flushNames(path);
  await rm(path);
}
