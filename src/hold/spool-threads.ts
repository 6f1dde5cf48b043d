// The threads of this process that own state databases. A thread of Node has a heap of its own, which costs more than an idle
// spool: so the spools of a process with many shards share threads. Invariants: a spool that is large, was slow, or was in a thread
// that has ended, gets a thread of its own, so that it delays or ends no other one; a thread ends with its last spool.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { databaseName } from './schema.ts';
import type { SpoolOpening, WorkerSettings } from './spool-operations.ts';

/** The spools of one thread. */
const spoolsMax = 32;
/** A larger database may have requests that take long. */
const sharedBytesMax = 64 * 1024 * 1024;

/** A spool in a thread. */
export interface ThreadPlace {
  /** Its messages (spool-operations.ts). The port closes after the database. */
  readonly port: MessagePort;
  /** From its next start on, the spool gets a thread of its own. */
  isolate(): void;
  /** Resolves when the database is closed, and its thread has ended if it was the last one. */
  leave(): Promise<void>;
}

/** How a spool is opened in a thread. */
interface ThreadOptions {
  /** False: it gets a thread of its own. */
  readonly sharesThread: boolean;
  /** Called when the thread has ended, or has closed the spool. */
  readonly ended: (error: Error) => void;
}

const shared = new Set<StoreThread>();
/** State directories whose spools get a thread of their own. */
const isolated = new Set<string>();

/** Opens a spool in a thread; its first message reports the result. */
export function openInThread(
  settings: WorkerSettings,
  { sharesThread, ended }: ThreadOptions,
): ThreadPlace {
  const { dir } = settings;
  if (!sharesThread || isolated.has(dir) || bytesOf(dir) > sharedBytesMax) {
    return new StoreThread().open(settings, ended);
  }
  let thread = [...shared].find(({ hasRoom }) => hasRoom);
  if (thread === undefined) {
    thread = new StoreThread();
    shared.add(thread);
  }
  return thread.open(settings, ended);
}

/** One thread. */
class StoreThread {
  readonly #worker = new Worker(new URL('./spool-worker.ts', import.meta.url));
  readonly #open = new Map<MessagePort, { readonly dir: string; ended(error: Error): void }>();
  #isOver = false;

  constructor() {
    this.#worker.on('error', (error) => this.#end(error as Error));
    this.#worker.on('exit', () => this.#end(new Error('it exited')));
  }

  get hasRoom(): boolean {
    return !this.#isOver && this.#open.size < spoolsMax;
  }

  open(settings: WorkerSettings, ended: (error: Error) => void): ThreadPlace {
    const { port1: port, port2 } = new MessageChannel();
    const { dir } = settings;
    this.#open.set(port, { dir, ended });
    const closed = Promise.withResolvers<void>();
    port.once('close', () => {
      closed.resolve();
      ended(new Error('it was closed'));
    });
    this.#worker.postMessage({ settings, port: port2 } satisfies SpoolOpening, [port2]);
    return {
      port,
      isolate: () => void isolated.add(dir),
      leave: async () => {
        await closed.promise;
        this.#open.delete(port);
        if (this.#open.size > 0) return;
        this.#isOver = true;
        shared.delete(this);
        await this.#worker.terminate();
      },
    };
  }

  #end(error: Error): void {
    this.#isOver = true;
    shared.delete(this);
    // One of them may have ended it.
    if (this.#open.size > 1) for (const { dir } of this.#open.values()) isolated.add(dir);
    for (const { ended } of this.#open.values()) ended(error);
  }
}

/** The size of the database in a state directory; 0: there is none. */
function bytesOf(dir: string): number {
  return statSync(join(dir, databaseName), { throwIfNoEntry: false })?.size ?? 0;
}
