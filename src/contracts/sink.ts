// What a sink is to sluice, for the person who writes one. The engine owns every loop, wait, retry
// and limit: a sink sends one batch once and tells what the far side answered. It keeps nothing
// between calls but its connection. Order of calls: open, then send (at most `inFlightMax`
// unresolved at a time, in spool order), then close. Most sinks take events; one that proves what
// upstream has answered takes pages (`SinkSpec.takes`), each whole and as it is held.

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
  /** Where the sink takes pages, those of its pages; an answer that is no record has none. */
  readonly events: readonly Event[];
  /**
   * Where the sink takes pages: whole ones as they are held, neither filtered, redacted nor
   * encoded, with `start` and `end` at their borders. Else none.
   */
  readonly pages: readonly HeldPage[];
  /** The events encoded by the sink's format, or its `document` where asked for; same order. */
  readonly lines: EncodedLines;
  /** Where the first event stands, and the offset that is reached once this is delivered. */
  readonly start: Offset;
  readonly end: Offset;
}

/**
 * Who refuses, and why. `sink`: the sink itself, since the event cannot be encoded or is over a limit
 * of its own; a dead letter at once. `receiver`: the receiver refuses the event; it is blamed only
 * if the same destination accepts another event at that time. `destination`: the receiver reports a
 * fault of the destination (index closed, pipeline missing); no event is blamed for that.
 */
export type Verdict = 'sink' | 'receiver' | 'destination';

/** One refused event. */
export interface Refusal {
  readonly uid: Uid;
  readonly reason: string;
  /** Default: `receiver`. */
  readonly by?: Verdict;
}

/**
 * The receiver's answer, a closed union. `delivered`: the position moves. `partly`: `refused` become
 * dead letters, or suspects where nothing of their destination was accepted; `again` are sent
 * again, the rest was delivered. `retry`: nothing is known to be delivered; the engine waits
 * (`afterMs` or its own back-off) and sends the same batch again. `refused`: of a `batch`, it is cut
 * in halves until one event is found, which becomes a dead letter only where others are accepted
 * (src/send/trial.ts); of the `sink`, the sink waits and reports it, its events stay held. Of pages
 * there are no dead letters: they are delivered, asked for again, or refused of the sink.
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
      /** Of a batch; default: `receiver`. */
      readonly by?: Verdict;
    };

/** An open sink. */
export interface Sink {
  /** Sends once. What the far side does is a Delivery; rejects only when `signal` aborts. */
  send(batch: Batch, signal: AbortSignal): Promise<Delivery>;
  /**
   * For a sink that promises "once" by its position: whether the receiver accepts these events,
   * without a lasting effect (Kafka: a transaction that is aborted). Left out: `send` is used, and a
   * sink with `committed` gets no event out of turn.
   */
  tryOut?(batch: Batch, signal: AbortSignal): Promise<Delivery>;
  /**
   * For a sink with several destinations: the index, topic or stream that an event is for. One that
   * refuses its events holds no other's. Left out: there is one destination.
   */
  destinationOf?(event: Event): string;
  /**
   * For a sink with several batches in flight: resolves when one more would not pile up here. Asked
   * before a batch is cut; never rejects but with the signal's reason.
   */
  ready?(signal: AbortSignal): Promise<void>;
  /**
   * For a sink that finishes what was sent together with what comes later (an object, a
   * checkpoint): nothing more comes for now, so what is open is finished at once. Asked while a
   * batch is sent by itself and when a run ends; also where nothing is open.
   */
  flush?(): void;
  /**
   * For a sink that can look how far its far side is (Kafka transactions, files): what that means
   * in this numbering, or null where nothing is known. Asked after open and before a batch is sent
   * again, since an answer can be lost. Where the far side is ahead the sink leaves out what stands
   * there when it comes again.
   */
  committed?(signal: AbortSignal): Promise<PositionReach | null>;
  /**
   * For a sink that `flush` is for: milliseconds until it finishes by itself what it was sent, all
   * of which is written and only waits for that; null: nothing waits, or not by intent. Meanwhile
   * nothing is wrong with a position that does not move.
   */
  dueInMs?(): number | null;
  /** What an operator should know though events go there; null: nothing. */
  notice?(): Notice | null;
  /** Lets go of the connection; resolves when nothing is in flight any more. */
  close(): Promise<void>;
}

/** Something of the far side that an operator should know, and what to do. Our sentences. */
export interface Notice {
  readonly what: string;
  readonly next: string;
}

/** What a sink is given when it opens. */
export interface SinkOpening {
  /** Name of the sink in the config. */
  readonly name: string;
  readonly format: Format;
  /** What offsets stand for; each state directory has its own, and each start an epoch. */
  readonly numbering: Numbering;
  /** SHA-256 in hex of the config that runs now, without its secrets; null: of none. */
  config(): string | null;
  /** The offset this sink has reached, and the mark that it handed in with a delivery. */
  readonly position: Offset;
  readonly mark: Json | null;
  /** Has a mark kept in place of the one before, the position as it is; durable when it resolves. */
  remember(mark: Json): Promise<void>;
  /**
   * Tells every sink that takes events something of this one, as an event of its own. Resolves once
   * it is held; where that fails it is logged, and not told.
   */
  tell(reported: ReportSink): Promise<void>;
  readonly tools: Tools;
}

/** What a sink tells of itself. */
export interface ReportSink extends Pick<ConditionRecord, 'condition' | 'message' | 'details'> {
  /** What it is about: told again of the same, it is the same event. */
  readonly about: string;
}

/**
 * What is known about a delivered event: `answered` (the far side said so), `settled` (flushed, and
 * the connection stayed healthy for a while), `once` (each event is there once), `none` (nobody
 * can know).
 */
export type Assurance = 'once' | 'answered' | 'settled' | 'none';
