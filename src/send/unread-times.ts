// Streams whose records have times that cannot be read: each such event has the time of its reading,
// which no query by time shows to be wrong. A few records of a stream are looked at closely, then one
// of each page, so that it costs next to nothing. A record without any time is not counted: nothing
// is wrong with how it is read.

import type { ParsedRecord } from '../contracts/event.ts';
import { isObject, type Json } from '../contracts/json.ts';
import { cleanText } from '../tools/clean-text.ts';
import { valueAt } from '../tools/records.ts';
import type { DecodedPage } from './held-event.ts';

/** Of one stream. */
export interface UnreadTimesOf {
  readonly stream: string;
  readonly source: string;
  /** How many records with a time were looked at lately, and of how many it could not be read. */
  readonly seen: number;
  readonly unread: number;
  /** Where the last such time stands, and what it is. */
  readonly path: string;
  readonly example: string;
}

/** So many records of a stream are looked at before it is one of each page. */
const closeLooks = 16;
/** Fewer say nothing. */
const seenMin = 4;
/** What is older counts half. */
const seenMax = 64;
const exampleMax = 64;
const streamsMax = 4096;
/** Names under which records have their time. */
const timeName = /time|date|^ts$|_?at$|^when$|occurred|created|published/i;

/** Looks at the times of what is sent. */
export class UnreadTimes {
  readonly #byStream = new Map<string, UnreadTimesOf & { readonly looks: number }>();

  /** Streams more than half of whose times cannot be read. */
  get all(): readonly UnreadTimesOf[] {
    return [...this.#byStream.values()]
      .filter(({ seen, unread }) => seen >= seenMin && unread * 2 > seen)
      .map(({ looks: _, ...rest }) => rest);
  }

  /** Times are read otherwise from now on. */
  forget(): void {
    this.#byStream.clear();
  }

  /** Looks at a page; `paths`: where its source's records have their time. */
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

/** How the normaliser marks an event that has the time of its reading. */
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
