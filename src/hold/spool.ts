// The spool: the durable queue between upstream and the sinks, which makes sure that nothing is
// lost. This is its interface on the main thread; the database is in a worker thread
// (spool-thread.ts, spool-server.ts, store.ts). Lately appended or read pages are cached here with
// their parsed records, within a bound, so that sinks that keep up never read from disk and share
// one parsed page. Invariant: a page is cached only after its commit, so no sink sees what a power
// cut could undo. Positions are written a little later (spool-thread.ts); until then each sink's
// position is noted beside the database (reached.ts).

import {
  type Acknowledgement,
  type Append,
  type Aside,
  type HeldPage,
  type HeldParents,
  type Json,
  type Numbering,
  type Offset,
  type PairStore,
  type SinkProgress,
  type Spool,
  type SpoolGauge,
  uidBytes,
} from '../contracts/index.ts';
import { CountedMemory } from '../tools/index.ts';
import type { BackfillProgress, BackfillRequest } from './backfills.ts';
import type { CommitRows } from './held-back.ts';
import { resumeShare } from './holders.ts';
import type { Released, RunningSinks, SinkGap } from './known-sinks.ts';
import { type Lock, takeLock } from './lock.ts';
import type { Cutover, CutoverWish } from './pair-cutover.ts';
import { Reached } from './reached.ts';
import { RecentPages } from './recent-pages.ts';
import type { OperatorRequest, Request } from './requests.ts';
import type { WorkerReplies, WorkerSettings } from './spool-operations.ts';
import { SpoolThread, travels } from './spool-thread.ts';
import type { Landed } from './store.ts';
import { Watchers } from './watchers.ts';

/** Options for opening the spool. */
export interface SpoolSettings extends Omit<WorkerSettings, 'readOnly' | 'isCache'> {
  /** Polling pauses while the stored pages are larger than this. */
  readonly bytesMax: number;
  /** Cached body bytes, also of large pages. Default: adapts to the page size. */
  readonly recentBytesMax?: number;
  /** One command has it, for one change (`takeLock`); default: false. */
  readonly isBrief?: boolean;
  /** Its thread also serves other spools of this process; default: false. */
  readonly sharesThread?: boolean;
  /** The log that the database is a cache of. Default: the database is the state itself. */
  readonly log?: SpoolLog;
}

/** A log with the spool's content, for the process that takes over. */
export interface SpoolLog {
  /** Resolves when all rows are durable in the log; rejects if another process owns the log. */
  readonly commit: CommitRows;
  /** Pages before this offset are no longer needed. */
  forgetBefore(offset: Offset): void;
}

/** The spool as its opener sees it. */
export interface OwnSpool extends Spool {
  /** Names the sinks whose positions retain pages; resolves once that is in effect. */
  retainFor(sinks: readonly string[]): Promise<void>;
  /** The lost events of sinks that are about to run. */
  sinkGaps(sinks: readonly string[]): Promise<readonly SinkGap[]>;
  /** Registers the sinks of running processes: every other known sink is missing. */
  settleSinks(running: RunningSinks): Promise<void>;
  /** Released events of removed sinks that were not reported yet. */
  unreported(): Promise<readonly Released[]>;
  /** Notes that this was reported. */
  reported(released: Released): Promise<void>;
  /** Calls `report` whenever there is more to report. */
  onReleased(report: () => void): void;
  /** Requests of operators. */
  requests(): Promise<readonly Request[]>;
  /** Stores the progress of a request. */
  noteRequest(request: number, progress: Json): Promise<void>;
  /** Stores the answer to a request. */
  settle(request: number, answer: Json): Promise<void>;
  /** Stores a request of a command on another machine. */
  takeUp(command: string, name: string, wish: OperatorRequest, at: number): Promise<void>;
  /** Deletes a request. */
  withdraw(request: number): Promise<void>;
  /** A backfill is no longer read; stores its last progress. */
  leave(backfill: BackfillRequest, last: BackfillProgress): Promise<void>;
  /** Makes the other side of a pair deliver, if permitted. */
  cutOver(wish: CutoverWish): Promise<Cutover>;
  /** Another connection has moved a stream's checkpoint while the stream had nothing in flight. */
  moved(stream: string): Promise<void>;
}

const recentBytesDefault = 3 * 1024 * 1024;
/** The same with a log: room for the group that is next beside those that sinks read. */
const recentLoggedBytes = 8 * 1024 * 1024;
/** The limit up to which the cache follows large pages; a larger page is cached alone. */
const recentLargeBytesMax = 32 * 1024 * 1024;
/** Polling slows down for sinks at work while this share of the cache is in use. */
const crowdedShare = 0.75;
/** A transaction of the log costs as much CPU as hundreds of events, so more pages share one. */
const loggedGroupBytes = 2.5 * 1024 * 1024;
/** Maximum share of the spool for records that wait for the other side of a pair. */
const waitingShareMax = 0.5;
/**
 * A sink that has not read for this long waits for its receiver, and polling does not wait for it.
 */
const atWorkMs = 200;
/**
 * Slowing down never reduces polling below this many bytes per millisecond: about 8,000 events of
 * 600 bytes a second, so that a permanently slow sink does not set the pace.
 */
const pollBytesPerMsMin = 5_000;
/** The same where pages are so large that few of them fit the cache. */
const largeBytesPerMsMin = 2_000;
const tickMs = 1_000;
/** Number of obsolete response offsets that triggers a clean-up. */
const answersMany = 1_000;
/** A smaller body may share its memory with others, and is not worth the call. */
const freedBytesMin = 64 * 1024;

/** The page with its body's memory to hold, if that has no other content. */
function withMemory(page: HeldPage): HeldPage {
  const { buffer, byteOffset, byteLength } = page.body;
  const isOwn = buffer instanceof ArrayBuffer && byteOffset === 0 && byteLength >= freedBytesMin;
  if (!isOwn) return page;
  const memory = new CountedMemory();
  memory.own(Buffer.from(buffer, byteOffset, byteLength));
  return { ...page, memory };
}

/** Opens and locks the state directory. Throws `state_locked`, `state_damaged` or `disk_full`. */
export async function openSpool(settings: SpoolSettings): Promise<OwnSpool> {
  const lock = takeLock(settings.dir, settings);
  try {
    const { log, sharesThread = false, ...own } = settings;
    const thread = new SpoolThread(own, { commit: log?.commit ?? null, sharesThread });
    return new WorkerSpool(settings, thread, lock, await thread.opened());
  } catch (error) {
    lock.release();
    throw error;
  }
}

class WorkerSpool implements OwnSpool {
  readonly numbering: Numbering;
  readonly parents: HeldParents;
  readonly aside: Aside;
  readonly pairs: PairStore;
  readonly #settings: SpoolSettings;
  readonly #thread: SpoolThread;
  readonly #lock: Lock;
  readonly #watchers = new Watchers();
  readonly #reached: Reached;
  #sinks: readonly string[];
  readonly #recent: RecentPages;
  /** Size of the last appended page. */
  #pageBytes = 0;
  /** So much waits for the other sides of pairs that sides which do not deliver must pause. */
  get #waitsFull(): boolean {
    return (this.#gauge.waiting ?? 0) >= this.#settings.bytesMax * waitingShareMax;
  }

  /** Successors that deliver. */
  #cutOver = new Set<string>();
  /** Each sink's last read: offset and time. */
  readonly #readers = new Map<string, { readonly at: Offset; readonly when: number }>();
  readonly #tick: NodeJS.Timeout;
  #gauge: SpoolGauge;
  /**
   * Offsets of stored responses without records; those before the oldest page are removed in
   * batches.
   */
  #answers: Offset[];
  #full = false;
  #diskFull = false;
  #closed = false;
  #report: () => void = () => undefined;

  // The thread alone answers these.
  readonly requests: OwnSpool['requests'] = () => this.#thread.ask('requests');
  readonly settle: OwnSpool['settle'] = (...of) => this.#thread.ask('settle', ...of);
  readonly noteRequest: OwnSpool['noteRequest'] = (...of) => this.#thread.ask('inform', ...of);
  readonly takeUp: OwnSpool['takeUp'] = async (...of) =>
    void (await this.#thread.ask('takeUp', ...of));
  readonly withdraw: OwnSpool['withdraw'] = (...of) => this.#thread.ask('withdraw', ...of);
  readonly leave: OwnSpool['leave'] = (...of) => this.#thread.ask('leave', ...of);
  readonly moved: OwnSpool['moved'] = (...of) => this.#thread.ask('moved', ...of);
  readonly sinkGaps: OwnSpool['sinkGaps'] = (...of) => this.#thread.ask('sinkGaps', ...of);
  readonly settleSinks: OwnSpool['settleSinks'] = (...of) => this.#thread.ask('settleSinks', ...of);
  readonly settledFrom: OwnSpool['settledFrom'] = (...of) => this.#thread.ask('settledFrom', ...of);
  readonly unreported: OwnSpool['unreported'] = () => this.#thread.ask('unreported');
  readonly reported: OwnSpool['reported'] = (...of) => this.#thread.ask('reported', ...of);
  readonly recall: OwnSpool['recall'] = (...of) => this.#thread.ask('recall', ...of);
  readonly trail: OwnSpool['trail'] = (...of) => this.#thread.ask('trail', ...of);
  readonly entities: OwnSpool['entities'] = (...of) => this.#thread.ask('entities', ...of);

  constructor(settings: SpoolSettings, thread: SpoolThread, lock: Lock, opened: WorkerReplies) {
    this.#settings = settings;
    this.#sinks = settings.sinks;
    this.#thread = thread;
    this.#lock = lock;
    this.parents = {
      due: (...by) => thread.ask('parentsDue', ...by),
      answered: (...by) => thread.ask('parentsAnswered', ...by),
      counts: (...by) => thread.ask('parentCounts', ...by),
    };
    this.aside = {
      destinations: (sink) => thread.ask('asideDestinations', sink),
      read: (...which) => thread.ask('asideRead', ...which),
      settle: (...settled) => thread.ask('asideSettle', ...settled),
    };
    this.pairs = {
      settle: async (pairs) => {
        const changed = await thread.ask('settlePairs', pairs);
        const reports = await thread.ask('pairReports');
        this.#cutOver = new Set(
          reports.flatMap(({ successor, phase }) => (phase === 'cut_over' ? [successor] : [])),
        );
        return changed;
      },
      waiting: (...which) => thread.ask('pairsWaiting', ...which),
      compare: (...of) => thread.ask('pairsCompare', ...of),
      room: (signal) => this.#watchers.until(() => !this.#waitsFull, signal),
      isCutOver: (successor) => this.#cutOver.has(successor),
      reports: () => thread.ask('pairReports'),
    };
    this.numbering = opened.numbering ?? { spool: '', epochs: [] };
    this.#reached = new Reached(settings.dir, this.numbering, settings.sinks);
    this.#answers = [...(opened.held ?? [])];
    const { gauge = { bytes: 0, oldest: 0, end: 0 } } = opened;
    this.#gauge = { ...gauge, answers: this.#answers };
    this.#full = this.#gauge.bytes >= settings.bytesMax;
    this.#diskFull = opened.diskFull === true;
    this.#recent =
      settings.recentBytesMax === undefined
        ? new RecentPages(
            settings.log === undefined ? recentBytesDefault : recentLoggedBytes,
            recentLargeBytesMax,
          )
        : new RecentPages(settings.recentBytesMax);
    thread.listen({
      replied: (answers) => this.#measure(answers),
      failed: (error) => this.#watchers.end(error),
    });
    // Another process can put dead letters back, and space is freed without any event here.
    this.#tick = setInterval(() => {
      this.#watchers.wake();
      thread.ask('tick', this.#full).catch(() => undefined);
    }, tickMs);
    this.#tick.unref();
  }

  get gauge(): SpoolGauge {
    return this.#gauge;
  }

  get groupBytes(): number | undefined {
    return this.#settings.log === undefined ? undefined : loggedGroupBytes;
  }

  async append(entry: Append): Promise<number> {
    // Checked first: these bodies belong to the worker until its reply.
    const isLarge = entry.pages.some(({ body }) => travels(body));
    // Cached before any sink learns of the new end: the sink would read the page back from disk.
    const block = await this.#thread.append(entry, (landed, bodies) =>
      this.#remember(entry, bodies, landed),
    );
    if (isLarge) await this.#passed();
    return block;
  }

  /** A pause after a large page lets the sinks read it, so that few are in memory. */
  async #passed(): Promise<void> {
    const courtesy = AbortSignal.timeout(Math.ceil(this.#pageBytes / largeBytesPerMsMin));
    const isRoom = () => this.#recent.bytes <= recentLargeBytesMax;
    await this.#watchers.until(isRoom, courtesy).catch(() => undefined);
  }

  #remember(entry: Append, bodies: readonly Uint8Array[], { firsts, pages }: Landed): void {
    for (const [index, sent] of entry.pages.entries()) {
      const body = bodies[index] ?? sent.body;
      const stored = pages?.[index];
      if (stored === null) continue;
      const { pair: _, givesBody, ...page } = { ...sent, ...stored };
      const first = firsts[index] ?? 0;
      const added = { ...page, body, first, count: page.uids.length / uidBytes };
      this.#recent.add(givesBody === true ? withMemory(added) : added);
      this.#pageBytes = body.length;
      if (page.onlySink === '') this.#answers.push(first);
    }
  }

  async read(from: Offset, bytesMax: number, sink?: string): Promise<readonly HeldPage[]> {
    const recent = this.#recent.from(from, bytesMax);
    for (const { memory } of recent) memory?.hold();
    if (sink !== undefined) this.#noteReader(sink, from);
    if (recent.length > 0) return recent;
    if (from >= this.#gauge.end) return [];
    const bytes = Math.min(bytesMax, this.#recent.coldBytesMax);
    const pages = await this.#thread.ask('read', from, bytes);
    return pages.map((read) => {
      const page = this.#recent.addCold(withMemory(read));
      page.memory?.hold();
      return page;
    });
  }

  #noteReader(sink: string, at: Offset): void {
    this.#readers.set(sink, { at, when: performance.now() });
    if (this.#sinks.some((name) => !this.#readers.has(name))) return;
    const passed = Math.min(...this.#sinks.map((name) => this.#readers.get(name)?.at ?? 0));
    this.#recent.forgetBefore(passed);
    this.#watchers.wake();
  }

  /** A sink at work is about to fall behind the cache and would read pages back from disk. */
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
    await this.#watchers.until(() => this.#gauge.end > from, signal);
  }

  async room(signal: AbortSignal): Promise<void> {
    await this.#watchers.until(() => !this.#full && !this.#diskFull, signal);
    if (!this.#crowded()) return;
    const courtesyMs = Math.ceil(this.#pageBytes / pollBytesPerMsMin);
    const courtesy = AbortSignal.any([signal, AbortSignal.timeout(courtesyMs)]);
    await this.#watchers
      .until(() => !this.#crowded(), courtesy)
      .catch(() => signal.throwIfAborted());
  }

  async cutOver(wish: CutoverWish): Promise<Cutover> {
    const turned = await this.#thread.ask('cutOver', wish);
    if (turned.isDone && wish.phase === 'cut_over') this.#cutOver.add(wish.pair);
    else if (turned.isDone) this.#cutOver.delete(wish.pair);
    return turned;
  }

  async retainFor(sinks: readonly string[]): Promise<void> {
    await this.#thread.ask('retain', sinks);
    this.#sinks = sinks;
    this.#reached.keep(sinks);
    for (const sink of this.#readers.keys()) if (!sinks.includes(sink)) this.#readers.delete(sink);
  }

  onReleased(report: () => void): void {
    this.#report = report;
  }

  async progress(sink: string): Promise<SinkProgress> {
    const { position, mark } = await this.#thread.ask('progress', sink);
    return { position: Math.max(position, this.#reached.at(sink)), mark };
  }

  reached(sink: string, position: Offset): void {
    this.#reached.note(sink, position);
  }

  async acknowledge(sink: string, step: Acknowledgement): Promise<void> {
    await this.#thread.ask('acknowledge', sink, step);
  }

  note(
    kind: 'stream' | 'sink' | 'reached' | 'cluster' | 'throttle',
    name: string,
    facts: Json,
  ): void {
    this.#thread.note(kind, name, JSON.stringify(facts));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#tick);
    await this.#thread.close();
    this.#reached.close();
    this.#lock.release();
  }

  #measure({ gauge, diskFull, hasReleased }: WorkerReplies): void {
    this.#diskFull = diskFull === true;
    if (hasReleased === true) this.#report();
    if (gauge === undefined) return;
    const grown = gauge.end > this.#gauge.end;
    if (gauge.oldest > this.#gauge.oldest) this.#settings.log?.forgetBefore(gauge.oldest);
    if ((this.#answers[answersMany] ?? gauge.oldest) < gauge.oldest) {
      this.#answers = this.#answers.filter((offset) => offset >= gauge.oldest);
    }
    const waited = this.#waitsFull;
    this.#gauge = { ...gauge, answers: this.#answers };
    const wasFull = this.#full;
    const cap = this.#settings.bytesMax;
    this.#full = wasFull ? gauge.bytes > cap * resumeShare : gauge.bytes >= cap;
    const hasRoom = waited && !this.#waitsFull;
    if (grown || hasRoom || wasFull !== this.#full) this.#watchers.wake();
  }
}
