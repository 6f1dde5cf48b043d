// The spool as the stages see it: pages as upstream sent them, the checkpoint that follows each,
// the identities of their records, and a position per sink. Invariants:
// - A page, its identities and its checkpoint become durable together or not at all. `append` resolves only then.
// - A sink's position only grows, and never passes an event that was neither acknowledged nor made a dead letter.
// - A page is deleted only when every sink of the config has passed it.
// The interface does not depend on the storage, so that a log in Kafka could serve it.

import type { Offset, PageContext, Uid } from './event.ts';
import type { Json, JsonObject } from './json.ts';
import type { Numbering } from './numbering.ts';
import type {
  PairPage,
  PairPlan,
  PairRecord,
  PairReport,
  PairScan,
  WaitingRecord,
} from './succession.ts';

/** Bytes of one identity: 16 of the record's key, 4 of a check over its content. */
export const identityBytes = 20;
/** Bytes of one stored uid: SHA-256. */
export const uidBytes = 32;

/** Byte ranges of the records within a body. */
export interface Slices {
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly length: number;
  /** No number in the records changes its value when parsed. */
  readonly exact: boolean;
}

/** Memory with several readers. */
export interface SharedMemory {
  /** One more reader. */
  hold(): void;
  /** A reader is done, and will read no byte any more. */
  release(): void;
}

/** A page on its way into the spool. */
export interface NewPage {
  readonly context: PageContext;
  /** The response's body as upstream sent it. */
  readonly body: Uint8Array;
  /** Dotted path of the array of records within the body; empty: the body is the array. */
  readonly items: string;
  /** Which of the page's records are new, by index; null: all of them. */
  readonly kept: Uint32Array | null;
  /** `uidBytes` each, for the kept records in order. */
  readonly uids: Uint8Array;
  /** The byte ranges of the page's records, so that senders need not scan again. Not stored. */
  readonly slices?: Slices;
  /** Only this sink receives it: a repeated dead letter. Empty: sinks that take pages. */
  readonly onlySink?: string;
  /** The comparison data of its kept records with the other side of a pair. Not stored. */
  readonly pair?: PairPage;
  /** The memory of the body is its own, and its reader does not read it after the append. */
  readonly givesBody?: boolean;
}

/** A page in the spool: events from `first` up to `first + count`. */
export interface HeldPage extends Omit<NewPage, 'givesBody'> {
  readonly first: Offset;
  readonly count: number;
  /** The body's memory, freed with its last reader. A reader that never releases leaves it to the garbage collection. */
  readonly memory?: SharedMemory;
}

/** A past position of a stream, for stepping back: the cursor of a page and its time. */
export interface TrailEntry {
  readonly cursor: string;
  /** Epoch milliseconds: the page's latest event time, or its read time if it has none. */
  readonly at: number;
}

/** Entities by their keys, or in key order: at most `max` after a key. */
export type EntityChoice = readonly string[] | { readonly after: string; readonly max: number };

/** A change to the stored entities of a collection: bodies by key, and keys to delete. */
export interface EntityChange {
  readonly put: readonly (readonly [key: string, body: string])[];
  readonly drop: readonly string[];
}

/** A parent of a stream that reads a list or an object of each. */
export interface ParentRow {
  readonly id: string;
  /** 0: requested first; 1: in rotation; 2: seldom, because it is lost or final. */
  readonly rank: 0 | 1 | 2;
  /** Sort key of its next request; only compared, no unit. */
  readonly due: number;
  /** State after its last request; null before the first. */
  readonly state: JsonObject | null;
}

/**
 * A change of a parent. `found`: it exists and is known from now on. `noticed`: it may have changed
 * and is requested before others. `asked`: it was requested and has a new due time, unless it was
 * noticed since it was picked with `was` as its due time.
 */
export type ParentChange = { readonly stream: string; readonly id: string } & (
  | { readonly as: 'found' | 'noticed' }
  | ({ readonly as: 'asked'; readonly was: number } & Omit<ParentRow, 'id'>)
);

/** A due time: never requested again unless noticed. */
export const neverDue = 2 ** 52;

/** Counts of a stream's parents. */
export interface ParentCounts {
  readonly parents: number;
  /** Of rank 0. */
  readonly active: number;
  /** Of rank 2: requested seldom or never. */
  readonly lost: number;
  readonly ended: number;
  /** Due by the given time. */
  readonly due: number;
  /** No further parent is accepted. */
  readonly isFull: boolean;
}

/** The stored parents of streams. */
export interface HeldParents {
  /**
   * About `max` parents due by a time, in request order. Parents due after `latest` count as due
   * too: no interval is that long, so the clock was set back.
   */
  due(stream: string, until: number, max: number, latest?: number): Promise<readonly ParentRow[]>;
  /**
   * Parents due after a time or never, whose last request was answered: about `max`, the latest
   * first.
   */
  answered(stream: string, until: number, max: number): Promise<readonly ParentRow[]>;
  counts(stream: string, until: number): Promise<ParentCounts>;
}

/** The changes of one stream that become durable together. */
export interface Append {
  readonly stream: string;
  readonly pages: readonly NewPage[];
  /** Default: unchanged. */
  readonly checkpoint?: Json;
  /** `identityBytes` each, of the records that are new. */
  readonly identities?: Uint8Array;
  /** In reading order. */
  readonly trail?: readonly TrailEntry[];
  readonly entities?: EntityChange;
  /** Of a successor's collection. */
  readonly scan?: PairScan | undefined;
  /** The stream is this parent's list, and its checkpoint is stored in the parent's row. */
  readonly parent?: { readonly stream: string; readonly id: string };
  /** Of any streams. */
  readonly parents?: readonly ParentChange[];
}

/** An event that a sink rejected permanently, stored with the reason until an operator decides. */
export interface DeadLetter {
  readonly uid: Uid;
  readonly offset: Offset;
  readonly reason: string;
  readonly context: PageContext;
  readonly record: Uint8Array;
}

/** An event that waits for a destination that rejects all of its events. */
export interface AsideEvent extends DeadLetter {
  readonly destination: string;
}

/** One that is stored. */
export interface HeldAside extends AsideEvent {
  /** Increases in the order of setting aside. */
  readonly id: number;
}

/** A destination of a sink for which events wait. */
export interface AsideDestination {
  readonly sink: string;
  readonly destination: string;
  readonly events: number;
  /** Offset of the first waiting event. */
  readonly first: Offset;
  /** When the first one was set aside, epoch milliseconds. */
  readonly since: number;
  /** The receiver's answer to the last one. */
  readonly reason: string;
}

/** An event that its sink does not send again from its position on. */
export type SettledEvent = Pick<DeadLetter, 'offset' | 'uid'>;

/** Events that were set aside for destinations at fault. */
export interface Aside {
  destinations(sink: string): Promise<readonly AsideDestination[]>;
  /** Events of one destination in order, after an id. */
  read(
    sink: string,
    destination: string,
    which: { readonly after: number; readonly most: number },
  ): Promise<readonly HeldAside[]>;
  /**
   * Removes delivered events and makes dead letters of others with a reason; durable when it
   * resolves.
   */
  settle(sink: string, settled: AsideSettled): Promise<void>;
}

/** The results for set-aside events, by their ids. */
export interface AsideSettled {
  readonly delivered: readonly number[];
  readonly guilty: readonly { readonly id: number; readonly reason: string }[];
}

/** How far a sink has come. */
export interface SinkProgress {
  readonly position: Offset;
  readonly mark: Json | null;
}

/** The stored state of a stream, for its restart. */
export interface StreamMemory {
  readonly checkpoint: Json | null;
  /** Blocks of identities, oldest first, each with the number that `append` gave it. */
  readonly identities: readonly { readonly block: number; readonly bytes: Uint8Array }[];
}

/** The comparison data of a waiting record. */
export interface ComparedRecord {
  readonly id: number;
  readonly record: PairRecord;
}

/** Pairs of a source and its successor. */
export interface PairStore {
  /**
   * Registers the config's pairs; new ones start. Returns the successors whose folding rules
   * changed.
   */
  settle(pairs: readonly PairPlan[]): Promise<readonly string[]>;
  /** At most `most` waiting records in order, after an id. */
  waiting(successor: string, after: number, most: number): Promise<readonly WaitingRecord[]>;
  /** Compares waiting records again with the current folding rules. */
  compare(successor: string, records: readonly ComparedRecord[]): Promise<void>;
  /** Resolves when a side that does not deliver may be read: few enough of its records wait. */
  room(signal: AbortSignal): Promise<void>;
  /** Whether a successor delivers, as far as this process knows. */
  isCutOver(successor: string): boolean;
  /** The reports on all pairs of the config. */
  reports(): Promise<readonly PairReport[]>;
}

/** The spool's size and the range of its offsets. */
export interface SpoolGauge {
  readonly bytes: number;
  readonly oldest: Offset;
  readonly end: Offset;
  /**
   * Offsets of the stored responses without records, in order; they are not events. Default: none.
   */
  readonly answers?: readonly Offset[];
  /** The part of `bytes` that waits for the other side of a pair. */
  readonly waiting?: number;
}

/** Stored events after this position; those deleted before are not counted. */
export function backlog(
  { oldest, end, answers = [] }: Omit<SpoolGauge, 'bytes'>,
  position: Offset,
): number {
  const from = Math.max(position, oldest);
  let [low, high] = [0, answers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((answers[middle] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, end - from - (answers.length - low));
}

/** Pages, checkpoints and positions. Only one process writes at a time. */
export interface Spool {
  /** The meaning of offsets: none in another spool, partial in another epoch. */
  readonly numbering: Numbering;
  readonly gauge: SpoolGauge;
  readonly parents: HeldParents;
  readonly aside: Aside;
  /** Default: no source has a successor. */
  readonly pairs?: PairStore;
  /** Size of an append up to which pages of a stream that are ready share it. Default: 512 KiB. */
  readonly groupBytes?: number | undefined;
  /** Resolves once durable, with the number of the block of identities. */
  append(entry: Append): Promise<number>;
  /**
   * Whole pages from the one that contains `from`, about `bytesMax`; empty at the end. A sink gives
   * its name, so that pages read by all sinks leave the memory, and polling does not outrun sinks
   * that keep up. The caller holds the pages' memory.
   */
  read(from: Offset, bytesMax: number, sink?: string): Promise<readonly HeldPage[]>;
  /** Resolves when an event at or after `from` is stored. */
  arrival(from: Offset, signal: AbortSignal): Promise<void>;
  /**
   * Resolves when polling may continue: the spool has room, and the sinks at work have caught up.
   */
  room(signal: AbortSignal): Promise<void>;
  progress(sink: string): Promise<SinkProgress>;
  /**
   * The events from `position` on that a sink has settled: its dead letters, also those that an
   * operator has put back or dropped, and events set aside. Its position waits for others.
   */
  settledFrom(sink: string, position: Offset): Promise<readonly SettledEvent[]>;
  /**
   * Notes a sink's position at once, so that it survives any end of this process; durable with the
   * next `acknowledge`. Every dead letter before it must be stored already.
   */
  reached(sink: string, position: Offset): void;
  /** Moves a sink's position, with its mark and its dead letters, durably. */
  acknowledge(sink: string, step: Acknowledgement): Promise<void>;
  recall(stream: string): Promise<StreamMemory>;
  trail(stream: string): Promise<readonly TrailEntry[]>;
  /** Bodies by key. */
  entities(stream: string, which: EntityChoice): Promise<ReadonlyMap<string, string>>;
  /**
   * A note shown by `status` about a stream or sink: last error, lag and so on. `reached`: epoch
   * milliseconds up to which all records of the stream's upstream are stored. `cluster`: the owner
   * of a state in Kafka.
   */
  note(
    kind: 'stream' | 'sink' | 'reached' | 'cluster' | 'throttle',
    name: string,
    facts: Json,
  ): void;
  close(): Promise<void>;
}

/** The part of the spool that sinks use; pages reported by a sink are appended. */
export type SendSpool = Pick<
  Spool,
  | 'numbering'
  | 'gauge'
  | 'read'
  | 'arrival'
  | 'progress'
  | 'settledFrom'
  | 'reached'
  | 'acknowledge'
  | 'append'
  | 'aside'
>;

/** The part of the spool that streams use. */
export type FetchSpool = Pick<
  Spool,
  'append' | 'groupBytes' | 'recall' | 'trail' | 'entities' | 'room' | 'parents'
>;

/** One step of a sink. */
export interface Acknowledgement {
  readonly position: Offset;
  readonly mark?: Json;
  readonly deadLetters?: readonly DeadLetter[];
  readonly aside?: readonly AsideEvent[];
}
