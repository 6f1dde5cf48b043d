// Parts of a batch that are sent in its place. What must stay true: a part has an id of its own, since
// an id stands for the same events at each attempt, and its lines are those of its events.

import type { Offset } from '../contracts/event.ts';
import type { Batch } from '../contracts/sink.ts';
import { pickLines, subLines } from './encode.ts';

/** A batch in two, the first half last, so that order is kept when they are taken from the end. */
export function halves(batch: Batch): readonly Batch[] {
  const middle = batch.events.length >> 1;
  const border = batch.events[middle]?.offset ?? batch.end;
  return [
    partOf(batch, { from: middle, to: batch.events.length, start: border, end: batch.end }),
    partOf(batch, { from: 0, to: middle, start: batch.start, end: border }),
  ];
}

/** The first event of a batch, and the rest. */
export function firstAndRest(batch: Batch): readonly Batch[] {
  const border = batch.events[1]?.offset ?? batch.end;
  return [
    partOf(batch, { from: 1, to: batch.events.length, start: border, end: batch.end }),
    partOf(batch, { from: 0, to: 1, start: batch.start, end: border }),
  ];
}

/** One event of a batch by itself; its `end` is the offset after the event. */
export function alone(batch: Batch, index: number): Batch {
  const start = batch.events[index]?.offset ?? batch.start;
  return partOf(batch, { from: index, to: index + 1, start, end: start + 1 });
}

/** What a batch has at and after `start`. */
export function batchFrom(batch: Batch, start: Offset): Batch {
  if (start <= batch.start) return batch;
  const from = batch.events.findIndex(({ offset }) => offset >= start);
  const to = batch.events.length;
  return partOf(batch, { from: from < 0 ? to : from, to, start, end: batch.end });
}

/** True where nothing of it is to be sent. */
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

/** The events of a batch that are to be sent again, by their indexes. */
export function picked(batch: Batch, indexes: readonly number[]): Batch {
  return {
    ...batch,
    id: `${batch.id}+${indexes.length}`,
    events: indexes.flatMap((index) => batch.events[index] ?? []),
    lines: batch.lines.length === 0 ? batch.lines : pickLines(batch.lines, indexes),
  };
}
