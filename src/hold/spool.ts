// The spool: what stands between upstream and the sinks, and why nothing is lost. This is its face on the main
// thread; the database is in a worker thread (spool-worker.ts, store.ts). Pages that were just appended or read are
// remembered here with their parsed records, within a bound, so that sinks that keep up never read from disk and
// share one parsed page. A page is remembered only after its commit: no sink ever sees what a power cut could undo.
// Positions and notes, which nobody waits for, wait themselves a little for an append to share its message and its commit with;
// what a sink has reached is noted beside the database meanwhile (reached.ts).

import { Worker } from 'node:worker_threads';
import { ExportError } from '../contracts/errors.ts';
import type { Offset } from '../contracts/event.ts';
import type { Json } from '../contracts/json.ts';
import type { Numbering } from '../contracts/numbering.ts';
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
import type { BackfillProgress, BackfillRequest } from './backfills.ts';
import { type Lock, takeLock } from './lock.ts';
import { Reached } from './reached.ts';
import { RecentPages } from './recent-pages.ts';
import type { Request } from './requests.ts';
import type { Answer, Answers, Ask, Question, WorkerSettings } from './spool-messages.ts';
import type { Landed } from './store.ts';

/** How the spool is opened. */
export interface SpoolSettings extends Omit<WorkerSettings, 'readOnly'> {
  /** Polling pauses while the pages held are larger than this. */
  readonly bytesMax: number;
  /** Bodies remembered in memory, in bytes, also where pages are large; left out: as many as suit their size. */
  readonly recentBytesMax?: number;
}

/** The spool as who has opened it sees it. */
export interface OwnSpool extends Spool {
  /** Names the sinks anew whose positions hold pages back; resolves when no page goes by the names of before. */
  retainFor(sinks: readonly string[]): Promise<void>;
  /** What operators have asked for. */
  requests(): Promise<readonly Request[]>;
  /** Notes how far one has come. */
  noteRequest(request: number, progress: Json): Promise<void>;
  /** Writes down what came of one. */
  settle(request: number, answer: Json): Promise<void>;
  /** A backfill is not read any more, having come so far. */
  leave(backfill: BackfillRequest, last: BackfillProgress): Promise<void>;
  /** A stream's checkpoint was moved by another connection, while nothing of it was under way. */
  moved(stream: string): Promise<void>;
}

const recentBytesDefault = 3 * 1024 * 1024;
/** As far as that follows large pages; one that is larger still is remembered alone. */
const recentLargeBytesMax = 32 * 1024 * 1024;
/** Polling makes way for sinks at work while this share of the remembered bytes is in use. */
const crowdedShare = 0.75;
/** A sink that has not read for this long is not at work: it waits for its far side, and polling does not wait for it. */
const atWorkMs = 200;
/**
 * Making way never slows polling below this many bytes a millisecond: about 8,000 events of 600 bytes a second, so that
 * a sink that is slow for good does not set the pace.
 */
const pollBytesPerMsMin = 5_000;
/** As much where pages are so large that memory holds few of them. */
const largeBytesPerMsMin = 2_000;
/** Polling resumes below this share of the cap, so that it does not flutter at the edge. */
const resumeShare = 0.9;
const tickMs = 1_000;
/** What positions and notes wait for company: as much more may be sent again after a power cut, beside what was under way then. */
const lingerMs = 50;
/** Pieces of memory kept for pages on their way to the worker, and how large they may be. */
const sparesMax = 4;
const spareBytesMax = 4 * 1024 * 1024;
const spareBytesMin = 128 * 1024;

/** Takes the state directory's lock and opens its database. Throws `state_locked`, `state_damaged`, `disk_full`. */
export async function openSpool(settings: SpoolSettings): Promise<OwnSpool> {
  const lock = takeLock(settings.dir);
  const worker = new Worker(new URL('./spool-worker.ts', import.meta.url), {
    workerData: settings satisfies WorkerSettings,
  });
  try {
    const opened = await new Promise<Answers>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', (error) => reject(ended(error as Error)));
    });
    for (const { error } of opened.answers) if (error !== undefined) throw revived(error);
    return new WorkerSpool(settings, worker, lock, opened);
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Who waits for an answer. */
interface Waiter {
  readonly resolve: (result: unknown, memory: readonly ArrayBuffer[]) => void;
  readonly reject: (error: Error) => void;
}

/** Who waits for something to become true. */
interface Watcher {
  readonly look: () => void;
  readonly reject: (error: Error) => void;
}

class WorkerSpool implements OwnSpool {
  readonly numbering: Numbering;
  readonly #settings: SpoolSettings;
  readonly #worker: Worker;
  readonly #lock: Lock;
  readonly #reached: Reached;
  #sinks: readonly string[];
  readonly #recent: RecentPages;
  /** Size of the page appended last. */
  #pageBytes = 0;
  /** Where each sink read last, and when. */
  readonly #readers = new Map<string, { readonly at: Offset; readonly when: number }>();
  /** Memory to copy pages into on their way to the worker. */
  readonly #spare: ArrayBuffer[] = [];
  readonly #unanswered = new Map<number, Waiter>();
  /** What waits for company. All of it can be cloned, so that it never keeps others from being posted. */
  #lingering: Question[] = [];
  #linger: NodeJS.Timeout | undefined;
  readonly #watchers = new Set<Watcher>();
  readonly #tick: NodeJS.Timeout;
  #gauge: SpoolGauge;
  #full = false;
  #diskFull = false;
  #lastId = 0;
  /** Why nothing can be asked any more. */
  #over: Error | null = null;
  #closed = false;

  constructor(settings: SpoolSettings, worker: Worker, lock: Lock, opened: Answers) {
    this.#settings = settings;
    this.#sinks = settings.sinks;
    this.#worker = worker;
    this.#lock = lock;
    this.numbering = opened.numbering ?? { spool: '', epochs: [] };
    this.#reached = new Reached(settings.dir, this.numbering, settings.sinks);
    this.#gauge = opened.gauge ?? { bytes: 0, oldest: 0, end: 0 };
    this.#full = this.#gauge.bytes >= settings.bytesMax;
    this.#diskFull = opened.diskFull === true;
    this.#recent =
      settings.recentBytesMax === undefined
        ? new RecentPages(recentBytesDefault, recentLargeBytesMax)
        : new RecentPages(settings.recentBytesMax);
    worker.on('message', (said: Answers) => this.#settle(said));
    worker.on('error', (error) => this.#fail(ended(error as Error)));
    worker.on('exit', () => this.#fail(ended(new Error('it exited'))));
    // Another process can put dead letters back, and free space returns to the disk when nothing else goes on.
    this.#tick = setInterval(() => {
      this.#wake();
      this.#ask({ op: 'tick' }).catch(() => undefined);
    }, tickMs);
    this.#tick.unref();
  }

  get gauge(): SpoolGauge {
    return this.#gauge;
  }

  async append(entry: Append): Promise<number> {
    const pages = entry.pages.map(({ slices: _, ...page }) => ({
      ...page,
      body: travels(page.body) ? page.body : this.#lend(page.body),
    }));
    const bodies = entry.pages.map(({ body }) => (travels(body) ? body.length : body));
    const block = await this.#ask<number>(
      { op: 'append', entry: { ...entry, pages } },
      {
        transfer: pages.map((page) => page.body.buffer as ArrayBuffer),
        // At once, before any sink is told that there is more: it would read the page back from disk.
        onAnswer: (result, memory) => {
          const back = bodies.map((body, index) =>
            typeof body === 'number'
              ? new Uint8Array(memory[index] ?? new ArrayBuffer(body), 0, body)
              : body,
          );
          this.#takeBack(memory.filter((_, index) => typeof bodies[index] !== 'number'));
          return this.#remember(entry, back, result as Landed);
        },
      },
    );
    if (bodies.some((body) => typeof body === 'number')) await this.#passed();
    return block;
  }

  /** Large pages come one after the other: a moment for the sinks, so that not all of them stand in memory. */
  async #passed(): Promise<void> {
    const courtesy = AbortSignal.timeout(Math.ceil(this.#pageBytes / largeBytesPerMsMin));
    const isRoom = () => this.#recent.bytes <= recentLargeBytesMax;
    await this.#until(isRoom, courtesy).catch(() => undefined);
  }

  #remember(entry: Append, bodies: readonly Uint8Array[], { firsts, block }: Landed): number {
    for (const [index, page] of entry.pages.entries()) {
      const body = bodies[index] ?? page.body;
      const first = firsts[index] ?? 0;
      this.#recent.add({ ...page, body, first, count: page.uids.length / uidBytes });
      this.#pageBytes = body.length;
    }
    return block;
  }

  async read(from: Offset, bytesMax: number, sink?: string): Promise<readonly HeldPage[]> {
    const recent = this.#recent.from(from, bytesMax);
    if (sink !== undefined) this.#noteReader(sink, from);
    if (recent.length > 0) return recent;
    if (from >= this.#gauge.end) return [];
    const bytes = Math.min(bytesMax, this.#recent.coldBytesMax);
    const pages = await this.#ask<readonly HeldPage[]>({ op: 'read', from, bytesMax: bytes });
    return pages.map((page) => this.#recent.addCold(page));
  }

  #noteReader(sink: string, at: Offset): void {
    this.#readers.set(sink, { at, when: performance.now() });
    if (this.#sinks.some((name) => !this.#readers.has(name))) return;
    const passed = Math.min(...this.#sinks.map((name) => this.#readers.get(name)?.at ?? 0));
    this.#recent.forgetBefore(passed);
    this.#wake();
  }

  /** A sink at work has fallen behind what is remembered, or is about to: more pages would have to be read back for it. */
  #crowded(): boolean {
    const { oldest, bytes, bytesMax } = this.#recent;
    const brimming = bytes >= bytesMax * crowdedShare;
    const now = performance.now();
    return [...this.#readers.values()].some(
      ({ at, when }) =>
        now - when < atWorkMs && (oldest === null || at < oldest ? at < this.#gauge.end : brimming),
    );
  }

  async arrival(from: Offset, signal: AbortSignal): Promise<void> {
    await this.#until(() => this.#gauge.end > from, signal);
  }

  async room(signal: AbortSignal): Promise<void> {
    await this.#until(() => !this.#full && !this.#diskFull, signal);
    if (!this.#crowded()) return;
    const courtesyMs = Math.ceil(this.#pageBytes / pollBytesPerMsMin);
    const courtesy = AbortSignal.any([signal, AbortSignal.timeout(courtesyMs)]);
    await this.#until(() => !this.#crowded(), courtesy).catch(() => signal.throwIfAborted());
  }

  requests(): Promise<readonly Request[]> {
    return this.#ask({ op: 'requests' });
  }

  settle(request: number, answer: Json): Promise<void> {
    return this.#ask({ op: 'settle', request, answer });
  }

  leave(backfill: BackfillRequest, last: BackfillProgress): Promise<void> {
    return this.#ask({ op: 'leave', backfill, last });
  }

  noteRequest(request: number, progress: Json): Promise<void> {
    return this.#ask({ op: 'inform', request, progress });
  }

  moved(stream: string): Promise<void> {
    return this.#ask({ op: 'moved', stream });
  }

  async retainFor(sinks: readonly string[]): Promise<void> {
    await this.#ask({ op: 'retain', sinks });
    this.#sinks = sinks;
    this.#reached.keep(sinks);
    for (const sink of this.#readers.keys()) if (!sinks.includes(sink)) this.#readers.delete(sink);
  }

  async progress(sink: string): Promise<SinkProgress> {
    const { position, mark } = await this.#ask<SinkProgress>({ op: 'progress', sink });
    return { position: Math.max(position, this.#reached.at(sink)), mark };
  }

  reached(sink: string, position: Offset): void {
    this.#reached.note(sink, position);
  }

  async acknowledge(sink: string, step: Acknowledgement): Promise<void> {
    await this.#ask({ op: 'acknowledge', sink, step });
  }

  recall(stream: string): Promise<StreamMemory> {
    return this.#ask({ op: 'recall', stream });
  }

  trail(stream: string): Promise<readonly TrailEntry[]> {
    return this.#ask({ op: 'trail', stream });
  }

  entities(stream: string): Promise<ReadonlyMap<string, string>> {
    return this.#ask({ op: 'entities', stream });
  }

  note(kind: 'stream' | 'sink', name: string, facts: Json): void {
    // What status shows is worth no wait and no failure: the next note says it again.
    this.#ask({ op: 'note', kind, name, facts: JSON.stringify(facts) }).catch(() => undefined);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#tick);
    const closing = this.#ask({ op: 'close' }).catch(() => undefined);
    this.#over ??= new Error('the spool is closed');
    await closing;
    this.#fail(this.#over);
    this.#reached.close();
    await this.#worker.terminate();
    this.#lock.release();
  }

  /** Asks the worker; resolves with what `onAnswer` makes of the result, at the moment it comes. */
  #ask<T>(
    ask: Ask,
    how: {
      transfer?: ArrayBuffer[];
      onAnswer?: (result: unknown, memory: readonly ArrayBuffer[]) => T;
    } = {},
  ): Promise<T> {
    if (this.#over !== null) return Promise.reject(this.#over);
    const { transfer = [], onAnswer = (result: unknown) => result as T } = how;
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      if (canLinger(ask) && this.#settings.eager !== true) {
        this.#lingering.push({ id, ...ask });
        this.#linger ??= setTimeout(() => this.#post([]), lingerMs);
      } else this.#post([{ id, ...ask }], transfer);
      this.#unanswered.set(id, {
        resolve: (result, memory) => resolve(onAnswer(result, memory)),
        reject,
      });
    });
  }

  /** Posts what waits for company, and the questions after it. Throws where one of these cannot be cloned. */
  #post(questions: readonly Question[], transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage([...this.#lingering, ...questions], transfer);
    this.#lingering = [];
    clearTimeout(this.#linger);
    this.#linger = undefined;
  }

  /**
   * A copy to be handed to the worker while the original stays in use here. It is made in memory that the worker has
   * handed back, since fresh memory costs more than the copying.
   */
  #lend(body: Uint8Array): Uint8Array {
    const last = this.#spare.pop();
    const fits = last !== undefined && last.byteLength >= body.length;
    const memory = fits ? last : new ArrayBuffer(roundUp(body.length));
    const copy = new Uint8Array(memory, 0, body.length);
    copy.set(body);
    return copy;
  }

  #takeBack(memory: readonly ArrayBuffer[]): void {
    const small = memory.filter(({ byteLength }) => byteLength <= spareBytesMax);
    this.#spare.push(...small.slice(0, sparesMax - this.#spare.length));
  }

  #settle({ answers, gauge, diskFull, damage }: Answers): void {
    this.#diskFull = diskFull === true;
    for (const { id, result, error, memory = [] } of answers) {
      const waiter = this.#unanswered.get(id);
      this.#unanswered.delete(id);
      if (error !== undefined) waiter?.reject(revived(error));
      else waiter?.resolve(result, memory);
    }
    if (gauge !== undefined) this.#measure(gauge);
    if (damage !== undefined) this.#fail(revived(damage));
  }

  #measure(gauge: SpoolGauge): void {
    const grown = gauge.end > this.#gauge.end;
    this.#gauge = gauge;
    const wasFull = this.#full;
    const cap = this.#settings.bytesMax;
    this.#full = wasFull ? gauge.bytes > cap * resumeShare : gauge.bytes >= cap;
    if (grown || wasFull !== this.#full) this.#wake();
  }

  /** The worker is gone: whoever waits is told, and so is whoever asks from now on. */
  #fail(error: Error): void {
    this.#over ??= error;
    for (const waiter of this.#unanswered.values()) waiter.reject(this.#over);
    this.#unanswered.clear();
    for (const watcher of [...this.#watchers]) watcher.reject(this.#over);
  }

  #wake(): void {
    for (const watcher of [...this.#watchers]) watcher.look();
  }

  #until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#over !== null) return Promise.reject(this.#over);
    if (holds()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const finish = () => {
        this.#watchers.delete(watcher);
        signal.removeEventListener('abort', abort);
      };
      const watcher: Watcher = {
        look: () => {
          if (!holds()) return;
          finish();
          resolve();
        },
        reject: (error) => {
          finish();
          reject(error);
        },
      };
      const abort = () => watcher.reject(signal.reason);
      this.#watchers.add(watcher);
      signal.addEventListener('abort', abort);
    });
  }
}

/** True where nobody's next step hangs on the answer. Marks and dead letters are waited for. */
function canLinger(ask: Ask): boolean {
  if (ask.op === 'note') return true;
  if (ask.op !== 'acknowledge') return false;
  return ask.step.mark === undefined && ask.step.deadLetters === undefined;
}

/**
 * True for a body so large that a copy would count: it goes to the worker itself, and comes back with the answer. Bodies of
 * this size have memory to themselves.
 */
function travels(body: Uint8Array): boolean {
  return body.length > spareBytesMax && body.byteOffset === 0;
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / spareBytesMin) * spareBytesMin;
}

function revived(error: NonNullable<Answer['error']>): ExportError {
  return new ExportError(error.code, error.message, { next: error.next });
}

function ended(cause: Error): ExportError {
  return new ExportError('broken_invariant', `the spool's thread has ended: ${cause.message}`, {
    next: 'Start sluice again; what was held is on disk and nothing is lost. If it recurs, report this message.',
    cause,
  });
}
