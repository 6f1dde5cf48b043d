// Parts of a batch that are sent instead of the whole. Invariants: a part has its own id, because an id
// stands for the same events at each attempt; its lines belong to its events.

import type { Batch, Offset } from '../contracts/index.ts';
import { pickLines, subLines } from './encode.ts';

/** Splits a batch in two, the first half last, because parts are taken from the end. */
export function halves(batch: Batch): readonly Batch[] {
  const middle = batch.events.length >> 1;
  const border = batch.events[middle]?.offset ?? batch.end;
  return [
    partOf(batch, { from: middle, to: batch.events.length, start: border, end: batch.end }),
    partOf(batch, { from: 0, to: middle, start: batch.start, end: border }),
  ];
}

/** Splits a batch into its first event and the rest. */
export function firstAndRest(batch: Batch): readonly Batch[] {
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
