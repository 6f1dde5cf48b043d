// Up to when everything is at a sink: of each stream that is routed there, the latest moment by
// which all that upstream showed had been read and has been settled there since. What must stay
// true: it may be said too early a time, never too late a one. Of what it does not speak: of what
// upstream shows only later though it is older, and of what a filter or an operator has left out.

import type { Offset } from '../contracts/event.ts';
import type { Plan } from '../pipeline.ts';
import { leadsTo } from '../send/route.ts';
import { endedStreams } from './moved-sources.ts';
import type { State } from './state.ts';

/** A sink of a plan, and how far it has come. */
export interface Sinks {
  readonly plan: Pick<Plan, 'sources' | 'routes'>;
  readonly sink: string;
  readonly position: Offset;
}

/** A stream that is routed to a sink. */
export interface SettledStream {
  readonly name: string;
  readonly source: string;
  /** Epoch milliseconds; null: it has not been read to its end yet, or what was is not settled. */
  readonly upTo: number | null;
  /** Its API has ended, and its successor delivers: nothing more is shown of it. */
  readonly isEnded: boolean;
}

type Known = Pick<State, 'streams'> & Partial<Pick<State, 'pairs'>>;

/** What is settled at a sink of each stream that is routed there. */
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
      // Of many parents some were asked last when the rotation began.
      const { rotation_ms: rotationMs } = parents;
      return { name, source, upTo: rotationMs === null ? null : at - rotationMs, isEnded };
    }),
  );
}

/** Up to when everything is settled there, epoch milliseconds; null: that cannot be said. */
export function settledUpTo(state: Known, sink: Sinks): number | null {
  let upTo = Number.POSITIVE_INFINITY;
  for (const stream of settledStreams(state, sink)) {
    if (stream.isEnded) continue;
    if (stream.upTo === null) return null;
    upTo = Math.min(upTo, stream.upTo);
  }
  return Number.isFinite(upTo) ? upTo : null;
}
