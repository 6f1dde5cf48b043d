// What the last minutes and the last hour were like: rates over half a minute, and a ring of an
// hour in steps of five seconds for the charts. Fed by whoever looks at the journey, at least once
// a step. What must stay true: its size does not grow with time, and the charts' not with the
// number of streams.

import type { Moment } from './live.ts';

type Counted = Pick<Moment, 'streams' | 'sinks' | 'spool'>;

/** Length of one step of the charts. */
export const stepMs = 5_000;
/** An hour. */
export const stepsMax = 720;
/** Charts hold no more sinks than this; rates hold all. */
const chartedSinksMax = 32;

/** One step of the charts. */
export interface Sample {
  /** Epoch milliseconds of its end. */
  readonly at: number;
  /** Records read a second. */
  readonly read: number;
  readonly spool_bytes: number;
  /** By sink: events passed a second, and events to go. */
  readonly sinks: Readonly<Record<string, { readonly rate: number; readonly backlog: number }>>;
}

/** What is known beyond the moment. Rates are per second over the last half a minute. */
export interface History {
  /** Takes note of the journey as it is now; `monotonicMs` measures, `nowMs` stamps. */
  observe(moment: Counted, nowMs: number, monotonicMs: number): void;
  /** Oldest first. */
  samples(): readonly Sample[];
  readRate(stream: string): number;
  /** Of all streams together. */
  readRateInAll(): number;
  /** Epoch milliseconds of the last poll seen to end; null before the first. */
  polledAt(stream: string): number | null;
  /** Events passed: delivered, refused for good, or not for this sink. */
  sinkRate(sink: string): number;
  /** Grows above 0, shrinks below. */
  backlogRate(sink: string): number;
  spoolRate(): number;
}

/** Opens an empty history. */
export function openHistory(): History {
  const streams = new Map<
    string,
    { readonly read: Meter; records: number; sum: number; polls: number; polledAt: number | null }
  >();
  const sinks = new Map<string, { readonly passed: Meter; readonly backlog: Meter }>();
  const spool = new Meter();
  const readInAll = new Meter();
  const ring: Sample[] = [];
  const unseen = { records: 0, sum: 0, polls: 0, polledAt: null };
  /** Records of all streams, those that have left included. */
  let read = 0;
  let steppedAt: number | null = null;
  let stepped = { read: 0, positions: new Map<string, number>() };

  const step = (moment: Counted, read: number, nowMs: number, monotonicMs: number) => {
    const sinceMs = steppedAt === null ? null : monotonicMs - steppedAt;
    if (sinceMs !== null && sinceMs < stepMs * 0.9) return;
    const positions = new Map(moment.sinks.map((sink) => [sink.name, sink.position]));
    if (sinceMs !== null) {
      const perSecond = (now: number, then: number) =>
        rounded(Math.max(0, now - then) / (sinceMs / 1_000));
      const charted = moment.sinks.slice(0, chartedSinksMax).map((sink) => {
        const before = stepped.positions.get(sink.name) ?? sink.position;
        return [
          sink.name,
          { rate: perSecond(sink.position, before), backlog: sink.backlog },
        ] as const;
      });
      ring.push({
        at: nowMs,
        read: perSecond(read, stepped.read),
        spool_bytes: moment.spool.bytes,
        sinks: Object.fromEntries(charted),
      });
      if (ring.length > stepsMax) ring.shift();
    }
    steppedAt = monotonicMs;
    stepped = { read, positions };
  };

  return {
    observe(moment, nowMs, monotonicMs) {
      for (const { name, records, polls } of moment.streams) {
        const known = streams.get(name) ?? { read: new Meter(), ...unseen, records };
        streams.set(name, known);
        // A stream that a reload has begun anew counts from 0 again, and has read no less for that.
        const added = records < known.records ? records : records - known.records;
        known.records = records;
        known.sum += added;
        read += added;
        known.read.observe(monotonicMs, known.sum);
        if (polls > known.polls) known.polledAt = nowMs;
        known.polls = polls;
      }
      for (const { name, position, backlog } of moment.sinks) {
        const known = sinks.get(name) ?? { passed: new Meter(), backlog: new Meter() };
        sinks.set(name, known);
        known.passed.observe(monotonicMs, position);
        known.backlog.observe(monotonicMs, backlog);
      }
      spool.observe(monotonicMs, moment.spool.bytes);
      readInAll.observe(monotonicMs, read);
      step(moment, read, nowMs, monotonicMs);
    },
    samples: () => ring,
    readRate: (name) => streams.get(name)?.read.perSecond ?? 0,
    readRateInAll: () => readInAll.perSecond,
    polledAt: (name) => streams.get(name)?.polledAt ?? null,
    sinkRate: (name) => sinks.get(name)?.passed.perSecond ?? 0,
    backlogRate: (name) => sinks.get(name)?.backlog.perSecond ?? 0,
    spoolRate: () => spool.perSecond,
  };
}

const meterSpanMs = 30_000;
const meterSpacingMs = 2_000;

/** The slope of a count over the last half a minute. */
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
