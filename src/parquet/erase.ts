// Takes events out of a Parquet object, on a thread of its own: reading and writing a large one takes
// seconds, and whoever asks has others to serve meanwhile.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Erased, EraseJob } from './erase-worker.ts';

/** The object without the events of these uids. Throws what reading it throws. */
export async function eraseEvents(body: Uint8Array, uids: readonly string[]): Promise<Erased> {
  const worker = new Worker(new URL('./erase-worker.ts', import.meta.url), {
    workerData: { body, uids } satisfies EraseJob,
  });
  try {
    const [erased] = await once(worker, 'message');
    return erased as Erased;
  } finally {
    await worker.terminate();
  }
}
