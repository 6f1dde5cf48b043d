// The spool as the stages see it: pages as upstream sent them, the checkpoint that follows each,
// the identities of their records, and a position per sink. What must stay true:
// - A page, its identities and its checkpoint become durable together or not at all. `append` resolves only then.
// - A sink's position only grows, and never passes an event that was neither acknowledged nor made a dead letter.
// - A page is deleted only when every sink of the config has passed it.
// Nothing here says how pages are stored, so that a log in Kafka could serve the same interface.

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
/** Bytes of one uid as held: SHA-256. */
export const uidBytes = 32;

/** Byte ranges of the records within a body. */
export interface Slices {
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly length: number;
  /** No number in them can change its value when it is parsed. */
  readonly exact: boolean;
}

/** A page on its way into the spool. */
export interface NewPage {
  readonly context: PageContext;
  /** The answer's body as upstream sent it. */
  readonly body: Uint8Array;
  /** Dotted path of the array of records within the body; empty: the body is the array. */
  readonly items: string;
  /** Which of the page's records are new, by index; null: all of them. */
  readonly kept: Uint32Array | null;
  /** `uidBytes` each, for the kept records in order. */
  readonly uids: Uint8Array;
  /** Where the page's records stand, so that senders need not look again. Not stored. */
  readonly slices?: Slices;
  /** Only this sink is to get it: a dead letter sent again. Empty: sinks that take pages. */
  readonly onlySink?: string;
  /** What is compared of its kept records with the other side of a pair. Not stored. */
  readonly pair?: PairPage;
}

/** A page in the spool: events `first` up to `first + count`. */
export interface HeldPage extends NewPage {
  readonly first: Offset;
  readonly count: number;
}

/** Where a stream has been, for stepping back: the cursor of a page and when it was read. */
export interface TrailEntry {
  readonly cursor: string;
  /** Epoch milliseconds: the page's latest event time, or when it was read where it has none. */
  readonly at: number;
}

/** Entities by their keys, or in the order of those: the ones behind a key, so many at most. */
export type EntityChoice = readonly string[] | { readonly after: string; readonly max: number };

/** A change to what is known of a collection's entities: bodies by key, and keys to forget. */
export interface EntityChange {
  readonly put: readonly (readonly [key: string, body: string])[];
  readonly drop: readonly string[];
}

/** A parent of a stream that reads a list or an object of each. */
export interface ParentRow {
  readonly id: string;
  /** 0: asked first; 1: in rotation; 2: seldom, since it is lost or final. */
  readonly rank: 0 | 1 | 2;
  /** When it is to be asked; compared only. */
  readonly due: number;
  /** As `asked` left it; null where it was not asked yet. */
  readonly state: JsonObject | null;
}

/**
 * What becomes of a parent. `found`: it is there, and known from now on. `noticed`: it may have
 * changed, and is asked before others. `asked`: it was, and is due again then, unless it was
 * noticed since it was picked with `was` as what was due.
 */
export type ParentChange = { readonly stream: string; readonly id: string } & (
  | { readonly as: 'found' | 'noticed' }
  | ({ readonly as: 'asked'; readonly was: number } & Omit<ParentRow, 'id'>)
);

/** As `due`: it is not asked again, unless it is noticed. */
export const neverDue = 2 ** 52;

/** How many parents a stream has. */
export interface ParentCounts {
  readonly parents: number;
  /** Of rank 0. */
  readonly active: number;
  /** Of rank 2: asked seldom, or not any more. */
  readonly lost: number;
  readonly ended: number;
  /** By then. */
  readonly due: number;
  /** No other parent is taken. */
  readonly isFull: boolean;
}

/** The parents that streams ask by. */
export interface HeldParents {
  /**
   * Up to about so many that are due by a time, in the order of asking; those after `latest` are
   * due as well, since no rest is as long: the clock has been set back.
   */
  due(stream: string, until: number, max: number, latest?: number): Promise<readonly ParentRow[]>;
  /**
   * Some that are due after a time, or never, and were answered when they were asked last: of
   * these the latest, about, and the latest first.
   */
  answered(stream: string, until: number, max: number): Promise<readonly ParentRow[]>;
  counts(stream: string, until: number): Promise<ParentCounts>;
}

/** What becomes durable together for one stream. */
export interface Append {
  readonly stream: string;
  readonly pages: readonly NewPage[];
  /** Left out: it stays as it is. */
  readonly checkpoint?: Json;
  /** `identityBytes` each, of the records that are new. */
  readonly identities?: Uint8Array;
  /** In the order they came by. */
  readonly trail?: readonly TrailEntry[];
  readonly entities?: EntityChange;
  /** Of a successor's collection. */
  readonly scan?: PairScan | undefined;
  /** The stream is this parent's list, and its checkpoint stands in the parent's row. */
  readonly parent?: { readonly stream: string; readonly id: string };
  /** Of whichever streams. */
  readonly parents?: readonly ParentChange[];
}

/** An event that a sink refused for good, kept with the reason until an operator decides. */
export interface DeadLetter {
  readonly uid: Uid;
  readonly offset: Offset;
  readonly reason: string;
  readonly context: PageContext;
  readonly record: Uint8Array;
}

/** An event that waits for a destination of a sink that refuses all of its events. */
export interface AsideEvent extends DeadLetter {
  readonly destination: string;
}

/** One that is stored. */
export interface HeldAside extends AsideEvent {
  /** Grows with the order in which they were set aside. */
  readonly id: number;
}

/** A destination of a sink for which events wait. */
export interface AsideDestination {
  readonly sink: string;
  readonly destination: string;
  readonly events: number;
  /** Where the first one was in the spool. */
  readonly first: Offset;
  /** When the first one was set aside, epoch milliseconds. */
  readonly since: number;
  /** The receiver's answer to the last one. */
  readonly reason: string;
}

/** Events that were set aside for destinations at fault. */
export interface Aside {
  destinations(sink: string): Promise<readonly AsideDestination[]>;
  /** Events of one destination in order, after an id. */
  read(
    sink: string,
    destination: string,
    which: { readonly after: number; readonly most: number },
  ): Promise<readonly HeldAside[]>;
  /** Removes delivered events, and makes dead letters of others for a reason; durable then. */
  settle(sink: string, settled: AsideSettled): Promise<void>;
}

/** What became of events that were set aside, by their ids. */
export interface AsideSettled {
  readonly delivered: readonly number[];
  readonly guilty: readonly { readonly id: number; readonly reason: string }[];
}

/** How far a sink has come. */
export interface SinkProgress {
  readonly position: Offset;
  readonly mark: Json | null;
}

/** What a restarted stream is told. */
export interface StreamMemory {
  readonly checkpoint: Json | null;
  /** Blocks of identities, oldest first, each with the number that `append` gave it. */
  readonly identities: readonly { readonly block: number; readonly bytes: Uint8Array }[];
}

/** What is compared of a record that waits. */
export interface ComparedAnew {
  readonly id: number;
  readonly record: PairRecord;
}

/** Pairs of a source and its successor. */
export interface PairStore {
  /**
   * The pairs of the config from now on; those that are new begin. Returns the successors whose
   * records are folded otherwise than before.
   */
  settle(pairs: readonly PairPlan[]): Promise<readonly string[]>;
  /** Up to so many records that wait, in order, after one. */
  waiting(successor: string, after: number, most: number): Promise<readonly WaitingRecord[]>;
  /** Compares records that wait as they are folded now. */
  compare(successor: string, records: readonly ComparedAnew[]): Promise<void>;
  /** Resolves when a side that does not deliver may be read: few enough of its records wait. */
  room(signal: AbortSignal): Promise<void>;
  /** Whether a successor delivers, as far as is known by now. */
  isCutOver(successor: string): boolean;
  /** What is known of each pair of the config. */
  reports(): Promise<readonly PairReport[]>;
}

/** The spool's size and the ends of what it holds. */
export interface SpoolGauge {
  readonly bytes: number;
  readonly oldest: Offset;
  readonly end: Offset;
  /** In order, those of the answers held, which are no events; left out: there are none. */
  readonly answers?: readonly Offset[];
  /** Of the bytes, those of records that wait for the other side of a pair. */
  readonly waiting?: number;
}

/** Events held for a sink that has come this far; what was deleted before is not among them. */
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

/** Pages, checkpoints and positions. One process writes at a time. */
export interface Spool {
  /** What the offsets stand for: nothing in another spool, only in part in another epoch. */
  readonly numbering: Numbering;
  readonly gauge: SpoolGauge;
  readonly parents: HeldParents;
  readonly aside: Aside;
  /** Left out: no source has a successor here. */
  readonly pairs?: PairStore;
  /** Resolves once durable, with the number of the block of identities. */
  append(entry: Append): Promise<number>;
  /**
   * Whole pages from the one that holds `from`, up to about `bytesMax`; empty at the end. A sink
   * gives its name, so that pages which all sinks have read need not be remembered, and polling
   * does not run away from those that keep up.
   */
  read(from: Offset, bytesMax: number, sink?: string): Promise<readonly HeldPage[]>;
  /** Resolves when an event at or after `from` is held. */
  arrival(from: Offset, signal: AbortSignal): Promise<void>;
  /** Resolves when polling may go on: there is room, and sinks that keep up have kept up. */
  room(signal: AbortSignal): Promise<void>;
  progress(sink: string): Promise<SinkProgress>;
  /**
   * Notes how far a sink has come at once, so that it outlives this process whatever ends it;
   * durable with the next `acknowledge`. No dead letter of before it may be unsaved.
   */
  reached(sink: string, position: Offset): void;
  /** Moves a sink's position, with its mark and its dead letters, durably. */
  acknowledge(sink: string, step: Acknowledgement): Promise<void>;
  recall(stream: string): Promise<StreamMemory>;
  trail(stream: string): Promise<readonly TrailEntry[]>;
  /** Bodies by key. */
  entities(stream: string, which: EntityChoice): Promise<ReadonlyMap<string, string>>;
  /**
   * What `status` shows of a stream or sink beside its position: last error, lag and the like;
   * as `reached`, epoch milliseconds up to which all that a stream's upstream shows is held; as
   * `cluster`, who has the state where it is in Kafka.
   */
  note(
    kind: 'stream' | 'sink' | 'reached' | 'cluster' | 'throttle',
    name: string,
    facts: Json,
  ): void;
  close(): Promise<void>;
}

/** The spool as what sends to a sink uses it; pages that a sink tells are appended. */
export type SendSpool = Pick<
  Spool,
  | 'numbering'
  | 'gauge'
  | 'read'
  | 'arrival'
  | 'progress'
  | 'reached'
  | 'acknowledge'
  | 'append'
  | 'aside'
>;

/** The spool as what reads upstream uses it. */
export type FetchSpool = Pick<
  Spool,
  'append' | 'recall' | 'trail' | 'entities' | 'room' | 'parents'
>;

/** One step of a sink. */
export interface Acknowledgement {
  readonly position: Offset;
  readonly mark?: Json;
  readonly deadLetters?: readonly DeadLetter[];
  readonly aside?: readonly AsideEvent[];
}
