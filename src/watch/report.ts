// The journey as `/status.json` and the page tell it: what is, what it was like lately, and what that means for the
// operator: how late, how long until it is full or drained, what a stream waits for. Keys are lower_snake_case, times RFC
// 3339 or null, durations milliseconds; keys may be added. What must stay true: every text is passed on as it is, so
// whoever shows it must treat it as text.

import type { Ailment } from './health.ts';
import type { History } from './history.ts';
import type { Watched, WatchedError, WatchedSink, WatchedStream } from './watched.ts';

/** What a report is made of. */
export interface ReportParts {
  readonly watched: Watched;
  readonly history: History;
  readonly ailments: readonly Ailment[];
  /** Epoch milliseconds. */
  readonly now: number;
  readonly startedAt: number;
  /** The streams that need attention first; the rest is only counted. */
  readonly streamsMax: number;
}

/** The journey, for a reader. */
export type Report = ReturnType<typeof reportOf>;

/** Makes the report. */
export function reportOf(parts: ReportParts) {
  const { watched, history, ailments, now, startedAt, streamsMax } = parts;
  const unwell = new Set(ailments.map(({ part, name }) => `${part} ${name}`));
  const isUnwell = (part: Ailment['part'], name: string) => unwell.has(`${part} ${name}`);
  const shown =
    watched.streams.length <= streamsMax
      ? watched.streams
      : watched.streams
          .toSorted((a, b) => urgency(b, isUnwell) - urgency(a, isUnwell))
          .slice(0, streamsMax);
  return {
    at: timeText(now),
    started_at: timeText(startedAt),
    ready: ailments.length === 0,
    reasons: ailments,
    upstreams: watched.upstreams.map(({ name, baseUrl, throttles, endOfLife }) => ({
      name,
      base_url: baseUrl,
      streams: watched.streams.filter(({ upstream }) => upstream === name).length,
      streams_failing: watched.streams.filter(
        ({ upstream, error }) => upstream === name && error !== null,
      ).length,
      throttles: throttles
        .toSorted((a, b) => b.waitMs - a.waitMs)
        .slice(0, throttlesMax)
        .map(({ path, waitMs, limit, remaining }) => ({ path, wait_ms: waitMs, limit, remaining })),
      end_of_life: endOfLife.map(({ endpoint, deprecationMs, sunsetMs }) => ({
        endpoint,
        deprecation_at: timeText(deprecationMs),
        sunset_at: timeText(sunsetMs),
      })),
    })),
    streams_total: watched.streams.length,
    records_per_s: sum(watched.streams.map(({ name }) => history.readRate(name))),
    streams: shown.map((stream) => ({
      name: stream.name,
      source: stream.source,
      upstream: stream.upstream,
      state: stream.state,
      well: !isUnwell('stream', stream.name),
      order: stream.order,
      polls: stream.polls,
      polls_skipped: stream.skipped,
      records: stream.records,
      records_per_s: history.readRate(stream.name),
      polled_at: timeText(history.polledAt(stream.name)),
      caught_up_at: timeText(stream.caughtUpAt),
      lag_ms: stream.caughtUpAt === null ? null : Math.max(0, now - stream.caughtUpAt),
      checkpoint_at: timeText(stream.checkpointAt),
      waits_for: waitsFor(stream, watched),
      error: errorOf(stream.error),
    })),
    spool: {
      well: !isUnwell('spool', 'spool'),
      bytes: watched.spool.bytes,
      max_bytes: watched.spool.bytesMax,
      events: watched.spool.end - watched.spool.oldest,
      end: watched.spool.end,
      oldest_at: timeText(watched.spool.oldestAt),
      full_in_ms: msUntil(watched.spool.bytesMax - watched.spool.bytes, history.spoolRate()),
    },
    sinks: watched.sinks.map((sink) => ({
      name: sink.name,
      type: sink.type,
      state: sink.state,
      well: !isUnwell('sink', sink.name),
      position: sink.position,
      backlog: sink.backlog,
      drained_in_ms: drainedInMs(sink, history),
      events_per_s: history.sinkRate(sink.name),
      delivered: sink.delivered,
      retries: sink.retries,
      dead_letters: sink.lettersHeld,
      error: errorOf(sink.error),
    })),
    conditions: watched.conditions.map(({ condition, stream, observedAt, message }) => ({
      condition,
      stream,
      observed_at: observedAt,
      message,
    })),
    filter_failures: watched.filterFailures,
  };
}

const throttlesMax = 20;
/** Further ahead is not foreseeable. */
const foreseenMsMax = 30 * 86_400_000;

function urgency(
  stream: WatchedStream,
  isUnwell: (part: Ailment['part'], name: string) => boolean,
): number {
  if (isUnwell('stream', stream.name)) return 3;
  if (stream.error !== null) return 2;
  return stream.caughtUpAt === null ? 1 : 0;
}

function waitsFor(stream: WatchedStream, { upstreams, spool }: Watched): string | null {
  const throttles = upstreams.find(({ name }) => name === stream.upstream)?.throttles ?? [];
  const waitMs = throttles.reduce((most, throttle) => Math.max(most, throttle.waitMs), 0);
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

/** How long a sink needs for its backlog as it goes now; null: nothing to do, or it does not get less. */
function drainedInMs({ name, backlog }: WatchedSink, history: History): number | null {
  const passed = history.sinkRate(name);
  // What it takes in a few seconds is under way, and says nothing about more or less.
  const lasting = backlog > passed * underWayS;
  return msUntil(backlog, lasting ? -history.backlogRate(name) : passed);
}

const underWayS = 5;

function msUntil(distance: number, perSecond: number): number | null {
  if (perSecond <= 0 || distance <= 0) return null;
  const ms = Math.round((distance / perSecond) * 1_000);
  return ms > foreseenMsMax ? null : ms;
}

function errorOf(error: WatchedError | null) {
  if (error === null) return null;
  const { code, message, next, requestId, traceId } = error;
  return { code, message, next, request_id: requestId, trace_id: traceId };
}

function sum(rates: readonly number[]): number {
  return Math.round(rates.reduce((total, rate) => total + rate, 0) * 100) / 100;
}

function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
