// Reads the state directory for commands, while another process may be writing to the database, which WAL allows.
// Invariants: nothing is created, moved or locked; checkpoints are shown by their facts, because a cursor is a kind of
// credential and leaves this file only as a digest.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { AsideDestination, Json, Offset, PairReport } from '../contracts/index.ts';
import {
  type HeldLookups,
  type ListCheckpoint,
  lookedUpAt,
  parseCollectionCheckpoint,
  parseListCheckpoint,
  parseLookups,
  silenceKey,
  silentSince,
  unitOf,
} from '../fetch/index.ts';
import {
  hasState,
  holderOf,
  type KnownSink,
  lookInto,
  type ReachedMoment,
  type SinkHistory,
  type Store,
} from '../hold/index.ts';
import { timeText } from '../tools/index.ts';
import { type HeldEnds, parseEndsHeld, upstreamAt } from '../upstream/index.ts';
import { type compared, lastError, notice, parents, suspects } from './status-facts.ts';

const text = z.string().nullable().catch(null);
const number = z.number().nullable().catch(null);
const noted = { state: text, error: lastError.nullable().catch(null) };

/** A stream's note after each poll; a damaged row is empty, the others stay readable. */
const streamNote = z.object({
  ...{ source: text, caught_up_at: number, next_poll_at: number, ...noted },
  interval_ms: number,
  parents: parents.optional().catch(undefined),
});

/** A sink's periodic note. */
const sinkNote = z.object({
  ...noted,
  notice: notice.nullable().catch(null),
  suspects: suspects.nullable().catch(null),
});

/** The stored facts on a stream. Times are epoch milliseconds. */
export interface StreamState extends z.output<typeof streamNote> {
  readonly checkpoint: CheckpointFacts | null;
  /** Moments by which everything that upstream showed was stored, oldest first. */
  readonly reached: readonly ReachedMoment[];
  /** Since when it is reported as silent; null: it is not. */
  readonly silent_since: number | null;
}

/** A checkpoint without its cursors. */
export interface CheckpointFacts {
  readonly savedAt: number;
  /** The order of the list as far as known; null for a collection. */
  readonly order: string | null;
  /** `the first page`, `record 1200`, or the cursor's digest; null: it resumes nowhere. */
  readonly resume: string | null;
  /** Latest time of a record read; null: none had a time. */
  readonly watermark: number | null;
  /** The whole list was read once. */
  readonly swept: boolean | null;
  /** Of a collection: values that differ at each reading; null: none. */
  readonly compared: Compared | null;
}

type Compared = z.output<typeof compared>;

/** The stored facts on a sink. */
interface SinkState extends z.output<typeof sinkNote>, SinkHistory {
  /** Null: nothing was ever acknowledged. */
  readonly position: Offset | null;
  readonly deadLetters: number;
  /** Destinations at fault, with the events set aside for them. */
  readonly aside: readonly AsideDestination[];
}

/** The state directory at one moment. */
export interface State {
  readonly streams: ReadonlyMap<string, StreamState>;
  readonly sinks: ReadonlyMap<string, SinkState>;
  /** The sinks of this config and of earlier ones. */
  readonly knownSinks: ReadonlyMap<string, KnownSink>;
  /** Sources that move to their successors. */
  readonly pairs: readonly PairReport[];
  /** By upstream. */
  readonly lookups: ReadonlyMap<string, HeldLookups['tables']>;
  /** The end dates that responses announced, by upstream. */
  readonly ends: ReadonlyMap<string, HeldEnds>;
  readonly spool: {
    /** Null: unknown, because the state is a copy, which has no pages. */
    readonly bytes: number | null;
    /** Events in the stored pages; of a copy, the events that wait for its slowest sink. */
    readonly events: number;
    /** When the oldest stored page was read; null: none is stored. */
    readonly oldestAt: number | null;
    readonly oldest: Offset;
    readonly end: Offset;
    readonly answers?: readonly Offset[];
  };
  /** The process that runs with it, `process PID on HOST`; null: none. */
  readonly holder: string | null;
}

/** The state of an empty directory. */
export const emptyState: State = {
  streams: new Map(),
  sinks: new Map(),
  knownSinks: new Map(),
  pairs: [],
  lookups: new Map(),
  ends: new Map(),
  spool: { bytes: 0, events: 0, oldestAt: null, oldest: 0, end: 0 },
  holder: null,
};

/** The part of a config that gives the possible state directories. */
interface Searched {
  readonly state: { readonly dir: string; readonly places: readonly string[] };
}

/** A clause that there is no state, which may explain an empty result; empty if there is one. */
export function notHere({ state: { dir, places } }: Searched): string {
  if (hasState(dir)) return '';
  return `: there is no state in ${places.join(' or ')}, so nothing has run with it yet, or not from there`;
}

/**
 * Reads the state; an empty one if there is none yet. `copied`: the directory has a copy from Kafka of the state of
 * this process; null: no process has it. Throws `state_damaged`.
 */
export function readState(dir: string, copied?: Pick<State, 'holder'>): State {
  const { holder } = copied ?? { holder: holderOf(dir) };
  return lookInto(dir, { ...emptyState, holder }, (store) => {
    const { bytes, oldest, end } = store.refresh();
    const spool = { bytes, oldest, end, ...store.held(), answers: store.answers() };
    const knownSinks = store.knownSinks.all();
    const pairs = store.pairReports(Date.now());
    const state = { ...heldOf(store), sinks: sinksOf(store), knownSinks, pairs, spool, holder };
    return copied === undefined ? state : { ...state, spool: spoolOfCopy(state) };
  });
}

/** Pages are not copied, so which of them are still stored is not known. */
function spoolOfCopy({ sinks, knownSinks, spool: { end } }: State): State['spool'] {
  const positions = [...sinks].flatMap(([name, { position }]) => {
    const { missingSince = null, keeps = true } = knownSinks.get(name) ?? {};
    return missingSince !== null && !keeps ? [] : (position ?? 0);
  });
  const events = end - Math.min(end, ...positions);
  return { bytes: null, events, oldestAt: null, oldest: 0, end };
}

/**
 * Rows of backfills (hold/backfills.ts) and rows beside a checkpoint are stored among the streams and belong to no
 * stream.
 */
const ofNoStream =
  /#(backfill-[0-9a-f-]+|replay-[0-9a-f]+|silence|volume|encoding|lookups|drift|collections|ends)$/;

function heldOf(store: Store): Pick<State, 'streams' | 'lookups' | 'ends'> {
  const notes = store.noted('stream');
  const moments = store.receipts.moments();
  const held = store.streams.checkpoints();
  const bodies = new Map(held.map(({ stream, checkpoint }) => [stream, checkpoint]));
  const checkpoints = new Map(
    held.map(({ stream, checkpoint, savedAt }) => [stream, checkpointFacts(checkpoint, savedAt)]),
  );
  const names = new Set([...checkpoints.keys(), ...notes.keys()]);
  for (const name of names) if (ofNoStream.test(name)) names.delete(name);
  const lookups = held.flatMap(({ stream, checkpoint }) => {
    const upstream = lookedUpAt(stream);
    return upstream === null ? [] : [[upstream, parseLookups(checkpoint).tables] as const];
  });
  const ends = held.flatMap(({ stream, checkpoint }) => {
    const upstream = upstreamAt(stream);
    const end = upstream === null ? null : parseEndsHeld(checkpoint);
    return upstream === null || end === null ? [] : [[upstream, end] as const];
  });
  const streams = new Map(
    Array.from(names, (name) => {
      const note = streamNote.parse(notes.get(name) ?? {});
      const silent_since = silentSince(bodies.get(silenceKey(name)));
      const [checkpoint, reached] = [checkpoints.get(name) ?? null, moments.get(name) ?? []];
      return [name, { ...note, silent_since, checkpoint, reached }];
    }),
  );
  return { streams, lookups: new Map(lookups), ends: new Map(ends) };
}

function sinksOf(store: Store): ReadonlyMap<string, SinkState> {
  const notes = store.noted('sink');
  const positions = store.positions();
  const counts = store.deadLetters.counts();
  const aside = Map.groupBy(store.aside.destinations(null), ({ sink }) => sink);
  const names = new Set([...positions.keys(), ...counts.keys(), ...notes.keys()]);
  for (const name of names) if (ofNoStream.test(name)) names.delete(name);
  return new Map(
    Array.from(names, (name) => {
      const note = sinkNote.parse(notes.get(name) ?? {});
      const position = positions.get(name) ?? null;
      const history = store.receipts.history(name, position ?? 0);
      const deadLetters = counts.get(name) ?? 0;
      return [name, { ...note, ...history, position, deadLetters, aside: aside.get(name) ?? [] }];
    }),
  );
}

/** A checkpoint's facts; nulls if it is not a list's. */
function checkpointFacts(body: Json, savedAt: number): CheckpointFacts {
  const list = parseListCheckpoint(body);
  return {
    savedAt,
    order: list?.growth.order ?? null,
    resume: list === null ? null : resumeText(list),
    watermark: list?.memory.watermark ?? null,
    swept: list?.whole.swept ?? null,
    compared: comparedIn(body),
  };
}

/** Values of a collection that differ at each reading. */
function comparedIn(body: Json): Compared | null {
  const { volatile = [], unstable, flaps = 0 } = parseCollectionCheckpoint(body) ?? {};
  if (volatile.length === 0 && unstable === undefined && flaps === 0) return null;
  return {
    volatile: volatile.map(({ at, ...one }) => ({ ...one, learned_at: timeText(at) })),
    unstable: unstable ?? { entities: 0, examples: [] },
    flaps,
  };
}

function resumeText({ end: { resume }, fingerprint }: ListCheckpoint): string | null {
  if (resume === null) return null;
  const { window } = resume;
  const of = window === undefined ? '' : ` of the window from ${timeText(window.from)}`;
  if (resume.by === 'offset') return `${unitOf(fingerprint)} ${resume.offset}${of}`;
  const { cursor } = resume;
  return `${cursor === null ? 'the first page' : `cursor with digest ${cursorDigest(cursor)}`}${of}`;
}

/** Shows whether two cursors are equal, and cannot be used for a request. */
export function cursorDigest(cursor: string): string {
  return createHash('sha256').update(cursor).digest('hex').slice(0, 12);
}

/** The offset before which all events of a sink are settled: its position, or the first event set aside. */
export function settledBefore(
  position: Offset,
  aside: readonly Pick<AsideDestination, 'first'>[],
): Offset {
  return Math.min(position, ...aside.map(({ first }) => first));
}

/** The destinations at fault as `status` shows them. */
export function asideFacts(aside: readonly AsideDestination[]) {
  return aside.map(({ destination, events, reason, since }) => ({
    ...{ destination, events, reason },
    since: timeText(since),
  }));
}
