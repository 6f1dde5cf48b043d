// The totals of each stream and day, from entries: pages, records, cursors, list ends seen, and conditions. A day ends
// when a page of a later day follows; then it becomes a manifest of completeness (manifests.ts). Invariant: the totals
// depend on the entries only, one by one and in order, so a writer after a crash and a verifier compute the same ones.

import { z } from 'zod';
import type { Entry, PageEntry } from './entries.ts';

const count = z.int().min(0);

const dayShape = z.object({
  /** YYYY-MM-DD, UTC, of the reading of its pages; a clock that was set back does not begin a day again. */
  day: z.string(),
  source: z.string(),
  /** Numbers of its first and last page in the stream. */
  seq: z.tuple([count, count]),
  pages: count,
  /** Records in responses, and the new ones among them. */
  records: count,
  kept: count,
  /**
   * Keyed hashes of the first requested cursor and of the last next cursor; null: none; absent: no response had any.
   */
  asked: z.string().nullable().optional(),
  next: z.string().nullable().optional(),
  /** Responses at the end of the list, and the reading time of the last one. */
  tails: count,
  last_tail: z.string().nullable(),
  /** Number of pages with each condition. */
  conditions: z.record(z.string(), count),
  /** Comparisons with upstream, and their results. */
  compared: z.object({ times: count, dropped: count, missing: count, changed: count }),
});

type Day = z.output<typeof dayShape>;

const overShape = dayShape.extend({
  stream: z.string(),
  /** Entries under the newest checkpoint that the log named when the day ended. */
  size: count,
});

/** A day that has ended and has no manifest yet. */
export type OverDay = z.output<typeof overShape>;

/** The totals of the entries so far; JSON, because they are part of the mark. */
export const daysShape = z.object({
  checkpoint: count,
  /** By stream. */
  open: z.record(z.string(), dayShape),
  over: z.array(overShape),
});

/** Changed in place by `followDays`. */
export type Days = z.output<typeof daysShape>;

/** The totals of an empty log. */
export function noDays(): Days {
  return { checkpoint: 0, open: {}, over: [] };
}

/** Adds an entry. */
export function followDays(days: Days, entry: Entry): void {
  switch (entry.t) {
    case 'checkpoint':
      days.checkpoint = entry.size;
      return;
    case 'manifest':
      days.over = days.over.filter((day) => !isOf(day, entry));
      return;
    case 'reconciled': {
      const { compared } = days.open[entry.stream] ?? {};
      if (compared === undefined) return;
      compared.times += 1;
      for (const what of ['dropped', 'missing', 'changed'] as const) compared[what] += entry[what];
      return;
    }
    case 'page':
      addPage(days, entry);
      return;
    default:
  }
}

function addPage(days: Days, entry: PageEntry): void {
  const { stream, seq, fetched_at: at, answer, conditions = [] } = entry;
  const open = days.open[stream];
  const isLater = open !== undefined && at.slice(0, 10) > open.day;
  if (isLater) days.over.push({ ...open, stream, size: days.checkpoint });
  const day = open === undefined || isLater ? newDay(entry) : open;
  days.open[stream] = day;
  day.seq[1] = seq;
  day.pages += 1;
  day.records += entry.records;
  day.kept += entry.kept;
  for (const condition of conditions) {
    day.conditions[condition] = (day.conditions[condition] ?? 0) + 1;
  }
  if (answer === undefined) return;
  if (day.asked === undefined) day.asked = answer.asked;
  if (answer.next !== undefined) day.next = answer.next;
  if (answer.next !== null) return;
  day.tails += 1;
  day.last_tail = at;
}

function newDay({ fetched_at: at, source, seq }: PageEntry): Day {
  return {
    ...{ day: at.slice(0, 10), source, seq: [seq, seq], pages: 0, records: 0, kept: 0 },
    ...{ tails: 0, last_tail: null, conditions: {} },
    compared: { times: 0, dropped: 0, missing: 0, changed: 0 },
  };
}

/** True for the day of this entry. */
export function isOf(day: OverDay, entry: { readonly stream: string; readonly day: string }) {
  return day.stream === entry.stream && day.day === entry.day;
}
