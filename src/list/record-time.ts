// The time of a record, as the fetch stage needs it: for the watermark, for `start`, and to see how far back a page
// reaches. The normaliser determines the exact event time. Here a record with an unreadable time has none.

import { type ParsedRecord, parseOtherForm } from '../contracts/index.ts';
import { type RecordList, valueAt } from '../tools/index.ts';

/** A number from here on is epoch milliseconds, below it seconds. */
const millisecondsFrom = 1e11;
/** Only text that begins like RFC 3339 is a time: JavaScript parses `12` as a month of 2001. */
const dated = /^\d{4}-\d\d-\d\d/;
/** Times without a zone are UTC; JavaScript would use the machine's zone. */
const withoutZone = /^[-\d]{10}[T ][\d:.]+$/;

/** Epoch milliseconds of the first path with a readable time, or null. */
export function recordTime(record: ParsedRecord, paths: readonly string[]): number | null {
  for (const path of paths) {
    const value = valueAt(record, path);
    if (typeof value === 'string') {
      const time = timeOfText(value);
      if (Number.isFinite(time)) return time;
    } else if (typeof value === 'number' && value > 0) {
      return value >= millisecondsFrom ? value : value * 1_000;
    }
  }
  return null;
}

/** NaN if the text is no time. */
function timeOfText(text: string): number {
  if (!dated.test(text)) return parseOtherForm(text);
  const time = Date.parse(withoutZone.test(text) ? `${text}Z` : text);
  return Number.isNaN(time) ? parseOtherForm(text) : time;
}

/** Earliest and latest time of some records, epoch milliseconds. */
export interface TimeSpan {
  readonly earliest: number;
  readonly latest: number;
}

/** The time span of a page, from its two ends: pages are in order unless the list is `mixed`. */
export function timeSpan(records: RecordList, paths: readonly string[]): TimeSpan | null {
  if (records.length === 0) return null;
  const first = recordTime(records.at(0) ?? null, paths);
  const last = recordTime(records.at(-1) ?? null, paths);
  if (first === null || last === null) return null;
  return { earliest: Math.min(first, last), latest: Math.max(first, last) };
}

/** True if all happened within one second; false if a time is unknown. */
export function isOneSecond(spans: readonly (TimeSpan | null)[]): boolean {
  let earliest = Number.POSITIVE_INFINITY;
  let latest = Number.NEGATIVE_INFINITY;
  for (const span of spans) {
    if (!span) return false;
    earliest = Math.min(earliest, span.earliest);
    latest = Math.max(latest, span.latest);
  }
  return latest - earliest < 1_000;
}
