// Removes events from a Parquet object, in a worker thread: reading and writing a large one takes
// seconds, which must not block the event loop.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Erased, EraseJob } from './erase-worker.ts';

/** The object without the events with these uids. Throws the errors of reading it. */
export async function eraseEvents(body: Uint8Array, uids: readonly string[]): Promise<Erased> {
  await using worker = new Worker(new URL('./erase-worker.ts', import.meta.url), {
    workerData: { body, uids } satisfies EraseJob,
  });
  const [erased] = await once(worker, 'message');
  return erased as Erased;
}
