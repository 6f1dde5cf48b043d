// The journey as `/status.json` and the page tell it: what is, what it was like lately, and what that means for the
// operator: how late, how long until it is full or drained, what a stream waits for. Keys are lower_snake_case, times RFC
// 3339 or null, durations milliseconds; keys may be added. What must stay true: every text is passed on as it is, so
// whoever shows it must treat it as text.

import { mattersOf } from './attention.ts';
import type { Ailment } from './health.ts';
import type { History } from './history.ts';
import { budgetOf, chooseStreams, errorOf, streamReport, timeText } from './report-streams.ts';
import type { Watched, WatchedBudget, WatchedSink } from './watched.ts';

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
  /** Only streams whose name, state or error holds this text; empty: all. */
  readonly find: string;
  /** What the live tail offers; null: there is none. */
  readonly forms: readonly string[] | null;
}

/** The journey, for a reader. */
export type Report = ReturnType<typeof reportOf>;

/** Makes the report. */
export function reportOf(parts: ReportParts) {
  const { watched, history, ailments, now, startedAt } = parts;
  const unwell = Map.groupBy(ailments, ({ part }) => part);
  const isUnwell = (part: Ailment['part']) => {
    const names = new Set(unwell.get(part)?.map(({ name }) => name));
    return (name: string) => names.has(name);
  };
  const [isStreamUnwell, isSinkUnwell] = [isUnwell('stream'), isUnwell('sink')];
  const { found, chosen } = chooseStreams(watched.streams, { ...parts, isUnwell: isStreamUnwell });
  const { sources, upstreams } = sums(watched, history, isStreamUnwell);
  const { bytes, bytesMax } = watched.spool;
  const fullInMs = msUntil(bytesMax - bytes, history.spoolRate());
  const matters = mattersOf(watched, ailments, { now, fullInMs });
  return {
    at: timeText(now),
    started_at: timeText(startedAt),
    ready: ailments.length === 0,
    reasons: reasonsOf(ailments),
    reasons_total: ailments.length,
    attention: matters.slice(0, mattersMax),
    attention_total: matters.length,
    upstreams: watched.upstreams.map(({ name, baseUrl, throttles, endOfLife }) => ({
      name,
      base_url: baseUrl,
      ...(upstreams.get(name) ?? nothing),
      throttles: throttles
        .toSorted((a, b) => b.waitMs - a.waitMs || left(a) - left(b))
        .slice(0, throttlesMax)
        .map(budgetOf),
      end_of_life: endOfLife.map(({ endpoint, deprecationMs, sunsetMs }) => ({
        endpoint,
        deprecation_at: timeText(deprecationMs),
        sunset_at: timeText(sunsetMs),
      })),
    })),
    sources: Array.from(sources, ([name, { upstream, ...counts }]) => ({
      name,
      upstream,
      ...counts,
    })),
    streams_total: watched.streams.length,
    streams_found: found,
    records_per_s: history.readRateInAll(),
    streams: chosen.map((stream) =>
      streamReport(stream, { watched, history, now, isUnwell: isStreamUnwell }),
    ),
    spool: {
      well: !unwell.has('spool'),
      bytes: watched.spool.bytes,
      max_bytes: watched.spool.bytesMax,
      events: watched.spool.end - watched.spool.oldest,
      end: watched.spool.end,
      oldest_at: timeText(watched.spool.oldestAt),
      full_in_ms: fullInMs,
    },
    sinks: watched.sinks.map((sink) => ({
      name: sink.name,
      type: sink.type,
      state: sink.state,
      well: !isSinkUnwell(sink.name),
      position: sink.position,
      backlog: sink.backlog,
      drained_in_ms: drainedInMs(sink, history),
      events_per_s: history.sinkRate(sink.name),
      delivered: sink.delivered,
      retries: sink.retries,
      dead_letters: sink.lettersHeld,
      dead_letter_reasons: sink.letterReasons.map(({ reason, count, lastAt }) => ({
        reason,
        count,
        last_at: timeText(lastAt),
      })),
      error: errorOf(sink.error),
      notice: sink.notice,
    })),
    conditions: watched.conditions.map(({ condition, stream, observedAt, message }) => ({
      condition,
      stream,
      observed_at: observedAt,
      message,
    })),
    filter_failures: watched.filterFailures.reduce((sum, { failures }) => sum + failures, 0),
    filters: watched.filterFailures,
    reload_refused: reloadOf(watched),
    tail_forms: parts.forms,
  };
}

function reloadOf({ reloadRefused: refused }: Watched) {
  return refused && { ...refused, at: timeText(refused.at) };
}

/** Why the journey does not go on, as reports tell it. */
export function reasonsOf(ailments: readonly Ailment[]) {
  return ailments
    .slice(0, reasonsMax)
    .map(({ part, name, reason, message }) => ({ part, name, reason, message }));
}

/** Where thousands of streams fail alike, more reasons say nothing more. */
const reasonsMax = 50;
/** More than these is to be looked at one after the other anyway. */
const mattersMax = 50;
const throttlesMax = 20;

function left({ remaining }: WatchedBudget): number {
  return remaining ?? Number.MAX_SAFE_INTEGER;
}

/** Further ahead is not foreseeable. */
const foreseenMsMax = 30 * 86_400_000;

/** Streams counted together, by source or upstream. */
interface Sum {
  readonly upstream: string;
  streams: number;
  streams_failing: number;
  streams_unwell: number;
  records_per_s: number;
}

const nothing: Omit<Sum, 'upstream'> = {
  ...{ streams: 0, streams_failing: 0, streams_unwell: 0, records_per_s: 0 },
};

function sums({ streams }: Watched, history: History, isUnwell: (stream: string) => boolean) {
  const sources = new Map<string, Sum>();
  const upstreams = new Map<string, Sum>();
  for (const { name, source, upstream, error } of streams) {
    const rate = history.readRate(name);
    const unwell = isUnwell(name);
    for (const sum of [summed(sources, source, upstream), summed(upstreams, upstream, upstream)]) {
      sum.streams += 1;
      if (error !== null) sum.streams_failing += 1;
      if (unwell) sum.streams_unwell += 1;
      sum.records_per_s += rate;
    }
  }
  for (const sum of [...sources.values(), ...upstreams.values()]) {
    sum.records_per_s = Math.round(sum.records_per_s * 100) / 100;
  }
  return { sources, upstreams };
}

function summed(all: Map<string, Sum>, name: string, upstream: string): Sum {
  const known = all.get(name);
  if (known !== undefined) return known;
  const fresh = { ...nothing, upstream };
  all.set(name, fresh);
  return fresh;
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
