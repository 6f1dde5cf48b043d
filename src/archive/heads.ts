// The state of a log that the writer of the next entry needs, folded from the entries: the last entry of each stream,
// the spool and position of the numbers, the signing key, and whether the last checkpoint is named yet. It is small and
// part of the sink's mark; if the mark is lost, reading the entries rebuilds it.

import { z } from 'zod';
import type { Json } from '../contracts/index.ts';
import { type Days, daysShape, followDays, noDays } from './days.ts';
import type { Entry, PageEntry } from './entries.ts';
import { parseVkey } from './note.ts';

const headsShape = z.object({
  /** By stream: the next page's number, and the leaf hash of its last entry. */
  streams: z.record(z.string(), z.tuple([z.int(), z.string()])),
  /**
   * True: the state had events before the log's first page; null: the log has no page. False in the mark of an older
   * version.
   */
  isLate: z.boolean().nullable().default(false),
  spool: z.string().nullable(),
  /** The sink of the newest start; null: no start, or one of an older version. */
  sink: z.string().nullable().default(null),
  /** SHA-256 of `archive.json` from the newest start; null: no start, or the mark of an older version. */
  archive: z.string().nullable().default(null),
  /** Epoch, and number of the event after the last page. */
  place: z.tuple([z.int(), z.int()]).nullable(),
  /** The signing vkey. */
  key: z.string(),
  /** Holds by id, as entered in the log. */
  holds: z
    .record(
      z.string(),
      z.object({
        from: z.string().nullable(),
        to: z.string().nullable(),
        released_at: z.string().nullable(),
      }),
    )
    .default({}),
  /** Signed requests that were carried out, by the SHA-256 of their text: when, epoch milliseconds. */
  done: z.record(z.string(), z.int()).default({}),
  /**
   * The lake's newest entered cut, the last page with its events, the spool of its numbers, and the last cut's signer.
   */
  lake: z
    .object({
      cut: z.string(),
      index: z.int(),
      spool: z.string().nullable(),
      by: z.string().optional(),
    })
    .nullable()
    .default(null),
  /** Daily totals; null in the mark of a version without them. */
  days: daysShape.nullable().default(null),
});

/** The state at the log's end; changed in place by `addToHeads`. */
export type Heads = Omit<z.output<typeof headsShape>, 'days'> & { days: Days };

/** The state of an empty log. */
export function noHeads(key: string): Heads {
  return {
    ...{
      streams: {},
      isLate: null,
      spool: null,
      sink: null,
      archive: null,
      place: null,
      key,
      holds: {},
      done: {},
      lake: null,
    },
    days: noDays(),
  };
}

/** Longer than the validity of a signed request (authority.ts). */
const doneMsMax = 30 * 86_400_000;

/** Adds an entry. */
export function addToHeads(heads: Heads, entry: Entry, leaf: Uint8Array): void {
  followDays(heads.days, entry);
  switch (entry.t) {
    case 'page':
      heads.isLate ??= isLate(entry);
      heads.streams[entry.stream] = [entry.seq + 1, Buffer.from(leaf).toString('hex')];
      heads.place = entry.place;
      return;
    case 'start':
      if (heads.spool !== entry.spool) heads.place = null;
      heads.spool = entry.spool;
      heads.sink = entry.sink ?? null;
      heads.archive = entry.archive;
      return;
    case 'checkpoint': {
      const at = Date.parse(entry.at);
      for (const request of entry.done ?? []) heads.done[request] = at;
      for (const [request, since] of Object.entries(heads.done)) {
        if (at - since > doneMsMax) delete heads.done[request];
      }
      return;
    }
    case 'key':
      heads.key = entry.vkey;
      return;
    case 'hold': {
      const known = heads.holds[entry.id];
      // Until its release a hold stays as in its first entry.
      const { from, to } = known?.released_at === null ? known : entry;
      heads.holds[entry.id] = { from, to, released_at: entry.released_at };
      return;
    }
    case 'lake_cut': {
      const by = entry.by ?? heads.lake?.by;
      const at =
        entry.entries === null
          ? { index: 0, spool: null, ...heads.lake }
          : { index: entry.entries[1], spool: heads.spool };
      heads.lake = { ...at, cut: entry.object, ...(by !== undefined && { by }) };
      return;
    }
    default:
  }
}

/** Whether the state of a log with this first page had earlier events. */
export function isLate({ place: [, next], kept }: Pick<PageEntry, 'place' | 'kept'>): boolean {
  return next > Math.max(kept, 1);
}

const earlierShape = z.object({
  /** SHA-256 of its `archive.json`, and the log's name. */
  archive: z.string(),
  origin: z.string(),
  /** By stream: the next page's number, and the leaf hash of its last entry. */
  streams: z.record(z.string(), z.tuple([z.int(), z.string()])),
});

/** An earlier log of the same state, for streams without an entry in the present log. */
export type EarlierLog = z.output<typeof earlierShape>;

const markShape = z.object({
  /** SHA-256 of `archive.json`, and its location. */
  archive: z.string(),
  location: z.string(),
  /** The location as the config names it; absent in the mark of an older version. */
  configured: z.string().optional(),
  earlier: earlierShape.nullable().default(null),
  /** Further earlier logs. */
  earlier_too: z.array(earlierShape).default([]),
  size: z.int(),
  root: z.string(),
  /** When it was signed, epoch milliseconds. */
  at: z.int(),
  heads: headsShape,
});

/** The mark stored before a checkpoint is signed: the tree to sign, and its state. */
export type SigningMark = z.output<typeof markShape>;

/** Parses a mark; null: it is none. */
export function parseMark(mark: Json): SigningMark | null {
  return markShape.safeParse(mark).data ?? null;
}

/** The mark of a state moved to a location with another log: only earlier logs. */
const movedShape = z.object({ moved: z.array(earlierShape) });

/** The combined mark of several states. */
export function movedMark(marks: readonly Json[]): Json {
  return { moved: marks.flatMap((mark) => [...earlierLogs(mark, true)]) };
}

/** The earlier logs of a state, from its mark; `isLeft`: including the log of the mark. */
export function earlierLogs(mark: Json | null, isLeft: boolean): readonly EarlierLog[] {
  if (mark === null) return [];
  const known = parseMark(mark);
  if (known === null) return movedShape.safeParse(mark).data?.moved ?? [];
  const { archive, heads, earlier, earlier_too: others } = known;
  const own = { archive, origin: parseVkey(heads.key).name, streams: heads.streams };
  return [...(isLeft ? [own] : []), ...(earlier === null ? [] : [earlier]), ...others];
}
