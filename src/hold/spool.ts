// The spool: what stands between upstream and the sinks, and why nothing is lost. This is its face on the main
// thread; the database is in a worker thread (spool-worker.ts, store.ts). Pages that were just appended or read are
// remembered here with their parsed records, within a bound, so that sinks that keep up never read from disk and
// share one parsed page. A page is remembered only after its commit: no sink ever sees what a power cut could undo.

import { Worker } from 'node:worker_threads';
import { ExportError } from '../contracts/errors.ts';
import type { Offset } from '../contracts/event.ts';
import type { Json } from '../contracts/json.ts';
import type {
  Acknowledgement,
  Append,
  HeldPage,
  SinkProgress,
  Spool,
  SpoolGauge,
  StreamMemory,
  TrailEntry,
} from '../contracts/spool.ts';
import { uidBytes } from '../contracts/spool.ts';
import { type Lock, takeLock } from './lock.ts';
import { RecentPages } from './recent-pages.ts';
import type { Answer, Ask, WorkerSettings } from './spool-messages.ts';
import type { Landed } from './store.ts';

/** How the spool is opened. */
export interface SpoolSettings extends Omit<WorkerSettings, 'readOnly'> {
  /** Polling pauses while the pages held are larger than this. */
  readonly bytesMax: number;
  /** Bodies remembered in memory, in bytes; their parsed form needs about four times that. */
  readonly recentBytesMax?: number;
}

const recentBytesMaxDefault = 16 * 1024 * 1024;
/** Polling resumes below this share of the cap, so that it does not flutter at the edge. */
const resumeShare = 0.9;
const tickMs = 1_000;

/** Takes the state directory's lock and opens its database. Throws `state_locked`, `state_damaged`, `disk_full`. */
export async function openSpool(settings: SpoolSettings): Promise<Spool> {
  const lock = takeLock(settings.dir);
  const worker = new Worker(new URL('./spool-worker.ts', import.meta.url), {
    workerData: settings satisfies WorkerSettings,
  });
  try {
    const opened = await new Promise<Answer>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    if (opened.error !== undefined) throw revived(opened.error);
    return new WorkerSpool(settings, worker, lock, opened);
  } catch (error) {
    lock.release();
    throw error;
  }
}

interface Waiter {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

class WorkerSpool implements Spool {
  readonly id: string;
  readonly #settings: SpoolSettings;
  readonly #worker: Worker;
  readonly #lock: Lock;
  readonly #recent: RecentPages;
  readonly #unanswered = new Map<number, Waiter>();
  readonly #watchers = new Set<() => void>();
  readonly #tick: NodeJS.Timeout;
  #gauge: SpoolGauge;
  #full = false;
  #lastId = 0;
  #closed = false;

  constructor(settings: SpoolSettings, worker: Worker, lock: Lock, opened: Answer) {
    this.#settings = settings;
    this.#worker = worker;
    this.#lock = lock;
    this.id = String(opened.result);
    this.#gauge = opened.gauge ?? { bytes: 0, oldest: 0, end: 0 };
    this.#recent = new RecentPages(settings.recentBytesMax ?? recentBytesMaxDefault);
    worker.on('message', (answer: Answer) => this.#settle(answer));
    worker.on('error', (error) => this.#fail(error as Error));
    worker.on('exit', () => this.#fail(new Error('the spool thread has ended')));
    // Another process can put dead letters back, and free space returns to the disk when nothing else goes on.
    this.#tick = setInterval(() => void this.#ask({ op: 'tick' }).catch(() => undefined), tickMs);
    this.#tick.unref();
  }

  get gauge(): SpoolGauge {
    return this.#gauge;
  }

  async append(entry: Append): Promise<number> {
    const pages = entry.pages.map(({ parsed: _, ...page }) => ({
      ...page,
      body: owned(page.body),
    }));
    const landed = (await this.#ask(
      { op: 'append', entry: { ...entry, pages } },
      pages.map((page) => page.body.buffer as ArrayBuffer),
    )) as Landed;
    for (const [index, page] of entry.pages.entries()) {
      const first = landed.firsts[index] ?? 0;
      this.#recent.add({ ...page, first, count: page.uids.length / uidBytes });
    }
    this.#wake();
    return landed.block;
  }

  async read(from: Offset, bytesMax: number): Promise<readonly HeldPage[]> {
    const recent = this.#recent.from(from, bytesMax);
    if (recent.length > 0) return recent;
    if (from >= this.#gauge.end) return [];
    const pages = (await this.#ask({ op: 'read', from, bytesMax })) as readonly HeldPage[];
    return pages.map((page) => this.#recent.addCold(page));
  }

  async arrival(from: Offset, signal: AbortSignal): Promise<void> {
    await this.#until(() => this.#gauge.end > from, signal);
  }

  async room(signal: AbortSignal): Promise<void> {
    await this.#until(() => !this.#full, signal);
  }

  progress(sink: string): Promise<SinkProgress> {
    return this.#ask({ op: 'progress', sink }) as Promise<SinkProgress>;
  }

  async acknowledge(sink: string, step: Acknowledgement): Promise<void> {
    await this.#ask({ op: 'acknowledge', sink, step });
  }

  recall(stream: string): Promise<StreamMemory> {
    return this.#ask({ op: 'recall', stream }) as Promise<StreamMemory>;
  }

  trail(stream: string): Promise<readonly TrailEntry[]> {
    return this.#ask({ op: 'trail', stream }) as Promise<readonly TrailEntry[]>;
  }

  entities(stream: string): Promise<ReadonlyMap<string, string>> {
    return this.#ask({ op: 'entities', stream }) as Promise<ReadonlyMap<string, string>>;
  }

  note(kind: 'stream' | 'sink', name: string, facts: Json): void {
    // What status shows is worth no wait and no failure: the next note says it again.
    this.#ask({ op: 'note', kind, name, facts }).catch(() => undefined);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    clearInterval(this.#tick);
    await this.#ask({ op: 'close' }).catch(() => undefined);
    this.#closed = true;
    await this.#worker.terminate();
    this.#lock.release();
  }

  #ask(ask: Ask, transfer: ArrayBuffer[] = []): Promise<unknown> {
    if (this.#closed) return Promise.reject(new Error('the spool is closed'));
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise<unknown>((resolve, reject) => {
      this.#unanswered.set(id, { resolve, reject });
      this.#worker.postMessage({ id, ...ask }, transfer);
    });
  }

  #settle(answer: Answer): void {
    if (answer.gauge !== undefined) this.#measure(answer.gauge);
    const waiter = this.#unanswered.get(answer.id);
    this.#unanswered.delete(answer.id);
    if (answer.error !== undefined) waiter?.reject(revived(answer.error));
    else waiter?.resolve(answer.result as never);
  }

  #measure(gauge: SpoolGauge): void {
    const grown = gauge.end > this.#gauge.end;
    this.#gauge = gauge;
    const wasFull = this.#full;
    const cap = this.#settings.bytesMax;
    this.#full = wasFull ? gauge.bytes > cap * resumeShare : gauge.bytes >= cap;
    if (grown || wasFull !== this.#full) this.#wake();
  }

  #fail(error: Error): void {
    if (this.#closed) return;
    for (const waiter of this.#unanswered.values()) waiter.reject(error);
    this.#unanswered.clear();
  }

  #wake(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  #until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (holds()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const finish = () => {
        this.#watchers.delete(watcher);
        signal.removeEventListener('abort', abort);
      };
      const watcher = () => {
        if (!holds()) return;
        finish();
        resolve();
      };
      const abort = () => {
        finish();
        reject(signal.reason);
      };
      this.#watchers.add(watcher);
      signal.addEventListener('abort', abort);
    });
  }
}

/** A copy whose buffer is its own, to be handed to the worker while the original stays in use here. */
function owned(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

function revived(error: NonNullable<Answer['error']>): ExportError {
  return new ExportError(error.code, error.message, { next: error.next });
}
