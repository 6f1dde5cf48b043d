// Splits a rejected batch. While nothing is accepted, one event is found with at most log2(events)
// requests, one fewer than halving needs: the spare request tests whether the receiver accepts
// another event. Once one part was accepted, the other part of the rejected batch contains the bad
// event: it is not sent as a whole again.

import type { Batch, Event, Offset } from '../contracts/index.ts';
import { pickLines, subLines } from './encode.ts';
import type { RequestCount } from './evidence.ts';

/** A batch as it was cut, and the number of requests for it so far. */
interface Attempt {
  readonly events: readonly Event[];
  requests: number;
  hasAccepted: boolean;
}

/** A batch, or a part of one, to send. */
export interface BatchPart {
  readonly batch: Batch;
  readonly attempt: Attempt;
  /** When a batch with these events was first rejected; null: never. */
  readonly since: RequestCount | null;
  /** The other part of the rejected batch, which follows; null: none. */
  readonly twin: BatchPart | null;
  /** It contains a bad event, because its twin was accepted. */
  isGuilty: boolean;
}

/** A part of this size has its events sent one by one while nothing is accepted. */
const fewEvents = 4;
/** Requests for other events at once, if the attempt has accepted some. */
const spareOnceAccepted = 2;

/** A batch as it was cut. */
export function wholePart(batch: Batch): BatchPart {
  const attempt = { events: batch.events, requests: 0, hasAccepted: false };
  return { batch, attempt, since: null, twin: null, isGuilty: false };
}

/** The rest of a part. */
export function remainingPart(
  part: BatchPart,
  batch: Batch,
  since: RequestCount | null,
): BatchPart {
  return { batch, attempt: part.attempt, since, twin: null, isGuilty: false };
}

/** Splits a rejected part of several events in two, the first one last. */
export function splitPart(part: BatchPart, since: RequestCount): readonly BatchPart[] {
  const { batch, attempt } = part;
  const isSmall = !attempt.hasAccepted && batch.events.length <= fewEvents;
  const [later, first] = (isSmall ? firstAndRest(batch) : halves(batch)) as [Batch, Batch];
  const twin: BatchPart = { batch: later, attempt, since, twin: null, isGuilty: false };
  return [twin, { batch: first, attempt, since, twin, isGuilty: false }];
}

/** Requests that may follow without a wait, so that one bad event costs no wait. */
export function spareRequests({ attempt }: BatchPart): number {
  if (attempt.hasAccepted) return spareOnceAccepted;
  const most = Math.floor(Math.log2(Math.max(1, attempt.events.length))) + 1;
  return attempt.requests < most ? 1 : 0;
}

// Parts of a batch that are sent instead of the whole. Invariants: a part has its own id, because an id
// stands for the same events at each attempt; its lines belong to its events.

/** Splits a batch in two, the first half last, because parts are taken from the end. */
function halves(batch: Batch): readonly Batch[] {
  const middle = batch.events.length >> 1;
  const border = batch.events[middle]?.offset ?? batch.end;
  return [
    partOf(batch, { from: middle, to: batch.events.length, start: border, end: batch.end }),
    partOf(batch, { from: 0, to: middle, start: batch.start, end: border }),
  ];
}

/** Splits a batch into its first event and the rest. */
function firstAndRest(batch: Batch): readonly Batch[] {
  const border = batch.events[1]?.offset ?? batch.end;
  return [
    partOf(batch, { from: 1, to: batch.events.length, start: border, end: batch.end }),
    partOf(batch, { from: 0, to: 1, start: batch.start, end: border }),
  ];
}

/** One event of a batch alone; its `end` is the offset after the event. */
export function alone(batch: Batch, index: number): Batch {
  const start = batch.events[index]?.offset ?? batch.start;
  return partOf(batch, { from: index, to: index + 1, start, end: start + 1 });
}

/** The part of a batch at and after `start`. */
export function batchFrom(batch: Batch, start: Offset): Batch {
  if (start <= batch.start) return batch;
  const from = batch.events.findIndex(({ offset }) => offset >= start);
  const to = batch.events.length;
  return partOf(batch, { from: from < 0 ? to : from, to, start, end: batch.end });
}

/** True if there is nothing to send. */
export function isEmpty({ events, pages }: Batch): boolean {
  return events.length === 0 && pages.length === 0;
}

interface Part {
  readonly from: number;
  readonly to: number;
  readonly start: Offset;
  readonly end: Offset;
}

function partOf(batch: Batch, { from, to, start, end }: Part): Batch {
  return {
    id: `${batch.id}/${start}-${end}`,
    events: batch.events.slice(from, to),
    lines: batch.lines.length === 0 ? batch.lines : subLines(batch.lines, from, to),
    pages: batch.pages.filter((page) => page.first >= start),
    start,
    end,
  };
}

/** The events of a batch to send again, by their indexes. */
export function picked(batch: Batch, indexes: readonly number[]): Batch {
  return {
    ...batch,
    id: `${batch.id}+${indexes.length}`,
    events: indexes.flatMap((index) => batch.events[index] ?? []),
    lines: batch.lines.length === 0 ? batch.lines : pickLines(batch.lines, indexes),
  };
}
