// Whether the journey goes on, and if not, why. A stream or sink is unwell when it has stopped by
// itself, or when it has not come any further for longer than its pace explains; what is at rest
// because there is nothing to do is well. What must stay true: a first failure that mends itself at
// the next attempt turns nothing red, and whatever stays red names who has to look and what was
// told last.

import { roughSpanText } from '../tools/time-text.ts';
import type { StatusMoment } from './live.ts';
import type { LastError, LiveSink, LiveStream, ShardShare, StatusFacts } from './status-facts.ts';

/** One thing that keeps the journey from going on. */
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
    /** They fail, and nobody knows for how long. */
    | 'not_read'
    | 'not_taking';
  /** What is wrong with it, to be said after its name. */
  readonly what: string;
  /** What was told last. */
  readonly error: LastError | null;
  /** All of it as one sentence for a person. */
  readonly message: string;
}

/** How long things may stand still. */
export interface Patience {
  /** A stream: this many of its intervals, and at least `streamMs`. */
  readonly intervals: number;
  readonly streamMs: number;
  /** A stream that a calendar starts, from when it has begun. */
  readonly calendarStreamMs: number;
  /** A sink that fails. */
  readonly failingSinkMs: number;
  /** A sink that tells of no failure and passes nothing either. */
  readonly silentSinkMs: number;
}

/** Long enough for what mends itself: a restarted far side, a renewed token, one refused page. */
const usualPatience: Patience = {
  intervals: 5,
  streamMs: 60_000,
  calendarStreamMs: 300_000,
  failingSinkMs: 10_000,
  silentSinkMs: 300_000,
};

/** How far a stream or sink was when last seen, and when it was last well. */
interface Trace {
  progress: string;
  wellAt: number;
}

/** Follows the journey. */
export class Health {
  readonly #patience: Patience;
  readonly #streamTraces = new Map<string, Trace>();
  readonly #sinkTraces = new Map<string, Trace>();
  #ailments: readonly Ailment[] = [];

  constructor(patience: Patience = usualPatience) {
    this.#patience = patience;
  }

  /** What is wrong as of the last observation, what concerns most first; empty: ready. */
  get ailments(): readonly Ailment[] {
    return this.#ailments;
  }

  /** Takes note of the journey as it is now; `now` is monotonic. */
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
    // There may be thousands of streams, and a few of the reasons are all that most readers see.
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
    // Between a calendar's dates nothing can be late; an interval has an answer due each time.
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
    return ailmentOf({ part: 'stream', name, error })('not_advancing', what);
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

/** True where one event was refused and no other: that may be the event or the receiver. */
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
  Partial<Pick<LiveSink, 'suspects'>>;

/** Codes of streams that go on, and yet may show no more than a part. */
export const doubts: ReadonlyMap<string, string> = new Map([
  ['paging_suspected', 'may be read in part'],
  ['signature_refused', 'refuses deliveries'],
]);

/** What is wrong as far as one look shows: what fails is told, since nobody knows for how long. */
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

/** Workers that do not run: nothing is read or sent for their shards, so there is no patience. */
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

type Fill = Pick<StatusFacts['spool'], 'bytes' | 'max_bytes'>;

function fullnessOf({ bytes, max_bytes: bytesMax }: Fill): Ailment | null {
  if (bytes < bytesMax) return null;
  const what = `is full (${bytes} of ${bytesMax} bytes): polling waits until a sink has delivered stored events`;
  return ailmentOf({ part: 'spool', name: 'spool', error: null })('full', what);
}

function ailmentOf({ part, name, error }: Pick<Ailment, 'part' | 'name' | 'error'>) {
  const who = part === 'spool' ? 'the spool' : name;
  const reported = error === null ? '' : `: ${error.message}`;
  return (reason: Ailment['reason'], what: string): Ailment => {
    return { part, name, reason, what, error, message: `${who} ${what}${reported}` };
  };
}
