// The model of the status: streams, spool, sinks, and their attention. Two producers fill it: stored.ts from the
// database, also while no process runs, and live.ts from a running export, with more facts. `status --json` prints the
// first, `/status.json` the second. Commands parse a running process's status with the same schema; the page, `top`,
// `explain`, `/metrics` and attention use only this model. Keys are lower_snake_case, times RFC 3339 or null, durations
// milliseconds; keys may be added. Invariants: no value is a secret, a token or a cursor; texts are passed on
// unchanged, so every display must treat them as text.

import { z } from 'zod';
import { endOrigins } from '../upstream/index.ts';

const many = <T extends z.ZodType>(one: T) => z.array(one).readonly();
const time = z.iso.datetime().nullable();
const count = z.number();

/** The last failure of a stream or sink, until it has passed. */
export const lastError = z.object({ code: z.string(), message: z.string(), next: z.string() });

/** The same with upstream's own error texts, as far as it sent them. */
const liveError = lastError
  .extend({
    upstream_code: z.string().nullable().default(null),
    request_id: z.string().nullable(),
    trace_id: z.string().nullable(),
  })
  .nullable();

/** A sink's notice about its receiver although events are delivered. */
export const notice = z.object({ what: z.string(), next: z.string() });

/** The parents of which a stream reads a list or an object each. */
export const parents = z.object({
  known: count,
  /** Parents with a recent change. */
  active: count,
  /** `lost`: denied or gone; `ended`: no longer changing. */
  lost: count,
  ended: count,
  /** To be requested now. */
  due: count,
  /** Duration of a rotation; null: none has finished. */
  rotation_ms: count.nullable(),
});

/** Of a collection: values that differ at each reading. */
export const compared = z.object({
  /** Paths that were learned as volatile and are no longer compared. */
  volatile: many(
    z.object({
      path: z.string(),
      kind: z.string(),
      entities: count,
      first: z.string(),
      last: z.string(),
      learned_at: time,
    }),
  ),
  /** Number of entities with an unlearned value that differs at each reading, and examples. */
  unstable: z.object({
    entities: count,
    examples: many(z.object({ kind: z.string(), id: z.string(), path: z.string() })),
  }),
  /** Number of unreported returns to a reported value. */
  flaps: count,
});

const stream = z.object({
  name: z.string(),
  source: z.string(),
  upstream: z.string().optional(),
  /** Absent: it belongs to no company. */
  company: z.string().optional(),
  state: z.string(),
  /** Null: unknown, or the stream has no order. */
  order: z.string().nullable(),
  checkpoint_at: time,
  /** When it was last read to its tail. */
  caught_up_at: time,
  /** Lag after upstream; null: unknown. */
  lag_ms: count.nullable(),
  /** Past while it waits for its turn; null: it is being polled, or is never polled again. */
  next_poll_at: time.default(null),
  /** The present interval of an adaptive `every`; absent: the interval is fixed. */
  interval_ms: count.optional(),
  waits_for: z.string().nullable(),
  /** When the last record arrived, if the stream is silent for longer than `expect_every`; else null. */
  silent_since: time.default(null),
  /** True: its API has ended, which is no fault, because its successor delivers. Absent: it has not ended. */
  ended: z.boolean().optional(),
  /** Absent for a stream without parents. */
  parents: parents.optional(),
  /** Absent if nothing is compared, or nothing differs at each reading. */
  compared: compared.optional(),
  error: lastError.nullable(),
});

/** Events that the receiver rejects while it accepts none; they wait in the spool, in order. */
export const suspects = z.object({
  /** All events of the rejected batch. */
  events: count,
  /** Events that were rejected alone. */
  refused: count,
  /** Several probes in a row were rejected completely. */
  stuck: z.boolean(),
  first: many(z.object({ uid: z.string(), stream: z.string(), reason: z.string() })),
});

const sink = z.object({
  name: z.string(),
  type: z.string(),
  state: z.string(),
  position: count,
  /** Events that it has yet to pass. */
  backlog: count,
  /**
   * Everything that upstream showed by then and that is routed here is settled: delivered, filtered out by its route,
   * or a dead letter. Null: unknown.
   */
  up_to: time,
  /** Dead letters that wait for an operator, also of earlier runs. */
  dead_letters: count,
  error: lastError.nullable(),
  notice: notice.nullable().default(null),
  /** Null: none. */
  suspects: suspects.nullable().default(null),
  /** Destinations that reject all of their events; these wait while others are delivered. */
  set_aside: many(
    z.object({ destination: z.string(), events: count, reason: z.string(), since: time }),
  ).default([]),
});

const spool = z.object({
  bytes: count,
  max_bytes: count,
  events: count,
  /** When the oldest stored page was read; null: none is stored. */
  oldest_at: time,
});

/** The results of a route's filter for one source; events that it could not judge pass. */
const filter = z.object({
  /** `routes[0]`. */
  route: z.string(),
  source: z.string(),
  failures: count,
  /** Its last error; null: it never failed. */
  why: z.string().nullable(),
});

/** How many events of a source are written by copying, and why the others are not. */
const transcoded = z.object({
  source: z.string(),
  written: count,
  /** Of a shape or kind that is not known yet. */
  unknown: count,
  /** With a value that cannot be copied. */
  refused: count,
});

const upstreamEnd = z.object({
  /** Null: never. */
  ends_at: time.default(null),
  /** Whole days, rounded down; negative after the end. Null: it never ends. */
  days_left: count.nullable().default(null),
  /** The origin of the date: the config, a header, or the API's document. */
  ends_from: z.enum(endOrigins).default('default'),
  /** The endpoint whose responses name the date; null: the upstream as a whole. */
  ends_endpoint: z.string().nullable().default(null),
  /** Its end affects no source: each has a successor that delivers and is read, or there is none. */
  moved: z.boolean().default(false),
  /** A header's date that is earlier than the config's; null: none. */
  ends_earlier: z.object({ endpoint: z.string(), ends_at: z.string() }).nullable().default(null),
});

/** A look-up that sources of an upstream use. */
const lookup = z.object({
  upstream: z.string(),
  name: z.string(),
  /** When it was last read; null: never. */
  read_at: time,
  /** Why the last reading failed; null: it did not. */
  error: z.string().nullable(),
});

/** A sink that the state knows and the config lacks. */
const removedSink = z.object({
  name: z.string(),
  /** Pages are kept for it. */
  kept: z.boolean(),
  /** Since when no running config has it; null: one has it, or unknown. */
  missing_since: time,
  /** Null: its time does not run, or is over. */
  kept_until: time,
  /** Events that are kept for it. */
  pending: count,
  /** Events that were released early because the spool was full. */
  released: count,
  dead_letters: count,
});

/** A source and its successor. */
const succession = z.object({
  source: z.string(),
  successor: z.string(),
  phase: z.enum(['shadow', 'ready', 'cut_over']),
  /** Records that both sources have shown. */
  matched: count,
  /** Records that wait for the other source. */
  waiting: count,
  /** Records that only one of the two has shown. */
  only_old: count,
  only_new: count,
  /** Matched records with a differing field, and the names of these fields. */
  differing: count,
  fields: many(z.string()),
  /** Records are stored and not delivered, because too few match. */
  held: z.boolean(),
  /** Why it cannot be cut over; empty: it can, or has been. */
  not_ready: many(z.string()),
});

/** A source that moves to its successor. */
export type SuccessionFacts = z.output<typeof succession>;

/** A stream most of whose records have an unreadable time, since the start. */
const unreadTime = z.object({
  stream: z.string(),
  source: z.string(),
  /** Of the records checked recently. */
  seen: count,
  unread: count,
  path: z.string(),
  example: z.string(),
});

/** The shards of a process in a state in Kafka. */
export const shardShare = z.object({
  /** The shards that the group has assigned to it. */
  owned: many(count),
  /** The owned shards whose worker process runs. */
  running: many(count),
  /** Workers that should run and do not. */
  failing: many(
    z.object({
      shard: count,
      /** Always null; older versions had workers that sent to one sink only. */
      sink: z.string().nullable(),
      /** How often in a row it ended by itself; 0: it has only started. */
      ends: count,
      /** Why it last ended; null: unknown. */
      error: lastError.nullable(),
    }),
  ),
});

const statusView = z.object({
  /** With `state.kafka` of several shards: this process's share. */
  shards: shardShare.optional(),
  /** Why the config in its file does not run; null: it runs. */
  reload_refused: lastError.extend({ at: time }).nullable().default(null),
  streams: many(stream),
  spool,
  sinks: many(sink),
  filters: many(filter).default([]),
  lookups: many(lookup).default([]),
  upstreams: many(upstreamEnd.extend({ name: z.string() })).default([]),
  removed_sinks: many(removedSink).default([]),
  successions: many(succession).default([]),
  unread_times: many(unreadTime).default([]),
  /** With `state.kafka`: differences of other processes' configs, a sentence for each process. */
  config_differences: many(z.string()).default([]),
});

const names = many(z.string());

/** The output of `status --json`. */
export const storedStatus = statusView.extend({
  /** The process that runs with it; null: none. */
  running: z.string().nullable(),
  state_dir: z.string(),
  spool: spool.extend({
    /** Null: unknown, because the state was read from Kafka without its pages. */
    bytes: count.nullable(),
  }),
  /** Why the process works on nothing; null: it works. Absent: no process takes part in a state in Kafka. */
  standing_by: z.string().nullable().exactOptional(),
  /** Shards that run in other processes; absent: the state has one shard, or is in SQLite. */
  shards: shardShare.extend({ elsewhere: many(count) }).optional(),
  /** Streams and sinks with state that are not in the config. */
  orphans: z.object({ streams: names, sinks: names }),
});

/** A limit on one path; `*`: on the credential as a whole. */
const budget = z.object({
  path: z.string(),
  /** Until the next request is allowed. */
  wait_ms: count,
  limit: count.nullable(),
  remaining: count.nullable(),
});

const liveStream = stream.extend({
  upstream: z.string(),
  state: z.enum(['waiting', 'polling', 'retrying', 'halted']),
  /** False: it makes no progress (health.ts). */
  well: z.boolean(),
  /** Counts are since the start of the process. */
  polls: count,
  /** Deliveries by outcome; absent for streams that are not pushed. */
  deliveries: z.record(z.string(), count).optional(),
  /** Polls that became due while one was running. */
  polls_skipped: count,
  records: count,
  records_per_s: count,
  polled_at: time,
  /** Latest time of a record read; null: none had a time. */
  newest_record_at: time,
  /** How far its newest records are ahead of this machine's clock; absent: they are not. */
  clock_ahead_ms: count.optional(),
  /** Everything that upstream showed by then is settled at every sink of its routes; null: unknown. */
  up_to: time.default(null),
  /** The tightest limit that applies to its requests; null: none is known. */
  budget: budget.nullable().default(null),
  error: liveError,
});

const liveSink = sink.extend({
  state: z.enum(['idle', 'sending', 'retrying', 'refused', 'stopped']),
  well: z.boolean(),
  /** At the present rate; null: no backlog, or it does not shrink. */
  drained_in_ms: count.nullable(),
  events_per_s: count,
  delivered: count,
  retries: count,
  /** Events are written and wait this long to be completed together with more; null: none. */
  due_in_ms: z.number().nullable().default(null),
  /** Reasons of the latest dead letters, the most frequent first; a few. */
  dead_letter_reasons: many(z.object({ reason: z.string(), count, last_at: time })),
  error: liveError,
});

/** Streams counted together, by source or upstream. */
const sum = z.object({
  name: z.string(),
  upstream: z.string(),
  streams: count,
  streams_failing: count,
  streams_unwell: count,
  records_per_s: count,
});

/** The end dates that responses announce for an endpoint; null: no date. */
const endOfLife = z.object({ endpoint: z.string(), deprecation_at: time, sunset_at: time });

const condition = z.object({
  condition: z.string(),
  stream: z.string(),
  observed_at: z.string(),
  message: z.string(),
});

const reason = z.object({
  part: z.enum(['shard', 'stream', 'sink', 'spool']),
  name: z.string(),
  reason: z.string(),
  message: z.string(),
});

/** One matter, readable as one sentence: subject, clause, and last error. */
const matter = z.object({
  /** `bad`: it does not resolve itself. */
  mood: z.enum(['bad', 'warn']),
  who: z.string(),
  what: z.string(),
  message: z.string().nullable(),
  /** The next step. */
  next: z.string().nullable(),
});

/** The body of `/status.json`. */
export const liveStatus = statusView.extend({
  at: z.iso.datetime(),
  started_at: z.iso.datetime(),
  /** The build of the process, such as `0.2.0 (1a2b3c4d5e6f, 2026-11-26)`; empty: it is older than this key. */
  version: z.string().default(''),
  /** True: nothing stops the export; `reasons`: the first of the causes. */
  ready: z.boolean(),
  reasons: many(reason),
  reasons_total: count,
  attention: many(matter),
  attention_total: count,
  upstreams: many(
    sum.extend({
      ...upstreamEnd.shape,
      base_url: z.string(),
      throttles: many(budget),
      end_of_life: many(endOfLife),
    }),
  ),
  sources: many(sum),
  /** A reader may receive fewer. */
  streams_total: count,
  streams_found: count,
  records_per_s: count,
  streams: many(liveStream),
  spool: spool.extend({
    well: z.boolean(),
    /** Offset after the last stored event. */
    end: count,
    /** At the present rate; null: it does not fill up. */
    full_in_ms: count.nullable(),
  }),
  sinks: many(liveSink),
  transcoded: many(transcoded).default([]),
  /** The latest conditions of sources, newest first. */
  conditions: many(condition),
  filter_failures: count,
  /** With `state.kafka`: why this process works on nothing; null: it works. */
  standing_by: z.string().nullable().default(null),
  /** With `state.kafka`: how the upstreams differ from the state's upstreams at the start; absent: they do not. */
  deployment_changed: z.string().nullable().optional(),
  /** The forms of the live tail; null: there is none. */
  tail_forms: names.nullable(),
});

/** The facts that both producers know. */
export type StatusFacts = z.output<typeof statusView>;
/** The status from the database. */
export type StoredStatus = z.output<typeof storedStatus>;
/** The status of a running export. */
export type LiveStatus = z.output<typeof liveStatus>;
export type StoredStream = StoredStatus['streams'][number];
export type LiveStream = LiveStatus['streams'][number];
export type LiveSink = LiveStatus['sinks'][number];
export type ShardShare = z.output<typeof shardShare>;
export type Sum = z.output<typeof sum>;
export type PathLimit = z.output<typeof budget>;
export type LastError = z.output<typeof lastError>;
export type LiveError = z.output<typeof liveError>;
export type RemovedSink = z.output<typeof removedSink>;
export type StoredUpstream = StoredStatus['upstreams'][number];
export type Matter = z.output<typeof matter>;

/** `waits_for` of a stream while the spool is full. */
export const roomInSpool = 'room in the spool';

/** The state of a stream or sink whose shard another process has. */
export const elsewhere = 'elsewhere';
