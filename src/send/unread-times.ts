// Streams whose records have unreadable times: each event then has its read time, which no query by
// time reveals as wrong. The first records of a stream are all inspected, then one per page, so
// that it costs next to nothing. A record without any time is not counted: that is no fault of the
// config.

import { isObject, type Json, type ParsedRecord } from '../contracts/index.ts';
import { cleanText, valueAt } from '../tools/index.ts';
import type { DecodedPage } from './held-event.ts';

/** Of one stream. */
export interface UnreadTimesOf {
  readonly stream: string;
  readonly source: string;
  /** Recently inspected records with a time, and those whose time was unreadable. */
  readonly seen: number;
  readonly unread: number;
  /** Path and text of the last unreadable time. */
  readonly path: string;
  readonly example: string;
}

/** Number of a stream's records that are inspected before it is one per page. */
const closeLooks = 16;
/** Fewer are not significant. */
const seenMin = 4;
/** Older records count half. */
const seenMax = 64;
const exampleMax = 64;
const streamsMax = 4096;
/** Names of fields that hold a record's time. */
const timeName = /time|date|^ts$|_?at$|^when$|occurred|created|published/i;

/** Inspects the times of sent records. */
export class UnreadTimes {
  readonly #byStream = new Map<string, UnreadTimesOf & { readonly looks: number }>();

  /** Streams with more than half of their times unreadable. */
  get all(): readonly UnreadTimesOf[] {
    return [...this.#byStream.values()]
      .filter(({ seen, unread }) => seen >= seenMin && unread * 2 > seen)
      .map(({ looks: _, ...rest }) => rest);
  }

  /** Times are parsed differently from now on. */
  forget(): void {
    this.#byStream.clear();
  }

  /** Inspects a page; `paths`: location of the time in its source's records. */
  look(page: DecodedPage, paths: readonly string[]): void {
    const { kind, stream, source } = page.held.context;
    const { length } = page.events;
    if ((kind !== 'audit' && kind !== 'log') || length === 0) return;
    const none = { stream, source, seen: 0, unread: 0, path: '', example: '', looks: 0 };
    let known = this.#byStream.get(stream) ?? none;
    const looks = Math.max(1, Math.min(length, closeLooks - known.looks));
    for (let at = 0; at < looks; at += 1) {
      const index = Math.floor((at * length) / looks);
      known = { ...after(known, page, index, paths), looks: known.looks + 1 };
    }
    if (this.#byStream.size < streamsMax || this.#byStream.has(stream))
      this.#byStream.set(stream, known);
  }
}

function after<T extends UnreadTimesOf>(
  known: T,
  page: DecodedPage,
  index: number,
  paths: readonly string[],
): T {
  const half = known.seen >= seenMax ? 2 : 1;
  const [seen, unread] = [known.seen / half, known.unread / half].map(Math.floor) as [
    number,
    number,
  ];
  if (!isUnread(page.ocsf(index).metadata.tags)) return { ...known, seen: seen + 1, unread };
  const found = timeIn(page.record(index), paths);
  if (found === undefined) return known;
  const example = cleanText(found.value, exampleMax);
  return { ...known, seen: seen + 1, unread: unread + 1, path: found.path, example };
}

/** The tag by which the normaliser marks an event that has its read time. */
function isUnread(tags: unknown): boolean {
  return (
    Array.isArray(tags) && tags.some((tag: Json) => isObject(tag) && tag.name === 'time_source')
  );
}

/** A value that is most likely a time. */
function timeIn(
  record: ParsedRecord,
  paths: readonly string[],
): { readonly path: string; readonly value: string } | undefined {
  const names = isObject(record) ? Object.keys(record).filter((name) => timeName.test(name)) : [];
  for (const path of [...paths, ...names]) {
    const value = valueAt(record, path);
    if ((typeof value === 'string' && /\d/.test(value)) || typeof value === 'number')
      return { path: cleanText(path, exampleMax), value: String(value) };
  }
  return undefined;
}
