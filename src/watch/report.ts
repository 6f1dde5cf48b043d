// A look at the journey made whole by what was seen before: rates, how late, how long until it is
// full or drained, what is well and what an operator should look at. All streams are in it; a
// reader is told as many as a person looks through.

import { epochOf, timeText } from '../tools/time-text.ts';
import { attentionOf } from './attention.ts';
import type { Ailment } from './health.ts';
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

/** What a standing is made of. */
export interface Observed {
  readonly moment: StatusMoment;
  readonly history: History;
  readonly ailments: readonly Ailment[];
  /** Epoch milliseconds. */
  readonly now: number;
  readonly startedAt: number;
  /** What the live tail offers; null: there is none. */
  readonly forms: readonly string[] | null;
}

/** How everything stands. */
export function statusOf(observed: Observed): LiveStatus {
  const { moment, history, ailments, now, startedAt, forms } = observed;
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
    ready: ailments.length === 0,
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

/** Where thousands of streams fail alike, more reasons say nothing more. */
const reasonsMax = 50;
/** More than these is to be looked at one after the other anyway. */
const mattersMax = 50;
const throttlesMax = 20;

function left({ remaining }: PathLimit): number {
  return remaining ?? Number.MAX_SAFE_INTEGER;
}

/** Further ahead is not foreseeable. */
const foreseenMsMax = 30 * 86_400_000;

function msUntil(distance: number, perSecond: number): number | null {
  if (perSecond <= 0 || distance <= 0) return null;
  const ms = Math.round((distance / perSecond) * 1_000);
  return ms > foreseenMsMax ? null : ms;
}

/** How long a sink needs for its backlog at its pace; null: nothing to do, or it gets no less. */
function drainedInMs({ name, backlog }: LiveSink, history: History): number | null {
  const passed = history.sinkRate(name);
  // What it takes in a few seconds is under way, and says nothing about more or less.
  const lasting = backlog > passed * underWayS;
  return msUntil(backlog, lasting ? -history.backlogRate(name) : passed);
}

const underWayS = 5;

/**
 * How far behind upstream: everything up to the moment of the last poll that reached the tail is
 * read. Before there was one, everything up to the newest record read is, where the oldest come
 * first; null: not known.
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

/** Which streams a reader is told. */
export interface StreamFilter {
  /** Part of the name, the state or the error, whatever the case; empty: all. */
  readonly find: string;
  /** Of more than these, those that need attention come first. */
  readonly streamsMax: number;
}

/** The standing for a reader; its streams are in the config's order, unless there are too many. */
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
    // Who was read to the tail longest ago comes first; the others are in order already.
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
