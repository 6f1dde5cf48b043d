// The spool as a backfill's reader sees it: memory under the backfill's own key, and of each page only the records of
// the requested time. The live stream's checkpoint and memory are neither read nor changed. Invariants: a record with
// an unreadable time is stored, not dropped; counts become durable together with their page.

import { z } from 'zod';
import {
  type Append,
  ExportError,
  type FetchSpool,
  invariant,
  type NewPage,
  uidBytes,
} from '../contracts/index.ts';
import { cutRecords } from '../tools/index.ts';
import type { ListDeps } from './reader.ts';
import { recordTime } from './record-time.ts';

/** Epoch milliseconds: from `fromMs` inclusive to `toMs` exclusive. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

const counts = z.object({
  /** Records read so far. */
  read: z.int(),
  /** Records stored for the sinks. */
  held: z.int(),
  /** Stored records without a readable time. */
  untimed: z.int(),
  /** Time of the list's first record, and of the last one read; epoch milliseconds. */
  firstAt: z.number().nullable(),
  reachedAt: z.number().nullable(),
});

/** The counts of a backfill. */
export type BackfillCounts = Readonly<z.infer<typeof counts>>;

const nothingYet: BackfillCounts = {
  read: 0,
  held: 0,
  untimed: 0,
  firstAt: null,
  reachedAt: null,
};

/** The key of the counts among the stored entities of a stream. */
const countsKey = 'backfill';

/** Dependencies of the view. */
export interface BackfillSpoolDeps {
  readonly spool: FetchSpool;
  /** The name of the backfill's memory; no stream has this name. */
  readonly key: string;
  readonly span: Span;
  /** Dotted paths of a record's time; the first readable one wins. */
  readonly time: readonly string[];
}

/** The view and its durable counts. */
export interface BackfillSpool {
  readonly view: ListDeps['spool'];
  readonly counts: BackfillCounts;
}

/** Opens the view. Its `recall` throws `checkpoint_mismatch` for state that no backfill has written. */
export function backfillSpool(deps: BackfillSpoolDeps): BackfillSpool {
  const { spool, key } = deps;
  let known = nothingYet;
  const recall: FetchSpool['recall'] = async () => {
    const memory = await spool.recall(key);
    const text = (await spool.entities(key, [countsKey])).get(countsKey);
    const isNew = memory.checkpoint === null || text === undefined;
    known = isNew ? nothingYet : readCounts(text);
    return memory;
  };
  const append: FetchSpool['append'] = async (entry) => {
    const pages = entry.pages.map((page) => pick(page, deps));
    const next = pages.reduce(counted, known);
    const chosen: Append = {
      ...entry,
      stream: key,
      pages: pages.flatMap(({ reduced }) => (reduced === null ? [] : [reduced])),
      // A checkpoint with an entity is never chosen as a fallback for a damaged state: a backfill then restarts, and
      // its checkpoint may be deleted.
      entities: { put: [[countsKey, JSON.stringify(next)]], drop: [] },
    };
    const block = await spool.append(chosen);
    known = next;
    return block;
  };
  return {
    view: {
      groupBytes: spool.groupBytes,
      recall,
      append,
      room: (signal) => spool.room(signal),
      trail: (stream) => spool.trail(stream),
    },
    get counts() {
      return known;
    },
  };
}

function readCounts(text: string): BackfillCounts {
  const found = counts.safeParse(parsed(text));
  if (found.success) return found.data;
  throw new ExportError('checkpoint_mismatch', 'the stored part of the backfill cannot be read', {
    next: 'Restart it.',
    cause: found.error,
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A page, and its selected records. */
interface Picked {
  /** For each record that is new to the backfill, in order: whether it is requested; empty for a page of conditions. */
  readonly requested: readonly boolean[];
  /** The page with only the requested records; null: none is left. */
  readonly reduced: NewPage | null;
  readonly untimed: number;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
}

function pick(page: NewPage, { span, time }: BackfillSpoolDeps): Picked {
  if (page.context.kind === 'condition') {
    return { requested: [], reduced: page, untimed: 0, firstAt: null, lastAt: null };
  }
  const { starts, ends, length } = page.slices ?? cutRecords(page.body, page.items);
  const body = Buffer.from(page.body.buffer, page.body.byteOffset, page.body.byteLength);
  const indices = Array.from(page.kept ?? Array(length).keys());
  const times = indices.map((index) =>
    recordTime(JSON.parse(body.toString('utf8', starts[index], ends[index])), time),
  );
  const requested = times.map((at) => at === null || (at >= span.fromMs && at < span.toMs));
  return {
    requested: requested,
    reduced: reducedTo(page, indices, requested),
    untimed: times.filter((at) => at === null).length,
    firstAt: times.find((at) => at !== null) ?? null,
    lastAt: times.findLast((at) => at !== null) ?? null,
  };
}

function reducedTo(
  page: NewPage,
  indices: readonly number[],
  requested: readonly boolean[],
): NewPage | null {
  if (requested.every((isRequested) => isRequested)) return page;
  const kept = Uint32Array.from(indices.filter((_, at) => requested[at]));
  return kept.length === 0
    ? null
    : { ...page, kept, uids: selected(page.uids, requested, uidBytes) };
}

/** The requested records of `bytes`. */
function selected(
  bytes: Uint8Array,
  requested: readonly boolean[],
  pieceBytes: number,
): Uint8Array {
  invariant(bytes.length === requested.length * pieceBytes, 'there is one piece for each record');
  const pieces = requested.flatMap((isRequested, at) =>
    isRequested ? [bytes.subarray(at * pieceBytes, (at + 1) * pieceBytes)] : [],
  );
  return Buffer.concat(pieces);
}

function counted(
  known: BackfillCounts,
  { requested, untimed, firstAt, lastAt }: Picked,
): BackfillCounts {
  return {
    read: known.read + requested.length,
    held: known.held + requested.filter((isRequested) => isRequested).length,
    untimed: known.untimed + untimed,
    firstAt: known.firstAt ?? firstAt,
    reachedAt: lastAt ?? known.reachedAt,
  };
}
