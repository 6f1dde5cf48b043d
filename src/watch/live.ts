// What the status server sees: the pipeline's state, the spool's gauge, the upstreams' limits and what only the database knows
// (checkpoints, dead letters), put together under the names of the config. What must stay true: looking is cheap and
// never fails, so the database, which may be busy, is asked seldom and its last answer kept.

import type { Config } from '../config/config.ts';
import type { WholePlan } from '../config/plan.ts';
import type { ExportError } from '../contracts/errors.ts';
import type { Spool } from '../contracts/spool.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { lookInto } from '../hold/store.ts';
import type { Pipeline } from '../pipeline.ts';
import { cleanText } from '../tools/clean-text.ts';
import type { UpstreamClient } from '../upstream/client.ts';
import { budgetOf, budgetsOf } from './budgets.ts';
import type { Findings } from './findings.ts';
import { backlogOf, readState, type State } from './state.ts';
import type {
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
  readonly findings: Findings;
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
  const { config, plan, pipeline, spool, findings } = sights;
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
        const { upstream, everyMs, paths } = fixed.get(stream.name) ?? unplanned;
        const checkpoint = durable.streams.get(stream.name)?.checkpoint;
        return {
          ...stream,
          upstream,
          everyMs,
          order: checkpoint?.order ?? null,
          checkpointAt: checkpoint?.savedAt ?? null,
          newestRecordAt: checkpoint?.watermark ?? null,
          budget: budgetOf(budgets.get(upstream) ?? new Map(), paths),
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
      conditions: findings.latest,
      conditionCounts: findings.counts(),
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
  readonly paths: readonly string[];
}

const unplanned: StreamFacts = { upstream: '', everyMs: null, paths: [] };

function streamFacts({ config, plan }: Sights): ReadonlyMap<string, StreamFacts> {
  return new Map(
    plan.sources.flatMap(({ name, streams, schedule }) => {
      const settings = config.sources[name]?.settings;
      return streams.map((stream) => {
        const facts: StreamFacts = {
          upstream: settings?.upstream ?? '',
          everyMs: 'everyMs' in schedule ? schedule.everyMs : null,
          paths: stream.paths,
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

function watchedUpstream(client: UpstreamClient): WatchedUpstream {
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
