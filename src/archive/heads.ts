// What a log comes to, entry by entry, as far as whoever writes the next one must know it: the last
// entry of each stream, whose spool the numbers are of and how far it is held, the key that signs,
// and which checkpoint no entry tells of yet. It is small, so it goes into the sink's mark; where
// that is lost, reading the entries makes it again.

import { z } from 'zod';
import type { Json } from '../contracts/json.ts';
import { type Days, daysShape, followDays, noDays } from './days.ts';
import type { Entry, PageEntry } from './entries.ts';
import { parseVkey } from './note.ts';

const headsShape = z.object({
  /** By stream: the next page's number, and the leaf hash of the last one's entry. */
  streams: z.record(z.string(), z.tuple([z.int(), z.string()])),
  /** True: the state had events before the log's first page; null: it has no page. False in the mark of an older version. */
  isLate: z.boolean().nullable().default(false),
  spool: z.string().nullable(),
  /** SHA-256 of `archive.json` by the newest start; null: no start, or the mark of an older version. */
  archive: z.string().nullable().default(null),
  /** Epoch, and number of the event behind the last page. */
  place: z.tuple([z.int(), z.int()]).nullable(),
  /** The vkey that signs. */
  key: z.string(),
  /** Holds by their ids, as the log has them. */
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
  /** The lake's newest cut that is entered, the last page that it has events of, whose numbers, and who signed one last. */
  lake: z
    .object({
      cut: z.string(),
      index: z.int(),
      spool: z.string().nullable(),
      by: z.string().optional(),
    })
    .nullable()
    .default(null),
  /** What days come to; null in the mark of a version without them. */
  days: daysShape.nullable().default(null),
});

/** The log's ends; changed in place by `follow`. */
export type Heads = Omit<z.output<typeof headsShape>, 'days'> & { days: Days };

/** Those of a log without entries. */
export function noHeads(key: string): Heads {
  return {
    ...{
      streams: {},
      isLate: null,
      spool: null,
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

/** Longer than a signed request may be carried out (authority.ts). */
const doneMsMax = 30 * 86_400_000;

/** Takes another entry in. */
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
      // Until its release a hold is as its first entry has it.
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

/** Whether the state of a log whose first page this is had events before it. */
export function isLate({ place: [, next], kept }: Pick<PageEntry, 'place' | 'kept'>): boolean {
  return next > Math.max(kept, 1);
}

const earlierShape = z.object({
  /** SHA-256 of its `archive.json`, and the log's name. */
  archive: z.string(),
  origin: z.string(),
  /** By stream: the next page's number, and the leaf hash of the last one's entry. */
  streams: z.record(z.string(), z.tuple([z.int(), z.string()])),
});

/** A log that the state wrote before this one, as far as its streams have no entry in this one yet. */
export type EarlierLog = z.output<typeof earlierShape>;

const markShape = z.object({
  /** SHA-256 of `archive.json`, and where it was. */
  archive: z.string(),
  location: z.string(),
  /** The location as the config has it; absent in the mark of an older version. */
  configured: z.string().optional(),
  earlier: earlierShape.nullable().default(null),
  /** Others like it. */
  earlier_too: z.array(earlierShape).default([]),
  size: z.int(),
  root: z.string(),
  /** When it was signed, epoch milliseconds. */
  at: z.int(),
  heads: headsShape,
});

/** What is remembered before a checkpoint is signed: of which tree, and what that comes to. */
export type SigningMark = z.output<typeof markShape>;

/** Reads a mark back; null where it is none. */
export function parseMark(mark: Json): SigningMark | null {
  return markShape.safeParse(mark).data ?? null;
}

/** The mark of a state that was carried to where the archive has another log: only of logs before that. */
const movedShape = z.object({ moved: z.array(earlierShape) });

/** That mark, from those of the states that it was made of. */
export function movedMark(marks: readonly Json[]): Json {
  return { moved: marks.flatMap((mark) => [...earlierLogs(mark, true)]) };
}

/** The logs that a state wrote before, by its mark; `isLeft`: also the one that the mark is of. */
export function earlierLogs(mark: Json | null, isLeft: boolean): readonly EarlierLog[] {
  if (mark === null) return [];
  const known = parseMark(mark);
  if (known === null) return movedShape.safeParse(mark).data?.moved ?? [];
  const { archive, heads, earlier, earlier_too: others } = known;
  const own = { archive, origin: parseVkey(heads.key).name, streams: heads.streams };
  return [...(isLeft ? [own] : []), ...(earlier === null ? [] : [earlier]), ...others];
}
