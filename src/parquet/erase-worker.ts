// The thread of erase.ts: takes events out of one object and ends. What must stay true: every other
// event of the object is in what it makes, as it was.

import { parentPort, workerData } from 'node:worker_threads';
import { footerFacts, readEvents } from './read.ts';
import { Rows } from './rows.ts';
import { tableOf } from './schema.ts';
import { writeParquet } from './write.ts';

/** What the thread is given. */
export interface EraseJob {
  readonly body: Uint8Array;
  readonly uids: readonly string[];
}

/** What it answers. */
export interface Erased {
  /** The object without these events; null where it has no others. */
  readonly body: Uint8Array | null;
  readonly rows: number;
  /** Of the rows that it had, one for each. */
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
