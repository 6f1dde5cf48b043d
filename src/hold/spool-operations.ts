// The requests of the spool to its thread (spool-worker.ts): the messages, and the operations that they name, which run
// on the state database. One message carries several requests or replies, because each message has a cost. Every
// request except a note gets one reply with the same id, after the commit that covers it; id 0 is a note, or the
// worker's own message that the database is open. Invariant: an operation in `writes` runs in the transaction of a
// commit, and its reply is sent after it.

import type { MessagePort } from 'node:worker_threads';
import type {
  Acknowledgement,
  Append,
  Aside,
  AsideSettled,
  EntityChoice,
  ErrorCode,
  Json,
  Numbering,
  Offset,
  PairPlan,
  PairStore,
  SpoolGauge,
} from '../contracts/index.ts';
import { type BackfillProgress, type BackfillRequest, leaveBackfill } from './backfills.ts';
import type { Delivered } from './delivered.ts';
import type { Released, RunningSinks, SinkGap } from './known-sinks.ts';
import type { OutboxRow } from './outbox.ts';
import type { Cutover, CutoverWish } from './pair-cutover.ts';
import type { OperatorRequest } from './requests.ts';
import type { Landed, Store, StoreSettings } from './store.ts';

/** Start data of the worker. */
export interface WorkerSettings extends StoreSettings {
  readonly sinks: readonly string[];
  /** Nothing is delayed for batching or for its second: for tests that await each step. */
  readonly eager?: boolean;
  /** Default: as much as a full disk needs. Smaller values are for tests that open hundreds. */
  readonly reserveBytesMax?: number;
}

/** Opens a spool in a thread; all messages about it pass through the port. */
export interface SpoolOpening {
  readonly settings: WorkerSettings;
  readonly port: MessagePort;
}

/** A requested operation, by its name. */
export interface WorkerRequest {
  readonly id: number;
  readonly op: string;
  readonly args: readonly unknown[];
}

/** A failure in the form that crosses the thread's border. */
export interface ReportedError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
}

/** The worker's reply to one request: a result or an error. */
export interface WorkerReply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: ReportedError;
  /** Of an append: the memory of its pages. */
  readonly memory?: readonly ArrayBuffer[];
}

/** The worker's message after a commit: the replies, and the spool's size. */
export interface WorkerReplies {
  readonly answers: readonly WorkerReply[];
  readonly gauge?: SpoolGauge;
  /** With the first message. */
  readonly numbering?: Numbering;
  /** With the first message: offsets of stored responses without records. */
  readonly held?: readonly Offset[];
  /** If the database is a cache: the rows changed by these replies. */
  readonly changed?: readonly OutboxRow[];
  /** Events retained for a removed sink were released and must be reported. */
  readonly hasReleased?: boolean;
  /** The disk has no space for pages. */
  readonly diskFull?: boolean;
  /** The database is damaged and unusable until the next start repairs it. */
  readonly damage?: ReportedError;
  /** Work on it has taken more than a second at a time, which delays other spools of the thread. */
  readonly isSlow?: boolean;
  /** The thread has closed the spool, because of this error. */
  readonly ended?: string;
}

/** What the operations work on. */
export interface OperationDeps {
  readonly store: Store;
  readonly delivered: Delivered;
  readonly notes: WaitingNotes;
  /** Throws `disk_full` if pages are refused. */
  readonly accept: () => void;
  /** Looks for free space and for changes by other processes. */
  readonly tick: (isPaused: boolean) => void;
}

/** Notes are written once a second: none is worth a transaction of its own. */
export class WaitingNotes {
  #notes = new Map<string, (now: number) => void>();

  /** Replaces the waiting note with this key. */
  add(key: string, write: (now: number) => void): void {
    this.#notes.set(key, write);
  }

  /** Writes them all. A failed one is not kept: the current value is noted again anyway. */
  write(now: number): void {
    const last = this.#notes;
    this.#notes = new Map();
    for (const note of last.values()) note(now);
  }
}

/** The operations on one store. */
export function operationsOn({ store, delivered, notes, accept, tick }: OperationDeps) {
  return {
    append(entry: Append): Landed {
      accept();
      return store.append(entry, Date.now());
    },
    acknowledge(sink: string, step: Acknowledgement): void {
      store.acknowledge(sink, step, Date.now());
    },
    asideDestinations: (sink: string) => store.aside.destinations(sink),
    asideRead: (...which: Parameters<Aside['read']>) => store.aside.read(...which),
    asideSettle: (sink: string, settled: AsideSettled) =>
      store.settleAside(sink, settled, Date.now()),
    settlePairs: (pairs: readonly PairPlan[]) => store.pairs.settle(pairs, Date.now()),
    pairsWaiting: (...which: Parameters<PairStore['waiting']>) => store.pairs.waiting(...which),
    pairsCompare: (...of: Parameters<PairStore['compare']>) =>
      store.pairs.compare(...of, Date.now()),
    pairReports: () => store.pairReports(Date.now()),
    cutOver(wish: CutoverWish): Cutover {
      const { request } = wish;
      if (request !== undefined && !store.requests.isOpen(request)) return withdrawnCutover;
      // The notes include how far each side was read.
      notes.write(Date.now());
      const turned = store.cutOver(wish, Date.now());
      // Else a successor would find it done, and answer that it was not.
      if (request !== undefined) store.requests.answer(request, { ...turned } as unknown as Json);
      return turned;
    },
    settle: (request: number, answer: Json) => store.requests.answer(request, answer),
    inform: (request: number, progress: Json) => store.requests.note(request, progress),
    takeUp: (command: string, name: string, wish: OperatorRequest, at: number) =>
      store.requests.ask(name, wish, at, command),
    withdraw: (request: number) => store.requests.withdraw(request),
    leave(backfill: BackfillRequest, last: BackfillProgress): void {
      leaveBackfill(store, backfill, last);
    },
    note(kind: string, name: string, facts: string): void {
      notes.add(`${kind} ${name}`, (now) => {
        if (kind === 'reached') store.receipts.reached(name, Number(facts), now);
        else store.note(kind, name, facts, now);
      });
    },
    read: (from: Offset, bytesMax: number) => store.read(from, bytesMax),
    progress: (sink: string) => store.progress(sink),
    settledFrom: (sink: string, position: Offset) => store.settled.from(sink, position),
    recall: (stream: string) => store.recall(stream),
    trail: (stream: string) => store.streams.trail(stream),
    entities: (stream: string, which: EntityChoice) => store.streams.entities(stream, which),
    parentsDue: (...by: Parameters<Store['parents']['due']>) => store.parents.due(...by),
    parentsAnswered: (...by: Parameters<Store['parents']['answered']>) =>
      store.parents.answered(...by),
    parentCounts: (stream: string, until: number) => store.parents.counts(stream, until),
    requests: () => store.requests.all(),
    retain: (readers: readonly string[]) => store.retainFor(readers),
    sinkGaps: (sinks: readonly string[]): readonly SinkGap[] =>
      store.knownSinks.gaps(sinks, store.gauge().oldest),
    unreported: () => store.knownSinks.unreported(),
    reported: (released: Released) => store.knownSinks.reported(released, Date.now()),
    settleSinks: (running: RunningSinks) =>
      store.knownSinks.settle(running, store.gauge().oldest, Date.now()),
    moved(stream: string): void {
      delivered.forget(stream);
      store.streams.goBack();
      store.parents.goBack();
    },
    tick,
    close: () => undefined,
  };
}

/** The operations by name. */
export type Operations = ReturnType<typeof operationsOn>;

const withdrawnCutover: Cutover = {
  ...{ isDone: false, report: null },
  reasons: ['its command waits no longer'],
};

const writes: ReadonlySet<string> = new Set<keyof Operations>([
  ...(['append', 'acknowledge', 'settle', 'inform', 'takeUp', 'withdraw', 'leave'] as const),
  ...([
    'asideSettle',
    'settleSinks',
    'reported',
    'settlePairs',
    'pairsCompare',
    'cutOver',
  ] as const),
]);

/** True for an operation that runs in a transaction. */
export function isWrite({ op }: { readonly op: string }): boolean {
  return writes.has(op);
}
