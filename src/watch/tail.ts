// The live tail: the newest events for a person, in a form of the reader's choice. It does nothing without readers, and
// a reader receives as much as a person can read; the rest is counted. run/event-tap.ts supplies the events.
// Invariants: a tail moves no position, and its share of the time is bounded.

import type { Clock } from '../contracts/index.ts';
import { type EventStream, eventText } from './event-stream.ts';

/** A reader's query. */
export interface TailWish {
  /** One of `EventTap.forms`. */
  readonly form: string;
  /** Part of the stream's name; empty: all. */
  readonly stream: string;
  /** Text that the line must contain, in any case; empty: any line. */
  readonly text: string;
  /** A CEL expression as in a route's `where`; empty: none. */
  readonly where: string;
}

/** An event as its reader sees it. */
export interface TailLine {
  readonly stream: string;
  /** OCSF's `severity_id`. */
  readonly severity: number;
  readonly text: string;
}

/** The events since the last look. */
export interface TailTake {
  /** Oldest first. */
  readonly lines: readonly TailLine[];
  /** Events that were looked at. */
  readonly looked: number;
  /** Events that passed too quickly to be looked at. */
  readonly missed: number;
  /** Events on which `where` failed; a route would pass them. */
  readonly unjudged: number;
  /** Shards whose events are missing here, because other processes work on them; undefined: there is one shard. */
  readonly unseen?: readonly number[];
}

/** One reader's view of the newest events. */
export interface TailView {
  /** Waits for an event, then returns the new events; at first the stored ones, at once. */
  take(signal: AbortSignal): Promise<TailTake>;
}

/** The source of events for tails. */
export interface EventTap {
  /** Formats, and sinks as `sink NAME`. The list may change with a reload of the config. */
  readonly forms: readonly string[];
  /** Throws an ExportError if the form does not exist or `where` is invalid. */
  open(wish: TailWish): TailView;
}

/** Time between two looks, milliseconds: as often as a person can follow. */
const pauseMs = 500;

/** Dependencies of a report. */
interface TailDeps {
  readonly clock: Clock;
  /** False once the events have another form: the view ends, and its reader opens another one. */
  readonly isCurrent: () => boolean;
  readonly signal: AbortSignal;
}

/** Sends events to a reader until it disconnects, the view is outdated, or the server closes. */
export async function reportTail(
  view: TailView,
  stream: EventStream,
  { clock, isCurrent, signal }: TailDeps,
): Promise<void> {
  const over = AbortSignal.any([signal, stream.gone]);
  try {
    while (!over.aborted && isCurrent()) {
      const take = stream.isBehind ? null : await view.take(over);
      if (take !== null && isCurrent()) stream.write(eventText('events', take));
      await clock.sleep(pauseMs, over);
    }
    stream.end();
  } catch (error) {
    if (!over.aborted) throw error;
  }
}
