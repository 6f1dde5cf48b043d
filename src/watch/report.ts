// The full status from a look and its history: rates, lag, time until full or drained, health and attention. It
// contains all streams; a reader receives as many as a person can read.

import { buildText, epochOf, timeText } from '../tools/index.ts';
import { attentionOf } from './attention.ts';
import { type Ailment, isReady } from './health.ts';
import type { History } from './history.ts';
import type { StatusMoment } from './live.ts';
import {
  type LiveSink,
  type LiveStatus,
  type LiveStream,
  type PathLimit,
  roomInSpool,
  type Sum,
} from './status-facts.ts';

const runningBuild = buildText();

/** The inputs of a status. */
export interface Observed {
  readonly moment: StatusMoment;
  readonly history: History;
  readonly ailments: readonly Ailment[];
  /** Epoch milliseconds. */
  readonly now: number;
  readonly startedAt: number;
  /** The share of the streams that must advance for the export to be ready, from 0 to 1. */
  readonly readyShare: number;
  /** The forms of the live tail; null: there is none. */
  readonly forms: readonly string[] | null;
}

/** The full status. */
export function statusOf(observed: Observed): LiveStatus {
  const { moment, history, ailments, now, startedAt, readyShare, forms } = observed;
  const unwell = Map.groupBy(ailments, ({ part }) => part);
  const isWell = (part: Ailment['part']) => {
    const names = new Set(unwell.get(part)?.map(({ name }) => name));
    return (name: string) => !names.has(name);
  };
  const [isStreamWell, isSinkWell] = [isWell('stream'), isWell('sink')];
  const { bytes, max_bytes: bytesMax } = moment.spool;
  const spool = {
    ...moment.spool,
    well: !unwell.has('spool'),
    full_in_ms: msUntil(bytesMax - bytes, history.spoolRate),
  };
  const streams = moment.streams.map((stream) => ({
    ...stream,
    well: isStreamWell(stream.name),
    records_per_s: history.readRate(stream.name),
    polled_at: timeText(history.polledAt(stream.name)),
    lag_ms: lagMs(stream, now),
    waits_for: waitsFor(stream, spool, now),
  }));
  const sinks = moment.sinks.map((sink) => ({
    ...sink,
    well: isSinkWell(sink.name),
    drained_in_ms: drainedInMs(sink, history),
    events_per_s: history.sinkRate(sink.name),
  }));
  const matters = attentionOf({ ...moment, spool }, { ailments, now });
  const upstreams = sumsBy(streams, ({ upstream }) => upstream);
  return {
    at: timeText(now),
    started_at: timeText(startedAt),
    version: runningBuild,
    ready: isReady(ailments, { streams: moment.streams, share: readyShare }),
    reasons: ailments
      .slice(0, reasonsMax)
      .map(({ part, name, reason, message }) => ({ part, name, reason, message })),
    reasons_total: ailments.length,
    ...(moment.cluster !== undefined && { shards: moment.cluster.share }),
    attention: matters.slice(0, mattersMax),
    attention_total: matters.length,
    upstreams: moment.upstreams.map((one) => {
      const { name, throttles } = one;
      const { name: _, upstream, ...sum } = upstreams.get(name) ?? noStreams(name);
      const shown = throttles.toSorted((a, b) => b.wait_ms - a.wait_ms || left(a) - left(b));
      return {
        ...{ ...one, ...sum, upstream },
        throttles: shown.slice(0, throttlesMax),
      };
    }),
    sources: [...sumsBy(streams, ({ source }) => source).values()],
    streams_total: streams.length,
    streams_found: streams.length,
    records_per_s: history.readRateInAll,
    streams,
    spool,
    sinks,
    conditions: moment.conditions,
    filter_failures: moment.filters.reduce((sum, { failures }) => sum + failures, 0),
    filters: moment.filters,
    transcoded: moment.transcoded,
    lookups: moment.lookups,
    removed_sinks: moment.removed_sinks,
    successions: moment.successions,
    unread_times: moment.unread_times,
    config_differences: moment.config_differences,
    reload_refused: moment.reload_refused,
    standing_by: moment.standing_by,
    ...(moment.deployment_changed ? { deployment_changed: moment.deployment_changed } : {}),
    tail_forms: forms,
  };
}

/** Limit of reasons: if thousands of streams fail alike, more reasons say nothing new. */
const reasonsMax = 50;
/** Limit of matters: more cannot be handled at once anyway. */
const mattersMax = 50;
const throttlesMax = 20;

function left({ remaining }: PathLimit): number {
  return remaining ?? Number.MAX_SAFE_INTEGER;
}

/** Limit of forecasts. */
const foreseenMsMax = 30 * 86_400_000;

function msUntil(distance: number, perSecond: number): number | null {
  if (perSecond <= 0 || distance <= 0) return null;
  const ms = Math.round((distance / perSecond) * 1_000);
  return ms > foreseenMsMax ? null : ms;
}

/** Time until a sink's backlog is drained at its pace; null: there is none, or it does not shrink. */
function drainedInMs({ name, backlog }: LiveSink, history: History): number | null {
  const passed = history.sinkRate(name);
  // Events that the sink passes in a few seconds are in flight and show no trend.
  const lasting = backlog > passed * underWayS;
  return msUntil(backlog, lasting ? -history.backlogRate(name) : passed);
}

const underWayS = 5;

/**
 * The lag after upstream: everything until the last poll that reached the tail was read. Before the first, everything
 * until the newest record read, if the list is oldest first; null: unknown.
 */
function lagMs({ caught_up_at, newest_record_at, order }: LiveStream, now: number): number | null {
  const readUpTo = epochOf(caught_up_at ?? (order === 'oldest_first' ? newest_record_at : null));
  return readUpTo === null ? null : Math.max(0, now - readUpTo);
}

function waitsFor(
  { upstream, state, budget, next_poll_at }: LiveStream,
  spool: LiveStatus['spool'],
  now: number,
): string | null {
  const dueAt = epochOf(next_poll_at);
  if (dueAt !== null && dueAt <= now) return 'its turn among the streams';
  switch (state) {
    case 'halted':
      return 'an operator';
    case 'retrying':
      return 'its next attempt';
    case 'waiting':
      return 'its schedule';
    case 'polling': {
      if (spool.bytes >= spool.max_bytes) return roomInSpool;
      const waitMs = budget?.wait_ms ?? 0;
      return waitMs > 0 ? `its turn at ${upstream} (up to ${Math.ceil(waitMs / 1_000)} s)` : null;
    }
  }
}

function noStreams(upstream: string): Sum {
  const none = { streams: 0, streams_failing: 0, streams_unwell: 0, records_per_s: 0 };
  return { name: upstream, upstream, ...none };
}

function sumsBy(
  streams: readonly LiveStream[],
  key: (stream: LiveStream) => string,
): ReadonlyMap<string, Sum> {
  const groups = Map.groupBy(streams, key);
  const sums = Array.from(groups, ([name, group]): [string, Sum] => [
    name,
    {
      name,
      upstream: group[0]?.upstream ?? '',
      streams: group.length,
      streams_failing: group.filter(({ error }) => error !== null).length,
      streams_unwell: group.filter(({ well }) => !well).length,
      records_per_s: Math.round(group.reduce((sum, s) => sum + s.records_per_s, 0) * 100) / 100,
    },
  ]);
  return new Map(sums);
}

/** Which streams a reader receives. */
export interface StreamFilter {
  /** Part of the name, the state or the error, in any case; empty: all. */
  readonly find: string;
  /** Of more streams than this, those that need attention come first. */
  readonly streamsMax: number;
}

/** The status for a reader; its streams are in the config's order, unless there are too many. */
export function reportedTo(statusView: LiveStatus, { find, streamsMax }: StreamFilter): LiveStatus {
  const sought = find.trim().toLowerCase();
  const all = statusView.streams;
  const found = sought === '' ? all : all.filter((stream) => holds(stream, sought));
  if (found.length <= streamsMax) {
    return { ...statusView, streams_found: found.length, streams: found };
  }
  const ranked = Map.groupBy(found, urgency);
  const streams: LiveStream[] = [];
  for (const rank of ranks) {
    if (streams.length >= streamsMax) break;
    // The stream that was longest not read to its tail comes first; the others are in order already.
    const alike = (ranked.get(rank) ?? []).toSorted((a, b) => readAt(a) - readAt(b));
    streams.push(...alike.slice(0, streamsMax - streams.length));
  }
  return { ...statusView, streams_found: found.length, streams };
}

function holds({ name, state, error }: LiveStream, sought: string): boolean {
  return (
    name.toLowerCase().includes(sought) ||
    state.includes(sought) ||
    (error !== null && `${error.code} ${error.message}`.toLowerCase().includes(sought))
  );
}

const ranks = ['unwell', 'failing', 'behind', 'well'] as const;

function urgency({ well, error, caught_up_at }: LiveStream): (typeof ranks)[number] {
  if (!well) return 'unwell';
  if (error !== null) return 'failing';
  return caught_up_at === null ? 'behind' : 'well';
}

function readAt({ caught_up_at }: LiveStream): number {
  return epochOf(caught_up_at) ?? 0;
}
