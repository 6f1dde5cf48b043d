// Streams as the report tells them. There may be thousands, so those that need attention come first, a reader can ask for
// some by name, and the rest is only counted.

import type { History } from './history.ts';
import type { Watched, WatchedBudget, WatchedError, WatchedStream } from './watched.ts';

/** Which streams a reader gets. */
export interface Choice {
  readonly streamsMax: number;
  /** Part of the name, the state or the error; whatever the case. */
  readonly find: string;
  readonly isUnwell: (stream: string) => boolean;
}

/** The streams for a reader, and how many there would be. In the config's order, unless there are too many. */
export function chooseStreams(
  streams: readonly WatchedStream[],
  { streamsMax, find, isUnwell }: Choice,
): { readonly found: number; readonly chosen: readonly WatchedStream[] } {
  const sought = find.trim().toLowerCase();
  const found = sought === '' ? streams : streams.filter((stream) => holds(stream, sought));
  if (found.length <= streamsMax) return { found: found.length, chosen: found };
  const ranked = Map.groupBy(found, (stream) => urgency(stream, isUnwell));
  const chosen: WatchedStream[] = [];
  for (const rank of ranks) {
    if (chosen.length >= streamsMax) break;
    // Who was read to the tail longest ago comes first; the others are in order already.
    const alike = (ranked.get(rank) ?? []).toSorted((a, b) => readAt(a) - readAt(b));
    chosen.push(...alike.slice(0, streamsMax - chosen.length));
  }
  return { found: found.length, chosen };
}

function holds({ name, state, error }: WatchedStream, sought: string): boolean {
  return (
    name.toLowerCase().includes(sought) ||
    state.includes(sought) ||
    (error !== null && `${error.code} ${error.message}`.toLowerCase().includes(sought))
  );
}

const ranks = ['unwell', 'failing', 'behind', 'well'] as const;

function urgency(
  { name, error, caughtUpAt }: WatchedStream,
  isUnwell: Choice['isUnwell'],
): (typeof ranks)[number] {
  if (isUnwell(name)) return 'unwell';
  if (error !== null) return 'failing';
  return caughtUpAt === null ? 'behind' : 'well';
}

function readAt({ caughtUpAt }: WatchedStream): number {
  return caughtUpAt ?? 0;
}

/** One stream. */
export function streamReport(
  stream: WatchedStream,
  context: {
    readonly watched: Watched;
    readonly history: History;
    readonly now: number;
    readonly isUnwell: Choice['isUnwell'];
  },
) {
  const { watched, history, now, isUnwell } = context;
  const { budget } = stream;
  return {
    name: stream.name,
    source: stream.source,
    upstream: stream.upstream,
    state: stream.state,
    well: !isUnwell(stream.name),
    order: stream.order,
    polls: stream.polls,
    polls_skipped: stream.skipped,
    records: stream.records,
    records_per_s: history.readRate(stream.name),
    polled_at: timeText(history.polledAt(stream.name)),
    next_poll_at: timeText(stream.nextPollAt),
    caught_up_at: timeText(stream.caughtUpAt),
    newest_record_at: timeText(stream.newestRecordAt),
    lag_ms: lagMs(stream, now),
    checkpoint_at: timeText(stream.checkpointAt),
    budget: budget === null ? null : budgetOf(budget),
    waits_for: waitsFor(stream, watched, now),
    error: errorOf(stream.error),
  };
}

/**
 * How far behind upstream: everything up to the moment of the last poll that reached the tail is read. Before there was one,
 * everything up to the newest record read is, where the oldest come first; null: not known.
 */
function lagMs({ caughtUpAt, newestRecordAt, order }: WatchedStream, now: number): number | null {
  const readUpTo = caughtUpAt ?? (order === 'oldest_first' ? newestRecordAt : null);
  return readUpTo === null ? null : Math.max(0, now - readUpTo);
}

function waitsFor(stream: WatchedStream, { spool }: Watched, now: number): string | null {
  const waitMs = stream.budget?.waitMs ?? 0;
  const isDue = stream.nextPollAt !== null && stream.nextPollAt <= now;
  if (isDue) return 'its turn among the streams';
  switch (stream.state) {
    case 'halted':
      return 'an operator';
    case 'retrying':
      return 'its next attempt';
    case 'waiting':
      return 'its schedule';
    case 'polling':
      if (spool.bytes >= spool.bytesMax) return 'room in the spool';
      if (waitMs > 0)
        return `its turn at ${stream.upstream} (up to ${Math.ceil(waitMs / 1_000)} s)`;
      return null;
  }
}

/** A limit as reports tell it. */
export function budgetOf({ path, waitMs, limit, remaining }: WatchedBudget) {
  return { path, wait_ms: waitMs, limit, remaining };
}

/** A failure as reports tell it. */
export function errorOf(error: WatchedError | null) {
  if (error === null) return null;
  const { code, message, next, upstreamCode, requestId, traceId } = error;
  const ids = { request_id: requestId, trace_id: traceId };
  return { code, message, next, upstream_code: upstreamCode, ...ids };
}

/** RFC 3339, or null. */
export function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
