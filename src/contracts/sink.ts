// The interface of a sink, for its author. The engine owns every loop, wait, retry and limit: a
// sink sends one batch once and returns the receiver's response. Between calls it keeps only its
// connection. Order of calls: open, then send (at most `inFlightMax` unresolved, in spool order),
// then close. Most receive events; a sink that proves upstream's responses takes pages
// (`SinkSpec.takes`), each whole and as stored.

import type { ConditionRecord } from './change.ts';
import type { ExportError } from './errors.ts';
import type { Event, Offset, Uid } from './event.ts';
import type { EncodedLines, Format } from './format.ts';
import type { Json } from './json.ts';
import type { Numbering, PositionReach } from './numbering.ts';
import type { HeldPage } from './spool.ts';
import type { Tools } from './tools.ts';

/** Events or pages for one sink, in spool order. */
export interface Batch {
  /** The same for each attempt at the same events. */
  readonly id: string;
  /**
   * For a sink that takes pages, the events of those pages; a response without a record has none.
   */
  readonly events: readonly Event[];
  /**
   * For a sink that takes pages: whole pages as stored, not filtered, redacted or encoded; `start`
   * and `end` are at their borders. Otherwise empty.
   */
  readonly pages: readonly HeldPage[];
  /** The events encoded by the sink's format, or its `document` if requested; same order. */
  readonly lines: EncodedLines;
  /** Offset of the first event; `end`: the offset reached once this batch is delivered. */
  readonly start: Offset;
  readonly end: Offset;
}

/**
 * The party that rejects, and why. `sink`: the sink itself, because the event cannot be encoded or
 * exceeds one of its limits; a dead letter at once. `receiver`: the receiver rejects the event; the
 * event is blamed only if the same destination accepts another event at that time. `destination`:
 * the receiver reports a fault of the destination (index closed, pipeline missing); no event is
 * blamed for that. `only_destination`: so is this one, and the sink knows that others work: the
 * event is set aside at once.
 */
export type Verdict = 'sink' | 'receiver' | 'destination' | 'only_destination';

/** One rejected event. */
export interface Refusal {
  readonly uid: Uid;
  readonly reason: string;
  /** Default: `receiver`. */
  readonly by?: Verdict;
}

/**
 * The receiver's response, a closed union. `delivered`: the position moves. `partly`: events in
 * `refused` become dead letters, or suspects if their destination accepted none; `again` are sent
 * again; the rest was delivered. `retry`: the result is unknown; the engine waits (`afterMs` or its
 * own back-off) and sends the same batch again. `refused`, of a `batch`: it is halved until the
 * rejected event is isolated, which becomes a dead letter only if others are accepted
 * (src/send/trial.ts); of the `sink`: the sink waits and reports it, its events stay in the spool.
 * Pages have no dead letters: they are delivered, retried, or refused as `sink`.
 */
export type Delivery =
  | { readonly outcome: 'delivered'; readonly mark?: Json }
  | {
      readonly outcome: 'partly';
      readonly refused: readonly Refusal[];
      readonly again: readonly Uid[];
    }
  | { readonly outcome: 'retry'; readonly afterMs?: number; readonly cause: ExportError }
  | {
      readonly outcome: 'refused';
      readonly scope: 'batch' | 'sink';
      readonly cause: ExportError;
      /** For a `batch`; default: `receiver`. */
      readonly by?: Verdict;
    };

/** An open sink. */
export interface Sink {
  /**
   * Sends once. Every reaction of the receiver is a Delivery; rejects only when `signal` aborts.
   * `freeLines`: the sink may call it once neither it nor the kernel reads the batch's lines or pages
   * any more. Their memory is then freed at once, and not by a garbage collection. It is missing if
   * this batch may be sent again.
   */
  send(batch: Batch, signal: AbortSignal, freeLines?: () => void): Promise<Delivery>;
  /**
   * True: once the first `send` of a batch has resolved with `delivered`, neither the sink nor the kernel reads its
   * events or lines any more, and the engine frees their memory at once. Only for a sink that has copied, compressed or
   * written them by then: a receiver may answer before it has read a request. Default: false.
   */
  readonly isDoneOnceDelivered?: boolean;
  /**
   * For a sink that promises "once" by its position: whether the receiver accepts these events,
   * without a lasting effect (Kafka: an aborted transaction). Default: `send` is used, and a sink
   * with `committed` gets no event out of order.
   */
  tryOut?(batch: Batch, signal: AbortSignal): Promise<Delivery>;
  /**
   * For a sink with several destinations: the index, topic or stream of an event. A destination
   * that rejects its events does not block the others. Default: one destination.
   */
  destinationOf?(event: Event): string;
  /**
   * True for a sink with `committed` whose destinations have a position each: an event that was set
   * aside may follow later events of other destinations.
   */
  readonly hasPositions?: boolean;
  /**
   * For a sink with several batches in flight: resolves when it can accept one more without
   * queueing. Called before a batch is cut; rejects only with the signal's reason.
   */
  ready?(signal: AbortSignal): Promise<void>;
  /**
   * For a sink that completes sent batches together with later ones (an object, a checkpoint): no
   * batch follows for now, so it completes the open one at once. Called when a batch is sent by
   * itself and when a run ends, also if nothing is open.
   */
  flush?(): void;
  /**
   * For a sink that can read the position at its destination (Kafka transactions, files): that
   * position in this numbering, or null if unknown. Called after open and before a batch is sent
   * again, because an acknowledgement can be lost. If the destination is ahead, the sink skips the
   * events that are already there.
   */
  committed?(signal: AbortSignal): Promise<PositionReach | null>;
  /**
   * For a sink with `flush`: milliseconds until it completes a written batch by itself; null:
   * nothing waits, or not on purpose. Until then an unmoved position is not a fault.
   */
  dueInMs?(): number | null;
  /** A notice for the operator although events are accepted; null: none. */
  notice?(): Notice | null;
  /** Closes the connection; resolves when nothing is in flight. */
  close(): Promise<void>;
}

/** A notice about the destination with the next step, in sluice's own words. */
export interface Notice {
  readonly what: string;
  readonly next: string;
}

/** Arguments for opening a sink. */
export interface SinkOpening {
  /** Name of the sink in the config. */
  readonly name: string;
  readonly format: Format;
  /**
   * The meaning of offsets: each state directory has its own numbering, and each start an epoch.
   */
  readonly numbering: Numbering;
  /** Names of all sinks that run with this one, itself included. */
  sinks(): readonly string[];
  /** SHA-256 in hex of the running config without its secrets; null: no config. */
  config(): string | null;
  /** The offset that this sink has reached, and the last mark that it returned with a delivery. */
  readonly position: Offset;
  readonly mark: Json | null;
  /** Replaces the stored mark without moving the position; durable when it resolves. */
  remember(mark: Json): Promise<void>;
  /**
   * Reports a condition of this sink to every sink that takes events, as an event of its own.
   * Resolves once it is stored; a failure is logged and not thrown.
   */
  report(condition: SinkReport): Promise<void>;
  readonly tools: Tools;
}

/** A condition that a sink reports. */
export interface SinkReport extends Pick<ConditionRecord, 'condition' | 'message' | 'details'> {
  /** The subject of the report: a repeated report with the same subject is the same event. */
  readonly about: string;
}

/**
 * The guarantee for a delivered event: `answered` (the receiver acknowledged it), `settled`
 * (flushed, and the connection stayed healthy for a while), `once` (each event is there exactly
 * once), `none` (delivery cannot be confirmed).
 */
export type Assurance = 'once' | 'answered' | 'settled' | 'none';
