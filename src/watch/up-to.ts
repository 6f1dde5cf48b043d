// The time until which a sink has everything: for each routed stream, the latest moment by which everything that
// upstream showed was read and has since been settled at the sink. Invariant: the time may be too early, never too
// late. It does not cover records that upstream shows late although they are older, and events dropped by a filter or
// an operator.

import type { Offset } from '../contracts/index.ts';
import type { Plan } from '../pipeline.ts';
import { leadsTo } from '../send/index.ts';
import { endedStreams } from './moved-sources.ts';
import type { State } from './state.ts';

/** A sink of a plan, and its progress. */
export interface Sinks {
  readonly plan: Pick<Plan, 'sources' | 'routes'>;
  readonly sink: string;
  readonly position: Offset;
}

/** A stream that is routed to a sink. */
export interface SettledStream {
  readonly name: string;
  readonly source: string;
  /** Epoch milliseconds; null: it was not read to its end yet, or the read part is not settled. */
  readonly upTo: number | null;
  /** Its API has ended, and its successor delivers: it shows no new records. */
  readonly isEnded: boolean;
}

type Known = Pick<State, 'streams'> & Partial<Pick<State, 'pairs'>>;

/** The settled time of each stream that is routed to a sink. */
export function settledStreams(
  { streams, pairs = [] }: Known,
  { plan, sink, position }: Sinks,
): readonly SettledStream[] {
  const ended = endedStreams({ streams, pairs }, plan);
  const routed = plan.sources.filter(({ name: source }) => leadsTo(plan.routes, { source, sink }));
  return routed.flatMap(({ name: source, streams: planned }) =>
    planned.map(({ name }) => {
      const { reached = [], parents } = streams.get(name) ?? {};
      const at = reached.findLast(({ end }) => end <= position)?.at ?? null;
      const isEnded = ended.has(name);
      if (parents === undefined || at === null) return { name, source, upTo: at, isEnded };
      // Some of many parents were last requested when the rotation began.
      const { rotation_ms: rotationMs } = parents;
      return { name, source, upTo: rotationMs === null ? null : at - rotationMs, isEnded };
    }),
  );
}

/** Until when everything is settled at the sink, epoch milliseconds; null: unknown. */
export function settledUpTo(state: Known, sink: Sinks): number | null {
  return earliest(settledStreams(state, sink));
}

/** The earliest time of streams that have not ended; null: none has a time, or one has none yet. */
export function earliest(streams: readonly SettledStream[]): number | null {
  let upTo = Number.POSITIVE_INFINITY;
  for (const stream of streams) {
    if (stream.isEnded) continue;
    if (stream.upTo === null) return null;
    upTo = Math.min(upTo, stream.upTo);
  }
  return Number.isFinite(upTo) ? upTo : null;
}

/**
 * Until when everything of each stream is settled at all sinks, by stream; null: unknown. `settled`:
 * the streams of each sink. A stream that no sink receives is absent.
 */
export function settledEverywhere(
  settled: Iterable<readonly SettledStream[]>,
): ReadonlyMap<string, number | null> {
  const upTo = new Map<string, number | null>();
  for (const streams of settled) {
    for (const { name, upTo: at, isEnded } of streams) {
      if (isEnded) continue;
      const other = upTo.has(name) ? (upTo.get(name) ?? null) : Number.POSITIVE_INFINITY;
      upTo.set(name, at === null || other === null ? null : Math.min(at, other));
    }
  }
  return upTo;
}
