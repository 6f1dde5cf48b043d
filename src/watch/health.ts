// Whether the export makes progress, and if not, why. A stream or sink is unwell if it has stopped by itself, or if it
// has made no progress for longer than its pace explains. An idle part is well. Invariants: a first failure that passes
// at the next attempt makes nothing red; every red part names the responsible party and the last error.

import { roughSpanText } from '../tools/index.ts';
import type { StatusMoment } from './live.ts';
import type {
  LastError,
  LiveSink,
  LiveStream,
  ShardShare,
  StatusFacts,
  StoredStatus,
} from './status-facts.ts';

/** One part that stops the export. */
export interface Ailment {
  readonly part: 'shard' | 'stream' | 'sink' | 'spool';
  readonly name: string;
  readonly reason: /** The worker of a shard that this process owns. */
    | 'not_running'
    | 'halted'
    | 'not_advancing'
    | 'refused'
    | 'stopped'
    | 'not_delivering'
    | 'full'
    /** Found by a single look: the age of the failure is unknown. */
    | 'not_read'
    | 'not_taking';
  /** The clause after its name. */
  readonly what: string;
  readonly error: LastError | null;
  /** The whole sentence for a person. */
  readonly message: string;
  /** The company of a stream; absent: none. Two upstreams may have companies of the same id. */
  readonly owner?: { readonly upstream: string; readonly company: string };
}

/**
 * True if the export counts as ready: no shard, sink or spool is unwell, and at least this share of the streams
 * advances, so that one company that is refused makes nothing red for the others. A stream that waits because upstream
 * limits the requests advances. If no stream advances, the export is not ready, whatever the share.
 */
export function isReady(
  ailments: readonly Ailment[],
  { streams, share }: { readonly streams: readonly Standstill[]; readonly share: number },
): boolean {
  if (ailments.some(({ part }) => part !== 'stream')) return false;
  if (ailments.length === 0) return true;
  const limited = new Set(
    streams.flatMap(({ name, error }) => (error?.code === 'upstream_throttled' ? [name] : [])),
  );
  const still = ailments.filter(({ name }) => !limited.has(name)).length;
  const advancing = streams.length - still;
  return advancing > 0 && advancing >= share * streams.length;
}

/** How long parts may stand still. */
export interface Patience {
  /** For a stream: this many of its intervals, and at least `streamMs`. */
  readonly intervals: number;
  readonly streamMs: number;
  /** For a stream with a cron schedule, from the start of its poll. */
  readonly calendarStreamMs: number;
  /** For a sink that fails. */
  readonly failingSinkMs: number;
  /** For a sink that neither fails nor makes progress. */
  readonly silentSinkMs: number;
}

/** Long enough for temporary failures: a restarting receiver, a renewed token, one rejected page. */
const usualPatience: Patience = {
  intervals: 5,
  streamMs: 60_000,
  calendarStreamMs: 300_000,
  failingSinkMs: 10_000,
  silentSinkMs: 300_000,
};

/** The progress of a stream or sink when last seen, and when it was last well. */
interface Trace {
  progress: string;
  wellAt: number;
}

/** Watches the export. */
export class Health {
  readonly #patience: Patience;
  readonly #streamTraces = new Map<string, Trace>();
  readonly #sinkTraces = new Map<string, Trace>();
  #ailments: readonly Ailment[] = [];

  constructor(patience: Patience = usualPatience) {
    this.#patience = patience;
  }

  /** The ailments of the last observation, most relevant first; empty: ready. */
  get ailments(): readonly Ailment[] {
    return this.#ailments;
  }

  /** Observes the present state; `now` is monotonic. */
  observe(
    {
      streams,
      sinks,
      spool,
      intervals,
      cluster,
    }: Pick<StatusMoment, 'streams' | 'sinks' | 'spool' | 'intervals' | 'cluster'>,
    now: number,
  ): void {
    // Only a few reasons are shown, and there may be thousands of streams.
    this.#ailments = [
      ...shardAilments(cluster?.share),
      fullnessOf(spool),
      ...sinks.map((sink) => this.#sinkAilment(sink, now)),
      ...streams.map((one) => this.#streamAilment(one, intervals.get(one.name) ?? null, now)),
    ].filter((ailment) => ailment !== null);
  }

  #streamAilment(stream: LiveStream, everyMs: number | null, now: number): Ailment | null {
    const { name, state, records, caught_up_at: caughtUpAt, error, ended = false } = stream;
    const patience = this.#patience;
    // Between the dates of a cron schedule a stream cannot be late; with an interval, a response is due each time.
    const resting = ended || (everyMs === null && state === 'waiting' && error === null);
    const progress = `${records} ${caughtUpAt}`;
    const stillMs = standstillMs(this.#streamTraces, { name, progress, resting }, now);
    const allowedMs =
      everyMs === null
        ? patience.calendarStreamMs
        : Math.max(patience.streamMs, patience.intervals * everyMs);
    const atOnce = haltOf(stream);
    if (atOnce !== null || stillMs <= allowedMs) return atOnce;
    const what = `has not come further for ${roughSpanText(stillMs)}`;
    return ailmentOf({ ...stream, part: 'stream' })('not_advancing', what);
  }

  #sinkAilment(sink: LiveSink, now: number): Ailment | null {
    const { name, state, position, delivered, backlog, error } = sink;
    const { silentSinkMs, failingSinkMs } = this.#patience;
    const waits = sink.due_in_ms !== null && sink.due_in_ms > 0;
    const resting = (backlog === 0 || waits) && error === null;
    const progress = `${position} ${delivered}`;
    const stillMs = standstillMs(this.#sinkTraces, { name, progress, resting }, now);
    const ailing = ailmentOf({ part: 'sink', name, error });
    if (state === 'refused') return refusalOf(sink);
    if (state === 'stopped') return ailing('stopped', 'accepts no more events');
    if (hasLoneSuspect(sink)) return null;
    if (stillMs <= (error === null ? silentSinkMs : failingSinkMs)) return null;
    return ailing('not_delivering', `has accepted nothing for ${roughSpanText(stillMs)}`);
  }
}

/** True if a single event was rejected: the cause may be the event or the receiver. */
function hasLoneSuspect({ suspects }: Partial<Pick<LiveSink, 'suspects'>>): boolean {
  return suspects !== null && suspects !== undefined && suspects.refused < 2;
}

function standstillMs(
  traces: Map<string, Trace>,
  { name, progress, resting }: { name: string; progress: string; resting: boolean },
  now: number,
): number {
  const trace = traces.get(name);
  if (trace === undefined) traces.set(name, { progress, wellAt: now });
  else if (resting || trace.progress !== progress) {
    trace.progress = progress;
    trace.wellAt = now;
  }
  return now - (trace?.wellAt ?? now);
}

type Standstill = Pick<StatusFacts['streams'][number], 'name' | 'state' | 'error'> &
  Partial<Pick<LiveSink, 'suspects'> & Pick<LiveStream, 'upstream' | 'company'>>;

/** Error codes of streams that continue but may be incomplete. */
export const doubts: ReadonlyMap<string, string> = new Map([
  ['paging_suspected', 'may be read in part'],
  ['signature_refused', 'refuses deliveries'],
]);

/** The ailments of a single look: every failure counts, because its age is unknown. */
export function ailmentsAtOnce({
  shards,
  streams,
  sinks,
  spool,
}: {
  readonly shards?: ShardShare | undefined;
  readonly streams: readonly Standstill[];
  readonly sinks: readonly Standstill[];
  readonly spool: Fill;
}): readonly Ailment[] {
  const failing = (part: 'stream' | 'sink', reason: Ailment['reason'], what: string) => {
    return (one: Standstill) =>
      one.error === null || doubts.has(one.error.code) || hasLoneSuspect(one)
        ? null
        : ailmentOf({ ...one, part })(reason, what);
  };
  const streamFails = failing('stream', 'not_read', 'is not read');
  const sinkFails = failing('sink', 'not_taking', 'accepts nothing; its events stay in the spool');
  return [
    ...shardAilments(shards),
    fullnessOf(spool),
    ...sinks.map((sink) => refusalOf(sink) ?? sinkFails(sink)),
    ...streams.map((stream) => haltOf(stream) ?? streamFails(stream)),
  ].filter((ailment) => ailment !== null);
}

function haltOf(stream: Standstill): Ailment | null {
  if (stream.state !== 'halted') return null;
  return ailmentOf({ ...stream, part: 'stream' })('halted', 'is halted');
}

function refusalOf(sink: Standstill): Ailment | null {
  if (sink.state !== 'refused') return null;
  return ailmentOf({ ...sink, part: 'sink' })(
    'refused',
    'refuses everything; its events stay in the spool',
  );
}

/** Workers that do not run: their shards are neither read nor sent, so there is no patience. */
function shardAilments(share: ShardShare | undefined): readonly Ailment[] {
  return (share?.failing ?? []).map(({ shard, ends, error }): Ailment => {
    const name = String(shard);
    const times = ends === 1 ? 'once' : `${ends} times in a row`;
    const what =
      ends === 0
        ? 'does not run yet: its process starts'
        : `does not run: its process ended ${times}`;
    const reported = error === null ? '' : `: ${error.message}`;
    return {
      ...{ part: 'shard', name, reason: 'not_running', what, error },
      message: `shard ${name} ${what}${reported}`,
    };
  });
}

type Fill = Pick<StoredStatus['spool'], 'bytes' | 'max_bytes'>;

function fullnessOf({ bytes, max_bytes: bytesMax }: Fill): Ailment | null {
  if (bytes === null || bytes < bytesMax) return null;
  const what = `is full (${bytes} of ${bytesMax} bytes): polling waits until a sink has delivered stored events`;
  return ailmentOf({ part: 'spool', name: 'spool', error: null })('full', what);
}

type Unwell = Pick<Ailment, 'part' | 'name' | 'error'> &
  Partial<Pick<LiveStream, 'upstream' | 'company'>>;

function ailmentOf({ part, name, error, upstream = '', company }: Unwell) {
  const who = part === 'spool' ? 'the spool' : name;
  const reported = error === null ? '' : `: ${error.message}`;
  const owner = company === undefined ? {} : { owner: { upstream, company } };
  return (reason: Ailment['reason'], what: string): Ailment => {
    return { part, name, reason, what, error, message: `${who} ${what}${reported}`, ...owner };
  };
}
