// What the status server sees: the pipeline's state, the spool's gauge, the upstreams' limits and what only the database knows
// (checkpoints, dead letters), put together under the names of the config. What must stay true: looking is cheap and
// never fails, so the database, which may be busy, is asked seldom and its last answer kept.

import type { Config } from '../config/config.ts';
import type { WholePlan } from '../config/plan.ts';
import type { ConditionRecord } from '../contracts/change.ts';
import type { ExportError } from '../contracts/errors.ts';
import type { Spool } from '../contracts/spool.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { lookInto } from '../hold/store.ts';
import type { Pipeline } from '../pipeline.ts';
import { cleanText } from '../tools/clean-text.ts';
import type { Upstream } from '../upstream/client.ts';
import { budgetKeys, budgetOf, budgetsOf } from './budgets.ts';
import { backlogOf, readState, type State } from './state.ts';
import type {
  Watched,
  WatchedCondition,
  WatchedError,
  WatchedFilter,
  WatchedJourney,
  WatchedReason,
  WatchedSink,
  WatchedStream,
  WatchedUpstream,
} from './watched.ts';

/** Where the facts come from. */
export interface Sights {
  readonly config: Config;
  readonly plan: WholePlan;
  readonly pipeline: Pipeline;
  readonly spool: Spool;
  readonly conditions: ConditionNotes;
  /** The state directory before the run, until it is read again. */
  readonly before: State;
  readonly clock: Clock;
  readonly log: Log;
}

/** How often the database is read, at most; and how much of the time may go into it, since nothing else runs meanwhile. */
const readEveryMs = 5_000;
const readShareMax = 0.005;

/** A function that looks at the journey. */
export function watching(sights: Sights): () => WatchedJourney {
  const { config, plan, pipeline, spool, conditions } = sights;
  const fixed = streamFacts(sights);
  const remembered = remembering(sights);

  return () => {
    const { durable, letterReasons } = remembered();
    const { bytes, oldest, end } = spool.gauge;
    const { streams, sinks, filterFailures } = pipeline.state;
    const upstreams = Array.from(plan.upstreams.values(), watchedUpstream);
    const budgets = new Map(
      upstreams.map(({ name, throttles }) => [name, budgetsOf(throttles)] as const),
    );
    return {
      upstreams,
      streams: streams.map((stream): WatchedStream => {
        const { upstream, everyMs, keys } = fixed.get(stream.name) ?? unplanned;
        const checkpoint = durable.streams.get(stream.name)?.checkpoint;
        return {
          ...stream,
          upstream,
          everyMs,
          order: checkpoint?.order ?? null,
          checkpointAt: checkpoint?.savedAt ?? null,
          newestRecordAt: checkpoint?.watermark ?? null,
          budget: budgetOf(budgets.get(upstream) ?? new Map(), keys),
          error: watchedError(stream.error),
        };
      }),
      spool: {
        bytes,
        bytesMax: config.state.maxBytes,
        oldest,
        end,
        oldestAt: end > oldest ? durable.spool.oldestAt : null,
      },
      sinks: sinks.map((sink): WatchedSink => {
        const held = { ...durable.spool, oldest, end };
        const letters = durable.sinks.get(sink.name)?.deadLetters ?? 0;
        return {
          ...sink,
          type: config.sinks[sink.name]?.settings.type ?? '',
          backlog: Math.max(0, backlogOf({ ...noted, position: sink.position }, held)),
          lettersHeld: letters,
          letterReasons: letterReasons.get(sink.name) ?? [],
          error: watchedError(sink.error),
        };
      }),
      conditions: conditions.latest,
      conditionCounts: conditions.counts(),
      filterFailures: watchedFilters(config, filterFailures),
    };
  };
}

/** Those that never failed too: a counter that begins at 1 does not show that it has grown. */
function watchedFilters(
  { routes }: Config,
  failed: Pipeline['state']['filterFailures'],
): readonly WatchedFilter[] {
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

/** What is known of a stream from the config alone. */
interface StreamFacts {
  readonly upstream: string;
  readonly everyMs: number | null;
  /** Under which its limits stand. */
  readonly keys: readonly string[];
}

const unplanned: StreamFacts = { upstream: '', everyMs: null, keys: [] };

function streamFacts({ config, plan }: Sights): ReadonlyMap<string, StreamFacts> {
  return new Map(
    plan.sources.flatMap(({ name, streams, schedule }) => {
      const settings = config.sources[name]?.settings;
      return streams.map((stream) => {
        const facts: StreamFacts = {
          upstream: settings?.upstream ?? '',
          everyMs: 'everyMs' in schedule ? schedule.everyMs : null,
          keys: budgetKeys(stream, settings?.path),
        };
        return [stream.name, facts] as const;
      });
    }),
  );
}

/** What the database last said. */
interface Remembered {
  readonly durable: State;
  readonly letterReasons: ReadonlyMap<string, readonly WatchedReason[]>;
}

function remembering({ config, before, clock, log }: Sights): () => Remembered {
  let remembered: Remembered = { durable: before, letterReasons: new Map() };
  let readAgainAt = Number.NEGATIVE_INFINITY;
  return () => {
    const begunAt = clock.monotonic();
    if (begunAt < readAgainAt) return remembered;
    try {
      const durable = readState(config.state.dir);
      remembered = { durable, letterReasons: readLetterReasons(config.state.dir, durable) };
    } catch (error) {
      log.debug('reading the state for the status', { error: String(error) });
    }
    const tookMs = clock.monotonic() - begunAt;
    readAgainAt = begunAt + Math.max(readEveryMs, tookMs / readShareMax);
    return remembered;
  };
}

/** There may be millions of letters; the latest say what is wrong. */
const lettersReadMax = 200;
const reasonsMax = 10;
const reasonLengthMax = 300;

function readLetterReasons(dir: string, { sinks }: State): Remembered['letterReasons'] {
  const withLetters = [...sinks].filter(([, { deadLetters }]) => deadLetters > 0);
  if (withLetters.length === 0) return new Map();
  return lookInto(dir, new Map(), ({ letters }) => {
    const reasonsOf = (sink: string) => {
      const newest = letters.newest(sink, lettersReadMax);
      const alike = Map.groupBy(newest, ({ reason }) => cleanText(reason, reasonLengthMax));
      const reasons = Array.from(alike, ([reason, letters]): WatchedReason => {
        return { reason, count: letters.length, lastAt: letters[0]?.at ?? 0 };
      });
      return reasons.toSorted((a, b) => b.count - a.count).slice(0, reasonsMax);
    };
    return new Map(withLetters.map(([sink]) => [sink, reasonsOf(sink)]));
  });
}

function watchedUpstream(client: Upstream): WatchedUpstream {
  const { throttles, endOfLife } = client.state();
  return {
    name: client.name,
    baseUrl: client.baseUrl,
    endOfLife,
    throttles: throttles.map(({ path, waitMs, limit = null, remaining = null }) => ({
      path,
      waitMs,
      limit,
      remaining,
    })),
  };
}

const noted = { deadLetters: 0, state: null, error: null, notice: null };

function watchedError(error: ExportError | null): WatchedError | null {
  if (error === null) return null;
  const { code, message, next, details } = error;
  const named = (key: string) => {
    const value = details[key];
    return typeof value === 'string' ? value : null;
  };
  return {
    ...{ code, message, next },
    upstreamCode: named('upstream_code'),
    requestId: named('request_id'),
    traceId: named('trace_id'),
  };
}

/** The conditions of sources that were found since the start. */
export interface ConditionNotes {
  /** The latest few, newest first. */
  readonly latest: readonly WatchedCondition[];
  counts(): Watched['conditionCounts'];
  add(record: ConditionRecord): void;
}

const latestMax = 50;

/** Opens empty notes. */
export function conditionNotes(): ConditionNotes {
  const latest: WatchedCondition[] = [];
  const counts = new Map<string, { condition: string; stream: string; count: number }>();
  return {
    latest,
    counts: () => [...counts.values()],
    add({ condition, stream, observed_at: observedAt, message }) {
      latest.unshift({ condition, stream, observedAt, message });
      latest.length = Math.min(latest.length, latestMax);
      const key = JSON.stringify([condition, stream]);
      const known = counts.get(key) ?? { condition, stream, count: 0 };
      counts.set(key, { ...known, count: known.count + 1 });
    },
  };
}

/** The same spool; conditions that become durable in it are noted. */
export function noticing(spool: Spool, notes: ConditionNotes): Spool {
  return {
    numbering: spool.numbering,
    get gauge() {
      return spool.gauge;
    },
    async append(entry) {
      const block = await spool.append(entry);
      for (const { context, body } of entry.pages) {
        if (context.kind !== 'condition') continue;
        for (const record of recordsOf(body)) if (isCondition(record)) notes.add(record);
      }
      return block;
    },
    read: (from, bytesMax, sink) => spool.read(from, bytesMax, sink),
    arrival: (from, signal) => spool.arrival(from, signal),
    room: (signal) => spool.room(signal),
    progress: (sink) => spool.progress(sink),
    reached: (sink, position) => spool.reached(sink, position),
    acknowledge: (sink, step) => spool.acknowledge(sink, step),
    recall: (stream) => spool.recall(stream),
    trail: (stream) => spool.trail(stream),
    entities: (stream) => spool.entities(stream),
    note: (kind, name, facts) => spool.note(kind, name, facts),
    close: () => spool.close(),
  };
}

function recordsOf(body: Uint8Array): readonly unknown[] {
  return JSON.parse(Buffer.from(body).toString()) as unknown[];
}

function isCondition(record: unknown): record is ConditionRecord {
  if (typeof record !== 'object' || record === null) return false;
  return 'condition' in record && 'observed_at' in record && 'message' in record;
}
