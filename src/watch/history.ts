// The recent past: rates over half a minute, and a ring of one hour in steps of five seconds for the charts. Every view
// of the export feeds it, at least once per step. Invariant: its size does not grow with time, and the charts do not
// grow with the number of streams.

import type { StatusMoment } from './live.ts';

type Counted = Pick<StatusMoment, 'streams' | 'sinks' | 'spool'>;

/** Length of one step of the charts. */
export const stepMs = 5_000;
/** One hour. */
export const stepsMax = 720;
/** Limit of sinks in charts; rates cover all. */
const chartedSinksMax = 32;

/** One step of the charts. */
export interface ChartSample {
  /** Epoch milliseconds of its end. */
  readonly at: number;
  /** Records read per second. */
  readonly read: number;
  readonly spool_bytes: number;
  /** By sink: events passed per second, and events waiting. */
  readonly sinks: Readonly<Record<string, { readonly rate: number; readonly backlog: number }>>;
}

/** Rates and times from several views. Rates are per second over the last half minute. */
export class History {
  readonly #streams = new Map<string, KnownStream>();
  readonly #sinks = new Map<string, { readonly passed: Meter; readonly backlog: Meter }>();
  readonly #spool = new Meter();
  readonly #readInAll = new Meter();
  readonly #ring: ChartSample[] = [];
  /** Records of all streams, including removed ones. */
  #read = 0;
  #stepped: Stepped | null = null;

  /** Oldest first. */
  get samples(): readonly ChartSample[] {
    return this.#ring;
  }

  /** Of all streams together. */
  get readRateInAll(): number {
    return this.#readInAll.perSecond;
  }

  get spoolRate(): number {
    return this.#spool.perSecond;
  }

  readRate(stream: string): number {
    return this.#streams.get(stream)?.read.perSecond ?? 0;
  }

  /** Epoch milliseconds of the last poll seen to end; null before the first. */
  polledAt(stream: string): number | null {
    return this.#streams.get(stream)?.polledAt ?? null;
  }

  /** Events passed: delivered, rejected for good, or not routed to this sink. */
  sinkRate(sink: string): number {
    return this.#sinks.get(sink)?.passed.perSecond ?? 0;
  }

  /** Above 0: the backlog grows; below 0: it shrinks. */
  backlogRate(sink: string): number {
    return this.#sinks.get(sink)?.backlog.perSecond ?? 0;
  }

  /** Observes the present state; `monotonicMs` measures, `nowMs` stamps. */
  observe(moment: Counted, nowMs: number, monotonicMs: number): void {
    for (const { name, records, polls } of moment.streams) {
      const known = this.#streams.getOrInsertComputed(name, () => ({
        read: new Meter(),
        ...unseen,
        records,
      }));
      // A stream restarted by a reload counts from 0 again; its earlier records stay counted.
      const added = records < known.records ? records : records - known.records;
      known.records = records;
      known.sum += added;
      this.#read += added;
      known.read.observe(monotonicMs, known.sum);
      if (polls > known.polls) known.polledAt = nowMs;
      known.polls = polls;
    }
    for (const { name, position, backlog } of moment.sinks) {
      const known = this.#sinks.getOrInsertComputed(name, () => ({
        passed: new Meter(),
        backlog: new Meter(),
      }));
      known.passed.observe(monotonicMs, position);
      known.backlog.observe(monotonicMs, backlog);
    }
    this.#spool.observe(monotonicMs, moment.spool.bytes);
    this.#readInAll.observe(monotonicMs, this.#read);
    this.#step(moment, nowMs, monotonicMs);
  }

  #step(moment: Counted, nowMs: number, monotonicMs: number): void {
    const before = this.#stepped;
    const sinceMs = before === null ? 0 : monotonicMs - before.at;
    if (before !== null && sinceMs < stepMs * 0.9) return;
    const positions = new Map(moment.sinks.map((sink) => [sink.name, sink.position]));
    this.#stepped = { at: monotonicMs, read: this.#read, positions };
    if (before === null) return;
    const perSecond = (now: number, then: number) =>
      rounded(Math.max(0, now - then) / (sinceMs / 1_000));
    const charted = moment.sinks.slice(0, chartedSinksMax).map(({ name, position, backlog }) => {
      const rate = perSecond(position, before.positions.get(name) ?? position);
      return [name, { rate, backlog }] as const;
    });
    this.#ring.push({
      at: nowMs,
      read: perSecond(this.#read, before.read),
      spool_bytes: moment.spool.bytes,
      sinks: Object.fromEntries(charted),
    });
    if (this.#ring.length > stepsMax) this.#ring.shift();
  }
}

interface KnownStream {
  readonly read: Meter;
  records: number;
  sum: number;
  polls: number;
  polledAt: number | null;
}

const unseen = { records: 0, sum: 0, polls: 0, polledAt: null };

/** When a step of the charts ended, and its counts. */
interface Stepped {
  readonly at: number;
  readonly read: number;
  readonly positions: ReadonlyMap<string, number>;
}

const meterSpanMs = 30_000;
const meterSpacingMs = 2_000;

/** The slope of a count over the last half minute. */
class Meter {
  /** Spaced out, oldest first. */
  readonly #marks: { readonly at: number; readonly value: number }[] = [];
  #latestAt = 0;
  #latest = 0;

  observe(at: number, value: number): void {
    this.#latestAt = at;
    this.#latest = value;
    const last = this.#marks.at(-1);
    if (last !== undefined && at - last.at < meterSpacingMs) return;
    this.#marks.push({ at, value });
    const second = this.#marks[1];
    if (second !== undefined && at - second.at >= meterSpanMs) this.#marks.shift();
  }

  get perSecond(): number {
    const first = this.#marks[0];
    if (first === undefined || this.#latestAt <= first.at) return 0;
    return rounded((this.#latest - first.value) / ((this.#latestAt - first.at) / 1_000));
  }
}

function rounded(rate: number): number {
  return Math.round(rate * 100) / 100;
}
