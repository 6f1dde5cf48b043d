// The live tail: what the newest events look like in a form of the reader's choice, for a person.
// Nothing happens while nobody looks, and who looks sees as much as a person can read: the rest is
// counted. Where events come from is boot's to know (run/event-tap.ts). What must stay true:
// looking moves nothing, and its share of the time is bounded.

import type { Clock } from '../contracts/tools.ts';
import { type EventStream, eventText } from './event-stream.ts';

/** What a reader wants to see. */
export interface TailWish {
  /** One of `EventTap.forms`. */
  readonly form: string;
  /** Part of the stream's name; empty: all. */
  readonly stream: string;
  /** What the line has to contain, whatever the case; empty: anything. */
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

/** What has come since the last look. */
export interface TailTake {
  /** Oldest first. */
  readonly lines: readonly TailLine[];
  /** Events that were looked at. */
  readonly looked: number;
  /** Events that went by too quickly to be looked at. */
  readonly missed: number;
  /** Events on which `where` failed, which a route would let pass. */
  readonly unjudged: number;
  /** Shards whose events are not among these, since this process does not work on them; left out: there is but one. */
  readonly unseen?: readonly number[];
}

/** One reader's view of the newest events. */
export interface TailView {
  /** Waits for an event, then tells what has come; at first what is held, at once. */
  take(signal: AbortSignal): Promise<TailTake>;
}

/** Where events can be looked at. */
export interface EventTap {
  /** Formats, and sinks as `sink NAME`. Another list after a reload of the config. */
  readonly forms: readonly string[];
  /** Throws an ExportError where there is no such form or `where` cannot be used. */
  open(wish: TailWish): TailView;
}

/** Between two looks: as often as a person can follow. */
const pauseMs = 500;

/** How a reader is told. */
interface TailDeps {
  readonly clock: Clock;
  /** False once events look otherwise: the view ends, and its reader comes back for another one. */
  readonly isCurrent: () => boolean;
  readonly signal: AbortSignal;
}

/** Tells a reader what comes, until it has gone, the view is no longer current, or all is over. */
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
