// The worker thread of erase.ts: removes events from one object and ends. Invariant: every other
// event of the object is in the result, unchanged.

import { parentPort, workerData } from 'node:worker_threads';
import { footerFacts, readEvents } from './read.ts';
import { Rows } from './rows.ts';
import { tableOf } from './schema.ts';
import { writeParquet } from './write.ts';

/** The thread's input. */
export interface EraseJob {
  readonly body: Uint8Array;
  readonly uids: readonly string[];
}

/** The thread's result. */
export interface Erased {
  /** The object without these events; null if no others remain. */
  readonly body: Uint8Array | null;
  readonly rows: number;
  /** Uids of the removed rows, one per row. */
  readonly gone: readonly string[];
}

const { body, uids } = workerData as EraseJob;
parentPort?.postMessage(await without(body, new Set(uids)));

async function without(body: Uint8Array, uids: ReadonlySet<string>): Promise<Erased> {
  const gone: string[] = [];
  let rows: Rows | null = null;
  for await (const events of readEvents(body)) {
    for (const event of events) {
      const { uid } = event.metadata;
      if (uids.has(uid)) gone.push(uid);
      else {
        rows ??= new Rows(tableOf(event.class_uid));
        rows.add(event);
      }
    }
  }
  if (rows === null) return { body: null, rows: 0, gone };
  const { count } = rows;
  return { body: await writeParquet(rows, footerFacts(body)), rows: count, gone };
}
