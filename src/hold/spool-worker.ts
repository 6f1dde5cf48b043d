// The worker thread that owns the state database, so that an fsync or a WAL checkpoint never blocks
// the event loop. Writes that arrive during a commit share the next transaction (group commit),
// which spreads the cost of an fsync. Each commit also deletes the pages that every sink has
// passed, so that new pages reuse their space while it is still in the WAL: a WAL checkpoint then
// costs as much as is stored, not as much as was. Replies are posted only after the commit that
// covers them, all replies of a commit together. Invariants: a write that fails (a page without
// disk space) fails alone; but once the database turns out to be damaged, every caller gets the
// error, because only the next start can repair it (repair.ts).

import { parentPort, workerData } from 'node:worker_threads';
import {
  type Acknowledgement,
  type Append,
  type Aside,
  type AsideSettled,
  type EntityChoice,
  ExportError,
  type HeldPage,
  invariant,
  type Json,
  type Offset,
  type PairPlan,
  type PairStore,
} from '../contracts/index.ts';
import { type BackfillProgress, type BackfillRequest, leaveBackfill } from './backfills.ts';
import { isDamage, storeError } from './database.ts';
import { Delivered } from './delivered.ts';
import type { Released, RunningSinks } from './known-sinks.ts';
import type { Cutover, CutoverWish } from './pair-cutover.ts';
import type { OperatorRequest } from './requests.ts';
import { Reserve, withReserve } from './reserve.ts';
import type {
  ReportedError,
  WorkerReplies,
  WorkerReply,
  WorkerRequest,
  WorkerSettings,
} from './spool-messages.ts';
import { type Landed, Store } from './store.ts';

invariant(parentPort !== null, 'the spool worker runs in a worker thread');
const port = parentPort;
const settings = workerData as WorkerSettings;

const tidyEveryMs = 1_000;

let waiting: WorkerRequest[] = [];
let flushing = false;
let tidiedAt = 0;
/** Notes are written once a second: none is worth a transaction of its own. */
let notes = new Map<string, (now: number) => void>();

/** Bytes of pages since the start; some of them are in the WAL. */
let logged = 0;

/** A page was refused for lack of space; set only then, so that a stream tries first. */
let refusing = false;

/** Why nothing that is read or written is reliable any more. */
let damage: ReportedError | null = null;

const { store, reserve, delivered } = open();

function open() {
  try {
    const opened = withReserve(settings.dir, () => {
      const store = new Store(settings);
      store.beginEpoch(Date.now());
      return store;
    });
    opened.retainFor(settings.sinks);
    const copy = new Delivered(settings.dir, opened);
    for (const [stream, place] of opened.streams.places()) copy.note(stream, opened.end, place);
    // From now on a missing database is known to have existed.
    copy.save(opened.end, Date.now(), true);
    const space = new Reserve(settings.dir, settings.reserveBytesMax);
    opened.boundLog(logBytesMax(space));
    const { numbering } = opened;
    const held = opened.answers();
    const first: WorkerReplies = { answers: [{ id: 0 }], gauge: opened.gauge(), numbering, held };
    port.postMessage(first);
    return { store: opened, reserve: space, delivered: copy };
  } catch (error) {
    const failure = described(error, 'opening the state database');
    port.postMessage({ answers: [{ id: 0, error: failure }] } satisfies WorkerReplies);
    process.exit(0);
  }
}

port.on('message', (questions: readonly WorkerRequest[]) => {
  waiting.push(...questions);
  if (!flushing) {
    flushing = true;
    setImmediate(flush);
  }
});

function flush(): void {
  flushing = false;
  const questions = waiting;
  waiting = [];
  const now = Date.now();
  for (const { op, args } of questions) if (op === 'note') run(op, args);
  // Also before the end: nothing delivered stays in a directory that is not in use.
  const ending = questions.some((question) => question.op === 'close');
  const tidying = ending || now - tidiedAt >= tidyEveryMs || settings.eager === true;
  const jobs: Job[] = questions.filter(isWrite).map(({ id, op, args }) => ({
    id,
    run: () => run(op, args),
    ...(op === 'append' ? { entry: args[0] as Append } : {}),
  }));
  if (tidying) jobs.push({ id: 0, run: () => writeNotes(now) });
  if (tidying && reserve.held) jobs.push({ id: 0, run: () => store.releaseWaiting(now) });
  if (jobs.length > 0) jobs.push({ id: 0, run: () => store.prune(now) });
  const written = commit(jobs);
  growReserve(jobs);
  jobs.forEach(({ entry }, index) => {
    if (entry !== undefined) follow(entry, written[index]?.result as Landed | undefined, now);
  });
  if (tidying) noteDelivered(now, ending);
  const read = questions.filter((question) => !isWrite(question)).map(readAnswer);
  post([...written.map(withMemory(questions)), ...read]);
  if (ending) close();
}

/** One write; id 0 if no caller awaits it. */
interface Job {
  readonly id: number;
  readonly entry?: Append;
  run(): unknown;
}

/**
 * Runs all jobs in one transaction. If that fails, each gets its own, so that every possible write
 * succeeds: on a full disk a page may have no space while a position does, and passed pages can
 * still be deleted.
 */
function commit(jobs: readonly Job[]): readonly WorkerReply[] {
  if (jobs.length === 0) return [];
  try {
    return store.transaction(() => jobs.map(({ id, run }) => ({ id, result: run() })));
  } catch (error) {
    const failure = described(error, 'writing to the state database');
    const shortened = failure.code === 'disk_full' && reserve.held;
    if (shortened) makeRoom();
    if (jobs.length > 1 || shortened) return jobs.flatMap((job) => commit([job]));
    return jobs.map(({ id }) => ({ id, error: failure }));
  }
}

/** The WAL must fit into the reserve twice, to be checkpointed on a full disk. */
function logBytesMax({ bytes }: Reserve): number {
  return bytes / 2;
}

/** Grows the reserve before the WAL reaches its limit; then both may grow. */
function growReserve(jobs: readonly Job[]): void {
  for (const { entry } of jobs)
    for (const { body } of entry?.pages ?? []) logged += body.byteLength;
  if (logged > logBytesMax(reserve) && reserve.grow()) store.boundLog(logBytesMax(reserve));
}

/** From now on pages are refused, and writes that free space succeed. */
function makeRoom(): void {
  reserve.release();
  emptyLog();
}

/** Polling does not pause for a removed sink, also if the disk is full. */
function releaseForDisk(): void {
  try {
    store.transaction(() => store.makeDiskRoom(Date.now()));
    store.shrink();
  } catch (error) {
    described(error, 'deleting pages of removed sinks');
  }
}

function emptyLog(): void {
  try {
    store.emptyLog();
  } catch {
    // Retried at the next tick.
  }
}

/** Notes a stream's position once it is durable. */
function follow(entry: Append, landed: Landed | undefined, now: number): void {
  if (landed === undefined) return;
  const { stream, checkpoint, entities, parent } = entry;
  if (parent !== undefined || checkpoint === undefined) return;
  if (entities !== undefined) delivered.forget(stream);
  else delivered.note(stream, store.end, { checkpoint, block: landed.block, at: now });
}

function noteDelivered(now: number, ending: boolean): void {
  tidiedAt = now;
  try {
    delivered.advance(store.passed());
    delivered.save(store.end, now, ending);
  } catch (error) {
    described(error, 'reading the state database');
  }
}

function writeNotes(now: number): void {
  const last = notes;
  // Not kept for a retry: current values are noted again anyway.
  notes = new Map();
  for (const note of last.values()) note(now);
}

function post(answers: readonly WorkerReply[]): void {
  const replies: WorkerReplies = {
    answers,
    ...measured(),
    ...changed(),
    hasReleased: store.holders.hasReleased(),
    diskFull: refusing && !reserve.held,
    ...(damage === null ? {} : { damage }),
  };
  port.postMessage(replies, answers.flatMap(transferable));
}

function measured(): Pick<WorkerReplies, 'gauge'> {
  try {
    return { gauge: store.gauge() };
  } catch (error) {
    described(error, 'reading the state database');
    return {};
  }
}

function changed(): Pick<WorkerReplies, 'changed'> {
  try {
    return settings.isCache === true ? { changed: store.drain() } : {};
  } catch (error) {
    described(error, 'reading the state database');
    return {};
  }
}

/** The operations. */
const operations = {
  append(entry: Append): Landed {
    if (!reserve.held) throw diskFull();
    refusing = false;
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
  pairsCompare: (...of: Parameters<PairStore['compare']>) => store.pairs.compare(...of, Date.now()),
  pairReports: () => store.pairReports(Date.now()),
  cutOver(wish: CutoverWish): Cutover {
    // The notes include how far each side was read.
    writeNotes(Date.now());
    return store.cutOver(wish, Date.now());
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
    notes.set(`${kind} ${name}`, (now) => {
      if (kind === 'reached') store.receipts.reached(name, Number(facts), now);
      else store.note(kind, name, facts, now);
    });
  },
  read: (from: Offset, bytesMax: number) => store.read(from, bytesMax),
  progress: (sink: string) => store.progress(sink),
  recall: (stream: string) => store.recall(stream),
  trail: (stream: string) => store.streams.trail(stream),
  entities: (stream: string, which: EntityChoice) => store.streams.entities(stream, which),
  parentsDue: (...by: Parameters<Store['parents']['due']>) => store.parents.due(...by),
  parentsAnswered: (...by: Parameters<Store['parents']['answered']>) =>
    store.parents.answered(...by),
  parentCounts: (stream: string, until: number) => store.parents.counts(stream, until),
  requests: () => store.requests.all(),
  retain: (readers: readonly string[]) => store.retainFor(readers),
  sinkGaps: (sinks: readonly string[]) => store.knownSinks.gaps(sinks, store.gauge().oldest),
  unreported: () => store.knownSinks.unreported(),
  reported: (released: Released) => store.knownSinks.reported(released, Date.now()),
  settleSinks: (running: RunningSinks) =>
    store.knownSinks.settle(running, store.gauge().oldest, Date.now()),
  moved(stream: string): void {
    delivered.forget(stream);
    store.streams.goBack();
    store.parents.goBack();
  },
  tick(isPaused: boolean): void {
    store.holders.paused(isPaused);
    store.shrink();
    if (!reserve.held) {
      releaseForDisk();
      emptyLog();
      reserve.retake();
    }
    store.refresh();
  },
  close: () => undefined,
};

/** The operations by name. */
export type Operations = typeof operations;

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

function isWrite({ op }: WorkerRequest): boolean {
  return writes.has(op);
}

/** The caller's types guarantee valid operations and arguments. */
function run(op: string, args: readonly unknown[]): unknown {
  return (operations[op as keyof Operations] as (...of: readonly unknown[]) => unknown)(...args);
}

/** Reads see the commits of the same flush. */
function readAnswer({ id, op, args }: WorkerRequest): WorkerReply {
  if (op === 'note') return { id };
  try {
    return { id, result: run(op, args) };
  } catch (error) {
    return { id, error: described(error, 'reading the state database') };
  }
}

/** Returns the buffers of pages with the reply, if each page had its own. */
function withMemory(questions: readonly WorkerRequest[]): (answer: WorkerReply) => WorkerReply {
  const entries = questions.flatMap(({ id, op, args }) =>
    op === 'append' ? [[id, args[0] as Append] as const] : [],
  );
  const appended = new Map(entries);
  return (answer) => {
    const pages = appended.get(answer.id)?.pages;
    if (pages === undefined) return answer;
    return { ...answer, memory: pages.map(({ body }) => body.buffer as ArrayBuffer) };
  };
}

function transferable(answer: WorkerReply): ArrayBuffer[] {
  if (answer.memory !== undefined) return [...answer.memory];
  if (!Array.isArray(answer.result)) return [];
  const buffers = new Set<ArrayBuffer>();
  for (const page of answer.result as readonly Partial<HeldPage>[]) {
    const buffer = page.body?.buffer;
    if (buffer instanceof ArrayBuffer && page.body?.byteLength === buffer.byteLength)
      buffers.add(buffer);
  }
  return [...buffers];
}

function described(error: unknown, doing: string): ReportedError {
  const { code, message, next } = storeError(error, doing);
  const reported: ReportedError = { code, message, next };
  if (isDamage(error)) damage ??= reported;
  return reported;
}

function diskFull(): ExportError {
  refusing = true;
  return new ExportError('disk_full', 'holding a page: the disk is full', {
    next: 'Make room in state.dir; polling pauses meanwhile and nothing is lost.',
  });
}

function close(): void {
  store.close();
  port.close();
}
