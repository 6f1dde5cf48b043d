// Creates the poller of a stream, by its kind. A poller runs one poll at a time and keeps memory between polls; a new
// poller resumes from the durable state.

import { type CollectionDeps, CollectionPoller } from '../collection/index.ts';
import type { CollectionReading, ListReading } from '../contracts/config.ts';
import {
  type FetchSpool,
  invariant,
  type Log,
  type PushStream,
  type Stream,
  type Succession,
  type Tools,
} from '../contracts/index.ts';
import { Backfill, ListPoller, ListReader, type PastTime } from '../list/index.ts';

import { ParentsPoller, type ParentsState, type PlannedParents } from '../parents/index.ts';

import type { OnFinding, PollResult } from '../poll/index.ts';

import { type PushDeps, PushPoller } from '../webhooks/index.ts';
import type { Deliveries } from './stream-runner.ts';

/** How the streams of a source are read. */
export interface PolledSource {
  readonly name: string;
  readonly list: ListReading | null;
  readonly collection: CollectionReading | null;
  /** Undefined: the source has no parents. */
  readonly parents?: PlannedParents | undefined;
  /** Its lists are read to the end of a past time instead of live. */
  readonly past?: PastTime;
  /** It succeeds another source. */
  readonly succeeds?: Succession;
}

/** Reads one stream. */
export interface Poller {
  poll(signal: AbortSignal): Promise<PollResult>;
  /** Accepts no more deliveries. */
  close?(): void;
  /** Counts of pushed deliveries. */
  readonly counts?: Deliveries;
  /** Status of its parents. */
  readonly parents?: ParentsState | undefined;
  /** How far the clock of its records is ahead of this machine's, milliseconds; null: not known. */
  readonly aheadMs?: number | null;
}

/** Dependencies of a poller. */
export interface PollerDeps {
  readonly spool: FetchSpool;
  readonly tools: Tools;
  /** The stream's. */
  readonly log: Log;
  readonly random: () => number;
  readonly found?: OnFinding;
  /** The parents known when a stream begins. */
  readonly known: (stream: string) => AsyncIterable<readonly string[]>;
  /** Called for each stream that is read to the end of a past time. */
  readonly begun: (backfill: Backfill) => void;
  readonly listening: (stream: PushStream) => Pick<PushDeps, 'endpoint' | 'wake' | 'announced'>;
  /** True once its successor delivers: a company that is gone is the end of the API. */
  readonly isMoved?: () => boolean;
  /** For a successor: from when its records are compared, epoch milliseconds. */
  readonly comparedFrom?: () => Promise<number>;
  /** For a successor's collection: the comparison with its predecessor's last reported state. */
  readonly inherited?: CollectionDeps['inherited'];
}

/** Creates the poller of a stream; sends no request yet. */
export function pollerFor(source: PolledSource, stream: Stream, deps: PollerDeps): Poller {
  const { spool, tools, log, found } = deps;
  const { clock } = tools;
  if (stream.kind === 'push') {
    return new PushPoller({ stream, spool, clock, log, ...deps.listening(stream) });
  }
  if (stream.kind === 'collection') {
    const { collection: reading } = source;
    invariant(reading !== null, `${source.name} says how collections are compared`);
    const { inherited, isMoved } = deps;
    const read = { stream, spool, clock, log, reading, found, inherited, isMoved };
    return new CollectionPoller(read);
  }
  const { list, parents } = source;
  invariant(list !== null, `${source.name} says how lists are read`);
  const { inFlight } = tools.http;
  const reads = { spool, clock, log, inFlight, found };
  if (stream.kind === 'parents') {
    invariant(parents !== undefined, `${source.name} says which parents there are`);
    // The bodies of each parent are counted separately.
    const known = () => deps.known(stream.name);
    const { random } = deps;
    return new ParentsPoller({ ...reads, stream, list, reading: parents, random, known });
  }
  const { comparedFrom } = source.succeeds === undefined ? {} : deps;
  const read = { ...reads, stream, comparedFrom, isMoved: deps.isMoved };
  if (source.past !== undefined) {
    const { span, memory, paceOf } = source.past;
    const past = { span, key: `${stream.name}${memory}`, pace: paceOf(stream) };
    const backfill = new Backfill({ ...read, list, ...past });
    deps.begun(backfill);
    return backfill;
  }
  const { order, start, rewindEveryMs: patienceMs, lookbackMs } = list;
  return new ListPoller(new ListReader({ ...read, order, start, patienceMs, lookbackMs }), list);
}
