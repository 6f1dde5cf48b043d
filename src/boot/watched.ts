// What the status server sees: the pipeline's state, the spool's gauge, the upstreams' limits and what only the database knows
// (checkpoints, dead letters), put together under the names of the config. What must stay true: looking is cheap and
// never fails, so the database, which may be busy, is asked seldom and its last answer kept.

import type { ConditionRecord } from '../contracts/change.ts';
import type { ExportError } from '../contracts/errors.ts';
import type { Spool } from '../contracts/spool.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import type { Pipeline } from '../pipeline.ts';
import type {
  Watched,
  WatchedCondition,
  WatchedError,
  WatchedSink,
  WatchedStream,
} from '../watch/watched.ts';
import type { Config } from './config/config.ts';
import type { WholePlan } from './config/plan.ts';
import { backlogOf, readState, type State } from './state.ts';

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
export function watching(sights: Sights): () => Watched {
  const { config, plan, pipeline, spool, conditions, clock, log } = sights;
  const sourceOf = new Map(plan.sources.map((source) => [source.name, source]));
  let durable = sights.before;
  let readAgainAt = Number.NEGATIVE_INFINITY;

  const refresh = () => {
    const begunAt = clock.monotonic();
    if (begunAt < readAgainAt) return;
    try {
      durable = readState(config.state.dir);
    } catch (error) {
      log.debug('reading the state for the status', { error: String(error) });
    }
    const tookMs = clock.monotonic() - begunAt;
    readAgainAt = begunAt + Math.max(readEveryMs, tookMs / readShareMax);
  };

  return () => {
    refresh();
    const { bytes, oldest, end } = spool.gauge;
    const { streams, sinks, filterFailures } = pipeline.state;
    return {
      upstreams: Array.from(plan.upstreams.values(), (client) => {
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
      }),
      streams: streams.map((stream): WatchedStream => {
        const schedule = sourceOf.get(stream.source)?.schedule;
        const checkpoint = durable.streams.get(stream.name)?.checkpoint;
        return {
          ...stream,
          upstream: config.sources[stream.source]?.settings.upstream ?? '',
          everyMs: schedule !== undefined && 'everyMs' in schedule ? schedule.everyMs : null,
          order: checkpoint?.order ?? null,
          checkpointAt: checkpoint?.savedAt ?? null,
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
          error: watchedError(sink.error),
        };
      }),
      conditions: conditions.latest,
      conditionCounts: conditions.counts(),
      filterFailures,
    };
  };
}

const noted = { deadLetters: 0, state: null, error: null };

function watchedError(error: ExportError | null): WatchedError | null {
  if (error === null) return null;
  const { code, message, next, details } = error;
  const named = (key: string) => {
    const value = details[key];
    return typeof value === 'string' ? value : null;
  };
  return { code, message, next, requestId: named('request_id'), traceId: named('trace_id') };
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
    id: spool.id,
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
