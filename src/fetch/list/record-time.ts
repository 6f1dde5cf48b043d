// When a record happened, as far as the fetch side needs it: for the watermark, for `start`, and to
// tell how far back a page reaches. The exact time of each event is the normaliser's; here a record
// whose time cannot be read has none.

import type { ParsedRecord } from '../../contracts/event.ts';
import { parseOtherForm } from '../../contracts/time-forms.ts';
import type { RecordList } from '../../tools/record-list.ts';
import { valueAt } from '../../tools/records.ts';

/** Above this a number is epoch milliseconds, below it seconds. */
const millisecondsFrom = 1e11;
/** Only what begins like RFC 3339 is a time: the engine's parser takes `12` for a month of 2001. */
const dated = /^\d{4}-\d\d-\d\d/;
/** Upstream speaks UTC, said or not; the engine's parser would take the machine's zone. */
const withoutZone = /^[-\d]{10}[T ][\d:.]+$/;

/** Epoch milliseconds of the first path that holds a readable time, or null. */
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

/** NaN for what is no time. */
function timeOfText(text: string): number {
  if (!dated.test(text)) return parseOtherForm(text);
  const time = Date.parse(withoutZone.test(text) ? `${text}Z` : text);
  return Number.isNaN(time) ? parseOtherForm(text) : time;
}

/** Between which times some records happened, epoch milliseconds. */
export interface TimeSpan {
  readonly earliest: number;
  readonly latest: number;
}

/** Earliest and latest time of a page, from its two ends: pages are in order unless `mixed`. */
export function timeSpan(records: RecordList, paths: readonly string[]): TimeSpan | null {
  if (records.length === 0) return null;
  const first = recordTime(records.at(0) ?? null, paths);
  const last = recordTime(records.at(-1) ?? null, paths);
  if (first === null || last === null) return null;
  return { earliest: Math.min(first, last), latest: Math.max(first, last) };
}

/** True where all happened within a second; false where something has no time. */
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
