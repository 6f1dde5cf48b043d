// The status of a running export, from the pipeline's state, the spool's gauge, the upstreams' limits and the database
// (checkpoints, dead letters), with the config's names. Invariant: a look is cheap and never fails, so the database,
// which may be busy, is read rarely and its last result is kept.

import { backlog, type Clock, type ExportError, type Log, type Spool } from '../contracts/index.ts';
import { lookInto } from '../hold/index.ts';
import type { Pipeline, Plan } from '../pipeline.ts';
import { cleanText, timeText } from '../tools/index.ts';
import type { UpstreamClient } from '../upstream/index.ts';
import { budgetOf, budgetsOf } from './budgets.ts';
import type { Findings, FoundCount } from './findings.ts';
import { concernedUpstreams } from './moved-sources.ts';
import { removedSinksOf } from './removed-sinks.ts';
import { type CheckpointFacts, readState, type State, settledBefore } from './state.ts';
import type {
  LiveError,
  LiveSink,
  LiveStatus,
  LiveStream,
  PathLimit,
  ShardShare,
  Sum,
} from './status-facts.ts';
import { lookupsOf } from './stored.ts';
import { successionFacts } from './successions.ts';
import { earliest, settledEverywhere, settledStreams } from './up-to.ts';
import { endFacts } from './upstream-ends.ts';

/** The sources of the facts. */
export interface Sights {
  readonly plan: Plan & { readonly upstreams: ReadonlyMap<string, UpstreamClient> };
  readonly state: {
    readonly dir: string;
    readonly maxBytes: number;
    readonly removedSinksMs: number;
  };
  readonly pipeline: Pipeline;
  readonly spool: Spool;
  readonly findings: Findings;
  /** The stored state before the run, until it is read again. */
  readonly before: State;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined: the state is in SQLite. */
  readonly cluster?: (() => ClusterFacts) | undefined;
}

/** The status of a single look; values that need several looks, such as rates, are at rest. */
export interface StatusMoment
  extends Pick<
    LiveStatus,
    | 'streams'
    | 'spool'
    | 'sinks'
    | 'conditions'
    | 'filters'
    | 'transcoded'
    | 'lookups'
    | 'removed_sinks'
    | 'successions'
    | 'unread_times'
    | 'config_differences'
    | 'reload_refused'
    | 'standing_by'
  > {
  readonly upstreams: readonly Omit<LiveStatus['upstreams'][number], Exclude<keyof Sum, 'name'>>[];
  readonly deployment_changed?: LiveStatus['deployment_changed'];
  /** Poll interval of each stream by name, milliseconds; null: a cron schedule decides. */
  readonly intervals: ReadonlyMap<string, number | null>;
  /** Events that a sink has rejected for good since the start, by name. */
  readonly refused: ReadonlyMap<string, number>;
  readonly found: readonly FoundCount[];
  /** Log lines that the collector never received; null: no collector is configured. */
  readonly logLinesLost: number | null;
  /** Undefined: the state is in SQLite. */
  readonly cluster?: ClusterFacts;
}

/** A process's own facts on its state in Kafka. */
export interface ClusterFacts {
  readonly share: ShardShare;
  /** Number of shards taken over from another process since its start. */
  readonly takeovers: number;
  /** When the group that was silent longest last answered, epoch milliseconds; null: not yet. */
  readonly answeredAt: number | null;
  /** Duration of the last commit, or of the one under way if that is longer; null: none yet. */
  readonly commitMs: number | null;
}

/** The status of a process without shards, and the object of its wait; null: it starts. */
export function idleMoment(maxBytes: number, waitsFor: string | null): StatusMoment {
  const spool = { well: true, bytes: 0, max_bytes: maxBytes, events: 0, end: 0 };
  return {
    ...{ upstreams: [], streams: [], sinks: [], conditions: [], filters: [], lookups: [] },
    removed_sinks: [],
    successions: [],
    unread_times: [],
    config_differences: [],
    ...{ transcoded: [], intervals: new Map(), refused: new Map(), found: [], logLinesLost: null },
    spool: { ...spool, oldest_at: null, full_in_ms: null },
    ...{ reload_refused: null, standing_by: waitsFor },
  };
}

/** Minimum interval of database reads, and their limit as a share of the time: every other task waits. */
const readEveryMs = 5_000;
const readShareMax = 0.005;

/** A function that looks at the export. It reports nothing about the process. */
export function watching(sights: Sights): () => StatusMoment {
  const { plan, state, pipeline, spool, findings, clock } = sights;
  const planned = plannedStreams(plan);
  const intervals = new Map(Array.from(planned, ([name, { everyMs }]) => [name, everyMs]));
  const types = new Map(plan.sinks.map(({ name, settings }) => [name, settings.type]));
  const remembered = remembering(sights);
  // Few of thousands of streams have changed since the last look, and formatting dates costs most.
  let [texts, before] = [new Map<number, string>(), new Map<number, string>()];
  const textOf = (ms: number | null) => {
    if (ms === null) return null;
    const text = before.get(ms) ?? timeText(ms);
    texts.set(ms, text);
    return text;
  };

  return () => {
    [texts, before] = [new Map(), texts];
    const { durable, deadLetterReasons } = remembered();
    const { bytes, oldest, end } = spool.gauge;
    const { streams, sinks, filterFailures, transcoded, unreadTimes } = pipeline.state;
    const settled = new Map(
      sinks.map(({ name, position }) => {
        const at = settledBefore(position, durable.sinks.get(name)?.aside ?? []);
        return [name, settledStreams(durable, { plan, sink: name, position: at })] as const;
      }),
    );
    const streamsUpTo = settledEverywhere(settled.values());
    const concerned = concernedUpstreams(plan, (source) => pipeline.hasMoved(source));
    const upstreams = Array.from(plan.upstreams.values(), (one) =>
      momentOf(one, { now: clock.now(), moved: !concerned.has(one.name) }),
    );
    const budgets = new Map(
      upstreams.map(({ name, throttles }) => [name, budgetsOf(throttles)] as const),
    );
    return {
      upstreams,
      streams: streams.map((stream) => {
        const { upstream, company, paths, expects } = planned.get(stream.name) ?? unplanned;
        const held = durable.streams.get(stream.name);
        const budget = budgetOf(budgets.get(upstream) ?? new Map(), paths);
        const checkpoint = held?.checkpoint ?? null;
        const silentSince = expects && !stream.isEnded ? (held?.silent_since ?? null) : null;
        const upTo = streamsUpTo.get(stream.name) ?? null;
        return streamOf(stream, {
          upstream,
          company,
          budget,
          checkpoint,
          silentSince,
          upTo,
          textOf,
        });
      }),
      spool: {
        well: true,
        bytes,
        max_bytes: state.maxBytes,
        events: backlog(spool.gauge, oldest),
        end,
        oldest_at: end > oldest ? timeText(durable.spool.oldestAt) : null,
        full_in_ms: null,
      },
      sinks: sinks.map((sink) => ({
        ...sinkOf(sink, types.get(sink.name) ?? ''),
        backlog: backlog(spool.gauge, sink.position),
        up_to: textOf(earliest(settled.get(sink.name) ?? [])),
        dead_letters: durable.sinks.get(sink.name)?.deadLetters ?? 0,
        set_aside: sink.setAside.map((one) => ({ ...one, since: timeText(one.since) })),
        dead_letter_reasons: deadLetterReasons.get(sink.name) ?? [],
      })),
      conditions: findings.latest,
      filters: filtersOf(plan, filterFailures),
      transcoded,
      lookups: lookupsOf(plan, durable),
      config_differences: findings.configDifferences,
      removed_sinks: removedSinksOf(durable, {
        present: sinks.map(({ name }) => name),
        removedSinksMs: state.removedSinksMs,
      }),
      successions: durable.pairs.map(successionFacts),
      unread_times: unreadTimes,
      reload_refused: null,
      standing_by: null,
      intervals,
      refused: new Map(sinks.map(({ name, deadLetters }) => [name, deadLetters])),
      found: findings.counts(),
      logLinesLost: null,
      ...(sights.cluster !== undefined && { cluster: sights.cluster() }),
    };
  };
}

/** The facts on a stream from its plan. */
interface PlannedStream {
  readonly upstream: string;
  readonly company?: string | undefined;
  readonly paths: readonly string[];
  readonly everyMs: number | null;
  /** Its silence is watched. */
  readonly expects: boolean;
}

const unplanned: PlannedStream = { upstream: '', paths: [], everyMs: null, expects: false };

function plannedStreams({ sources }: Plan): ReadonlyMap<string, PlannedStream> {
  return new Map(
    sources.flatMap(({ streams, upstream, schedule, expectMs }) => {
      const everyMs = 'everyMs' in schedule ? schedule.everyMs : null;
      const own = { upstream, everyMs, expects: expectMs !== undefined };
      return streams.map(({ name, paths, company }) => [name, { ...own, paths, company }] as const);
    }),
  );
}

type PipelineState = Pipeline['state'];

function streamOf(
  stream: PipelineState['streams'][number],
  {
    upstream,
    company,
    budget,
    checkpoint,
    silentSince,
    upTo,
    textOf,
  }: {
    readonly upstream: string;
    readonly company: string | undefined;
    readonly budget: PathLimit | null;
    readonly checkpoint: CheckpointFacts | null;
    readonly silentSince: number | null;
    readonly upTo: number | null;
    readonly textOf: (ms: number | null) => string | null;
  },
): LiveStream {
  return {
    name: stream.name,
    source: stream.source,
    upstream,
    ...(company !== undefined && { company }),
    state: stream.state,
    well: true,
    order: checkpoint?.order ?? null,
    ...(stream.isEnded && { ended: true }),
    polls: stream.polls,
    polls_skipped: stream.skipped,
    ...(stream.deliveries && { deliveries: stream.deliveries }),
    ...(stream.parents && { parents: stream.parents }),
    ...(checkpoint?.compared && { compared: checkpoint.compared }),
    records: stream.records,
    records_per_s: 0,
    polled_at: null,
    next_poll_at: textOf(stream.nextPollAt),
    ...(stream.intervalMs !== undefined && { interval_ms: stream.intervalMs }),
    caught_up_at: textOf(stream.caughtUpAt),
    newest_record_at: textOf(checkpoint?.watermark ?? null),
    ...(stream.aheadMs !== undefined && { clock_ahead_ms: stream.aheadMs }),
    up_to: textOf(upTo),
    lag_ms: null,
    checkpoint_at: textOf(checkpoint?.savedAt ?? null),
    budget,
    waits_for: null,
    silent_since: textOf(silentSince),
    error: liveErrorOf(stream.error),
  };
}

function sinkOf(sink: PipelineState['sinks'][number], type: string): LiveSink {
  return {
    name: sink.name,
    type,
    state: sink.state,
    well: true,
    position: sink.position,
    backlog: 0,
    up_to: null,
    drained_in_ms: null,
    events_per_s: 0,
    delivered: sink.delivered,
    due_in_ms: sink.dueInMs,
    retries: sink.retries,
    dead_letters: 0,
    dead_letter_reasons: [],
    error: liveErrorOf(sink.error),
    notice: sink.notice,
    suspects: sink.suspects,
    set_aside: [],
  };
}

/** Filters that never failed are included: a counter that begins at 1 shows no increase. */
function filtersOf(
  { routes }: Plan,
  failed: PipelineState['filterFailures'],
): LiveStatus['filters'] {
  return routes.flatMap(({ from, where }, index) =>
    where === undefined
      ? []
      : from.map((source) => {
          const failures = failed.find(
            ({ last }) => last.route === index && last.source === source,
          );
          const why = failures === undefined ? null : cleanText(failures.last.why, reasonLengthMax);
          return { route: `routes[${index}]`, source, failures: failures?.count ?? 0, why };
        }),
  );
}

type DeadLetterReasons = ReadonlyMap<string, LiveSink['dead_letter_reasons']>;

/** The last result from the database. */
interface Remembered {
  readonly durable: State;
  readonly deadLetterReasons: DeadLetterReasons;
}

function remembering({ state: { dir }, before, clock, log }: Sights): () => Remembered {
  let remembered: Remembered = { durable: before, deadLetterReasons: new Map() };
  let readAgainAt = Number.NEGATIVE_INFINITY;
  return () => {
    const begunAt = clock.monotonic();
    if (begunAt < readAgainAt) return remembered;
    try {
      const durable = readState(dir);
      remembered = { durable, deadLetterReasons: readDeadLetterReasons(dir, durable) };
    } catch (error) {
      log.debug('stored_status_not_read', 'reading the state for the status page failed', {
        error: String(error),
      });
    }
    const tookMs = clock.monotonic() - begunAt;
    readAgainAt = begunAt + Math.max(readEveryMs, tookMs / readShareMax);
    return remembered;
  };
}

/** There may be millions of dead letters; the latest show the cause. */
const deadLettersReadMax = 200;
const reasonsMax = 10;
const reasonLengthMax = 300;

function readDeadLetterReasons(dir: string, { sinks }: State): DeadLetterReasons {
  const withDeadLetters = [...sinks].filter(([, { deadLetters }]) => deadLetters > 0);
  if (withDeadLetters.length === 0) return new Map();
  return lookInto(dir, new Map(), ({ deadLetters }) => {
    const reasonsOf = (sink: string) => {
      const newest = deadLetters.newest(sink, deadLettersReadMax);
      const alike = Map.groupBy(newest, ({ reason }) => cleanText(reason, reasonLengthMax));
      const reasons = Array.from(alike, ([reason, some]) => ({
        ...{ reason, count: some.length },
        last_at: timeText(some[0]?.at ?? 0),
      }));
      return reasons.toSorted((a, b) => b.count - a.count).slice(0, reasonsMax);
    };
    return new Map(withDeadLetters.map(([sink]) => [sink, reasonsOf(sink)]));
  });
}

function momentOf(
  client: UpstreamClient,
  at: { readonly now: number; readonly moved: boolean },
): StatusMoment['upstreams'][number] {
  const { throttles, end } = client.state();
  return {
    ...endFacts(client.name, end, at),
    base_url: client.baseUrl,
    throttles: throttles.map(({ path, waitMs, limit = null, remaining = null }) => ({
      ...{ path, wait_ms: waitMs, limit, remaining },
    })),
    end_of_life: client.announced.all.map(({ endpoint, deprecationMs, sunsetMs }) => ({
      endpoint,
      deprecation_at: timeText(deprecationMs),
      sunset_at: timeText(sunsetMs),
    })),
  };
}

function liveErrorOf(error: ExportError | null): LiveError {
  if (error === null) return null;
  const { code, message, next, details } = error;
  const named = (key: string) => {
    const value = details[key];
    return typeof value === 'string' ? value : null;
  };
  return {
    ...{ code, message, next },
    upstream_code: named('upstream_code'),
    request_id: named('request_id'),
    trace_id: named('trace_id'),
  };
}
