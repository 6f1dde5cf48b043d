// How everything stands: streams, spool, sinks, and what is to be said of them. There is one model
// of it, and two who fill it: from the database, also while nothing runs (stored.ts), and from the
// journey that runs (live.ts), which knows more. `status --json` prints the one, `/status.json` the
// other; commands that ask a running process read it by the same schema; the page, `top`,
// `explain`, `/metrics` and attention are made of nothing else. Keys are lower_snake_case, times
// RFC 3339 or null, durations milliseconds; keys may be added. What must stay true: nothing here is
// a secret, a token or a cursor; texts are passed on as they are, so whoever shows one must treat
// it as text.

import { z } from 'zod';
import { endOrigins } from '../upstream/ends.ts';

const many = <T extends z.ZodType>(one: T) => z.array(one).readonly();
const time = z.iso.datetime().nullable();
const count = z.number();

/** The last failure of a stream or sink, until it has passed. */
export const lastError = z.object({ code: z.string(), message: z.string(), next: z.string() });

/** The same with upstream's own words for it, as far as it gave them. */
const liveError = lastError
  .extend({
    upstream_code: z.string().nullable().default(null),
    request_id: z.string().nullable(),
    trace_id: z.string().nullable(),
  })
  .nullable();

/** What a sink says of its far side though events go there. */
export const notice = z.object({ what: z.string(), next: z.string() });

/** Of whom a stream reads a list or an object each. */
export const parents = z.object({
  known: count,
  /** Something new came of them lately. */
  active: count,
  /** Denied or gone; and those that change no more. */
  lost: count,
  ended: count,
  /** To be asked now. */
  due: count,
  /** How long a rotation takes; null: none has been. */
  rotation_ms: count.nullable(),
});

/** Of a collection: values that differ at each reading. */
export const compared = z.object({
  /** Paths that were learned as volatile, and are no longer compared. */
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
  /** Entities with a value that differs at each reading and is not learned, and some of them. */
  unstable: z.object({
    entities: count,
    examples: many(z.object({ kind: z.string(), id: z.string(), path: z.string() })),
  }),
  /** Returns to a reported value that were not reported. */
  flaps: count,
});

const stream = z.object({
  name: z.string(),
  source: z.string(),
  state: z.string(),
  /** Null where it is not known, and for what has no order. */
  order: z.string().nullable(),
  checkpoint_at: time,
  /** When it was last read to its tail. */
  caught_up_at: time,
  /** How far behind upstream; null: not known. */
  lag_ms: count.nullable(),
  /** Past while it waits for its turn; null: it is polled now, or never again. */
  next_poll_at: time.default(null),
  waits_for: z.string().nullable(),
  /** When the last record came of one that is longer silent than `expect_every`; null: none is. */
  silent_since: time.default(null),
  /** True: its API has ended, which is no fault, since its successor delivers. Left out: it has not. */
  ended: z.boolean().optional(),
  /** Left out where it reads nothing of many. */
  parents: parents.optional(),
  /** Left out where nothing is compared, or nothing differs at each reading. */
  compared: compared.optional(),
  error: lastError.nullable(),
});

/** Events that the receiver refuses while it accepts none; they wait in the spool, in order. */
export const suspects = z.object({
  /** All events of the refused batch. */
  events: count,
  /** Those that were refused alone. */
  refused: count,
  /** Several probes in a row were refused whole. */
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
   * All that upstream showed by then of what is routed here was settled here: it is there, or was
   * filtered out by its route, or is among the dead letters. Null: that cannot be said yet.
   */
  up_to: time.default(null),
  /** Those that wait for an operator, also of earlier runs. */
  dead_letters: count,
  error: lastError.nullable(),
  notice: notice.nullable().default(null),
  /** Null: there are none. */
  suspects: suspects.nullable().default(null),
  /** Destinations that refuse all of their events; these wait, and others are delivered. */
  set_aside: many(
    z.object({ destination: z.string(), events: count, reason: z.string(), since: time }),
  ).default([]),
});

const spool = z.object({
  bytes: count,
  max_bytes: count,
  events: count,
  /** When the oldest page held was read; null where none is. */
  oldest_at: time,
});

/** A route's filter, as it does with one source's events; what it could not judge has passed. */
const filter = z.object({
  /** `routes[0]`. */
  route: z.string(),
  source: z.string(),
  failures: count,
  /** Why it failed last; null: it never did. */
  why: z.string().nullable(),
});

/** How many events of a source are made into lines by copying, and why the others are not. */
const transcoded = z.object({
  source: z.string(),
  written: count,
  /** Of no shape, or of no kind, that is known yet. */
  unknown: count,
  /** With a value that is not copied. */
  refused: count,
});

/** When an upstream ends. */
const upstreamEnd = z.object({
  /** Null: never. */
  ends_at: time.default(null),
  /** Whole days, rounded down; negative once it has ended. Null: it never ends. */
  days_left: count.nullable().default(null),
  /** Where the date comes from: the config, a header, or the API's document. */
  ends_from: z.enum(endOrigins).default('default'),
  /** The endpoint whose responses name the date; null: it is of the upstream as a whole. */
  ends_endpoint: z.string().nullable().default(null),
  /** Its end concerns no source: each has a successor that delivers and is read, or there is none. */
  moved: z.boolean().default(false),
  /** A date in a header that is earlier than the one in the config; null: there is none. */
  ends_earlier: z.object({ endpoint: z.string(), ends_at: z.string() }).nullable().default(null),
});

/** A look-up that sources of an upstream want. */
const lookup = z.object({
  upstream: z.string(),
  name: z.string(),
  /** When it was read last; null: never. */
  read_at: time,
  /** Why it could not be read lately; null: it could. */
  error: z.string().nullable(),
});

/** A sink that the state knows and that the config lacks. */
const removedSink = z.object({
  name: z.string(),
  /** Pages are kept for it. */
  kept: z.boolean(),
  /** Since when no running config has it; null: one has it, or that is not known. */
  missing_since: time,
  /** Null: its time does not run, or is over. */
  kept_until: time,
  /** Events that are kept for it. */
  pending: count,
  /** Events that were released before their time, since the spool was full. */
  released: count,
  dead_letters: count,
});

/** A stream most of whose records have a time that cannot be read, since the start. */
const succession = z.object({
  source: z.string(),
  successor: z.string(),
  phase: z.enum(['shadow', 'ready', 'cut_over']),
  /** Records that both have shown. */
  matched: count,
  /** Records that wait for the other source. */
  waiting: count,
  /** Records that one of the two alone has shown. */
  only_old: count,
  only_new: count,
  /** Matched records with a field that differs, and these fields. */
  differing: count,
  fields: many(z.string()),
  /** Records are stored and not delivered, since too few match. */
  held: z.boolean(),
  /** Why it cannot be cut over; empty: it can, or has been. */
  not_ready: many(z.string()),
});

/** A source that moves to its successor. */
export type SuccessionFacts = z.output<typeof succession>;

const unreadTime = z.object({
  stream: z.string(),
  source: z.string(),
  /** Of the records that were looked at lately. */
  seen: count,
  unread: count,
  path: z.string(),
  example: z.string(),
});

/** Which shards of a state in Kafka a process has. */
export const shardShare = z.object({
  /** The ones that the group has assigned to it. */
  owned: many(count),
  /** Of these, the ones whose worker process runs. */
  running: many(count),
  /** Workers that ought to run and do not. */
  failing: many(
    z.object({
      shard: count,
      /** Always null; older versions had workers that only sent to one sink. */
      sink: z.string().nullable(),
      /** How often in a row it has ended by itself; 0: it has only started. */
      ends: count,
      /** Why it ended the last time; null: it did not say. */
      error: lastError.nullable(),
    }),
  ),
});

const statusView = z.object({
  /** With `state.kafka` of several shards: what this process has of them. */
  shards: shardShare.optional(),
  /** Why the config as it stands in its file does not run; null: it does. */
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
  /** With `state.kafka`: how the configs of other processes differ, a sentence for each process. */
  config_differences: many(z.string()).default([]),
});

const names = many(z.string());

/** What `status --json` prints. */
export const storedStatus = statusView.extend({
  /** The process that runs with it; null: none does. */
  running: z.string().nullable(),
  state_dir: z.string(),
  /** Why the process works on nothing; null: it works. Left out: none takes part in a state in Kafka. */
  standing_by: z.string().nullable().exactOptional(),
  /** Shards that run in other processes; left out: the state has one shard, or is in SQLite. */
  shards: shardShare.extend({ elsewhere: many(count) }).optional(),
  /** What has state and is not in the config. */
  orphans: z.object({ streams: names, sinks: names }),
});

/** A limit on one path; `*`: on the credential as a whole. */
const budget = z.object({
  path: z.string(),
  /** Until the next request may go. */
  wait_ms: count,
  limit: count.nullable(),
  remaining: count.nullable(),
});

const liveStream = stream.extend({
  upstream: z.string(),
  state: z.enum(['waiting', 'polling', 'retrying', 'halted']),
  /** False: it does not go on (health.ts). */
  well: z.boolean(),
  /** Counts are since the start of the process. */
  polls: count,
  /** Deliveries by what became of them; left out where none come in. */
  deliveries: z.record(z.string(), count).optional(),
  /** Polls that fell due while one was still running. */
  polls_skipped: count,
  records: count,
  records_per_s: count,
  polled_at: time,
  /** Latest time of a record read; null where none had one. */
  newest_record_at: time,
  /** The tightest of the limits that its requests pass; null: none is known. */
  budget: budget.nullable().default(null),
  error: liveError,
});

const liveSink = sink.extend({
  state: z.enum(['idle', 'sending', 'retrying', 'refused', 'stopped']),
  well: z.boolean(),
  /** As it goes now; null: nothing to do, or it does not get less. */
  drained_in_ms: count.nullable(),
  events_per_s: count,
  delivered: count,
  retries: count,
  /** What was sent is written, and waits so long to be finished together with more; null: no. */
  due_in_ms: z.number().nullable().default(null),
  /** Why the latest of them were refused, the most frequent reason first; a few. */
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

/** What responses announce of an endpoint; null: no such date. */
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

/** One thing to look at, to be read as one sentence: who, what, and what was told last. */
const matter = z.object({
  /** `bad`: it does not mend itself. */
  mood: z.enum(['bad', 'warn']),
  who: z.string(),
  what: z.string(),
  message: z.string().nullable(),
  /** What to do. */
  next: z.string().nullable(),
});

/** What `/status.json` answers. */
export const liveStatus = statusView.extend({
  at: z.iso.datetime(),
  started_at: z.iso.datetime(),
  /** Nothing keeps the journey from going on; else the first of the reasons. */
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
  /** A reader may be told fewer. */
  streams_total: count,
  streams_found: count,
  records_per_s: count,
  streams: many(liveStream),
  spool: spool.extend({
    well: z.boolean(),
    /** Offset of the end of what is held. */
    end: count,
    /** At its pace; null: it does not fill up. */
    full_in_ms: count.nullable(),
  }),
  sinks: many(liveSink),
  transcoded: many(transcoded).default([]),
  /** The latest findings about sources, newest first. */
  conditions: many(condition),
  filter_failures: count,
  /** With `state.kafka`: what this process waits for instead of working; null: it works. */
  standing_by: z.string().nullable().default(null),
  /** With `state.kafka`: how the upstreams differ from those that the state had at the start; left out: they do not. */
  deployment_changed: z.string().nullable().optional(),
  /** What the live tail offers; null: there is none. */
  tail_forms: names.nullable(),
});

/** What both fillers know. */
export type StatusFacts = z.output<typeof statusView>;
/** As the database has it. */
export type StoredStatus = z.output<typeof storedStatus>;
/** As the journey that runs has it. */
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

/** What a stream waits for while the spool is full. */
export const roomInSpool = 'room in the spool';

/** The state of a stream or sink whose shard another process has. */
export const elsewhere = 'elsewhere';
