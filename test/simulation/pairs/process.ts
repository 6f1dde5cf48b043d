// The process that reads a pair: the real pollers, the real spool of each side of a pair, and the
// real state database. A killed one leaves its database, which the next one opens.

import type { ListReading } from '../../../src/contracts/definition.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Append, FetchSpool, HeldPage, PairStore } from '../../../src/contracts/spool.ts';
import type { Clock } from '../../../src/contracts/tools.ts';
import { StreamSpool } from '../../../src/fetch/stream-spool.ts';
import type { Cutover } from '../../../src/hold/pair-cutover.ts';
import { Store } from '../../../src/hold/store.ts';
import { ListPoller } from '../../../src/list/poller.ts';
import { ListReader } from '../../../src/list/reader.ts';
import type { PollResult } from '../../../src/poll/outcome.ts';
import { turnPair } from '../../../src/run/succession.ts';
import { comparedFrom } from '../../../src/succession/compared-from.ts';
import { type PairedSource, pairingsOf, sideIn } from '../../../src/succession/pairing.ts';
import { settlePairs } from '../../../src/succession/settle.ts';
import { silent } from '../../support/silent-log.ts';
import { pairedSources, type SideStream, sourceOf } from './sources.ts';
import type { Side, Traits } from './traits.ts';

const minuteMs = 60_000;
const reading = {
  ...{ lookbackMs: 10 * minuteMs, rewindEveryMs: 15 * minuteMs, reconcileEveryMs: 60 * minuteMs },
  onCursorInvalid: 'rewalk',
} as const satisfies Partial<ListReading>;
/** So often a side is polled before a cutover until it is at its tail. */
const readTriesMax = 3;

/** What a poll of the process does. */
export type Job =
  | { readonly what: 'read'; readonly streams: readonly SideStream[] }
  | { readonly what: 'turn'; readonly phase: 'shadow' | 'cut_over'; readonly isForced: boolean };

/** What has become durable. */
export type Change =
  | { readonly what: 'settle' }
  | { readonly what: 'append'; readonly entry: Append }
  | { readonly what: 'tick'; readonly notes: ReadonlyMap<string, number> }
  | { readonly what: 'turn'; readonly job: Extract<Job, { what: 'turn' }>; readonly came: Cutover };

/** What a process is made with. */
export interface ProcessMeans {
  readonly dir: string;
  readonly traits: Traits;
  readonly streams: Readonly<Record<Side, readonly SideStream[]>>;
  readonly clock: Clock;
  /** Which sides the config has; a pair is one of both. */
  readonly sides: readonly Side[];
  /** A step before a commit, and after it. */
  commit(): Promise<void>;
  /** The transaction fails as it is made. */
  fails(): boolean;
  sleep(): Promise<void>;
  /** Called at once after each commit, with what it has made events. */
  changed(change: Change, held: readonly HeldPage[]): void;
}

/** One run. */
export class PairProcess {
  job: Job = { what: 'read', streams: [] };
  readonly store: Store;
  readonly #deps: ProcessMeans;
  readonly #pollers = new Map<string, ListPoller>();
  /** Up to when each stream is read; written with the next tick. */
  #notes = new Map<string, number>();
  #isSettled = false;

  constructor(deps: ProcessMeans) {
    this.#deps = deps;
    this.store = new Store({ dir: deps.dir, sync: 'none', keepMs: 0 });
  }

  /** Does the job that is set. */
  async poll(signal: AbortSignal): Promise<PollResult> {
    if (!this.#isSettled) await this.#settle();
    const { job } = this;
    if (job.what === 'turn') {
      await this.#turn(job, signal);
      return { outcome: 'done', fresh: 0, more: false };
    }
    const results = await Promise.all(job.streams.map((one) => this.#read(one, signal)));
    const failed = results.find(({ outcome }) => outcome !== 'done');
    return failed ?? { outcome: 'done', fresh: 0, more: false };
  }

  /** What comes by itself, each second: notes are written, and records that waited are released. */
  tick(): void {
    const notes = this.#notes;
    const now = this.#deps.clock.now();
    const done = this.#write(
      () => {
        for (const [stream, at] of notes) this.store.receipts.reached(stream, at, now);
        this.store.releaseWaiting(now);
      },
      () => ({ what: 'tick', notes }),
    );
    if (done) this.#notes = new Map();
  }

  async #settle(): Promise<void> {
    await settlePairs({ pairs: this.#pairs() }, this.#sources(), silent);
    this.#isSettled = true;
    this.#deps.changed({ what: 'settle' }, []);
  }

  #sources(): readonly PairedSource[] {
    const { sides, traits, streams } = this.#deps;
    return pairedSources(streams, traits).filter(({ name }) =>
      sides.some((side) => sourceOf[side] === name),
    );
  }

  async #read({ stream }: SideStream, signal: AbortSignal): Promise<PollResult> {
    const askedAt = this.#deps.clock.now();
    const poller = this.#pollers.get(stream.name) ?? this.#pollerFor(stream);
    this.#pollers.set(stream.name, poller);
    const result = await poller.poll(signal);
    const isWhole = result.outcome === 'done' && !result.more && !result.doubt;
    if (isWhole) this.#notes.set(stream.name, askedAt);
    return result;
  }

  #pollerFor(stream: SideStream['stream']): ListPoller {
    const { clock } = this.#deps;
    const pairings = pairingsOf(this.#sources());
    const sideOf = () => sideIn(pairings, stream.source);
    const pairs = this.#pairs();
    const spool = this.#spool();
    const responses = { stream, append: spool.append, rewinds: () => undefined };
    const feed = { withParents: (entry: Append) => entry };
    const ownSpool = new StreamSpool(responses, { spool: { ...spool, pairs }, feed, sideOf });
    const isNew = stream.source === sourceOf.new;
    const reader = new ListReader({
      ...{ stream, spool: ownSpool, clock, log: silent },
      ...{ order: 'auto', start: 'beginning', patienceMs: reading.rewindEveryMs },
      lookbackMs: reading.lookbackMs,
      ...(isNew && {
        comparedFrom: () => comparedFrom(sideOf()?.pairing, { recall: spool.recall, pairs }),
      }),
    });
    return new ListPoller(reader, reading);
  }

  async #turn(job: Extract<Job, { what: 'turn' }>, signal: AbortSignal): Promise<void> {
    const { streams, clock, commit } = this.#deps;
    const readNow = async (source: string): Promise<string | null> => {
      const side = source === sourceOf.old ? 'old' : 'new';
      const read = streams[side].map((one) => this.#readToTail(one, signal));
      return (await Promise.all(read)).find((why) => why !== null) ?? null;
    };
    const cutOver = async (wish: Parameters<Store['cutOver']>[0]): Promise<Cutover> => {
      await commit();
      let came: Cutover = { isDone: false, reasons: ['the transaction failed'], report: null };
      this.tick();
      this.#write(
        () => {
          came = this.store.cutOver(wish, clock.now());
        },
        () => ({ what: 'turn', job, came }),
      );
      await commit();
      return came;
    };
    const sources = { [sourceOf.new]: { succeeds: { source: sourceOf.old } } };
    const wish = { what: 'cut_over', phase: job.phase, isForced: job.isForced } as const;
    await turnPair(sourceOf.new, wish, {
      ...{ pipeline: { readNow }, spool: { cutOver }, tools: { log: silent } },
      made: () => ({ config: { sources } }) as never,
    });
  }

  async #readToTail(one: SideStream, signal: AbortSignal): Promise<string | null> {
    for (let n = 0; n < readTriesMax; n += 1) {
      const result = await this.#read(one, signal);
      if (result.outcome !== 'done') return `${one.stream.name}: ${result.cause.message}`;
      if (!result.more) return null;
    }
    return `${one.stream.name} was not read to its end`;
  }

  #spool(): FetchSpool {
    const { clock, commit } = this.#deps;
    const { store } = this;
    const never = () => Promise.reject(new Error('a list does not ask for this'));
    return {
      append: async (entry) => {
        await commit();
        let block = 0;
        const isDone = this.#write(
          () => {
            block = store.append(entry, clock.now()).block;
          },
          () => ({ what: 'append', entry }),
        );
        if (!isDone) throw noSpace();
        await commit();
        return block;
      },
      recall: async (stream) => store.recall(stream),
      trail: async (stream) => store.streams.trail(stream),
      entities: never,
      room: async () => undefined,
      parents: { due: never, answered: never, counts: never },
    };
  }

  #pairs(): PairStore {
    const { store } = this;
    const now = () => this.#deps.clock.now();
    return {
      settle: async (plans) => store.transaction(() => store.pairs.settle(plans, now())),
      waiting: async (...which) => store.pairs.waiting(...which),
      compare: async (...of) => store.transaction(() => store.pairs.compare(...of, now())),
      room: async () => undefined,
      isCutOver: (successor) =>
        store.pairs.all.some(
          ({ plan, phase }) => plan.successor === successor && phase === 'cut_over',
        ),
      reports: async () => store.pairReports(now()),
    };
  }

  /** One transaction, which fails as a whole now and then. False: it has. */
  #write(work: () => void, change: () => Change): boolean {
    const { store } = this;
    const end = store.end;
    const fails = this.#deps.fails();
    try {
      store.transaction(() => {
        work();
        if (fails) throw noSpace();
      });
    } catch (error) {
      if (!fails) throw error;
      return false;
    }
    const held = store.end === end ? [] : store.read(end, Number.MAX_SAFE_INTEGER);
    this.#deps.changed(change(), held);
    return true;
  }
}

function noSpace(): ExportError {
  return new ExportError('disk_full', 'simulating: no space', { next: 'nothing' });
}
