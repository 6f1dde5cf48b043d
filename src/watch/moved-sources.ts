// Sources whose successor delivers and is read: the end of their API is no fault. The running process knows them
// (fetch/polling.ts); here they are derived from a stored state.

import type { Plan } from '../pipeline.ts';
import type { State } from './state.ts';

type Known = Pick<State, 'pairs' | 'streams'>;
type Planned = Pick<Plan, 'sources'>;

/** The sources whose successor delivers and is read, or has itself been succeeded. */
export function movedSources({ pairs, streams }: Known, { sources }: Planned): ReadonlySet<string> {
  const successors = new Map(
    pairs.flatMap(({ predecessor, successor, phase }) =>
      phase === 'cut_over' ? [[predecessor, successor] as const] : [],
    ),
  );
  const isRead = (source: string) => {
    const own = sources.find(({ name }) => name === source)?.streams ?? [];
    const known = own.map(({ name }) => streams.get(name));
    const isWell = known.every((one) => one !== undefined && one.error === null);
    return own.length > 0 && isWell;
  };
  const hasMoved = (source: string): boolean => {
    const successor = successors.get(source);
    return successor !== undefined && (isRead(successor) || hasMoved(successor));
  };
  return new Set([...successors.keys()].filter(hasMoved));
}

/** The streams of these sources that can no longer be read. */
export function endedStreams(known: Known, plan: Planned): ReadonlySet<string> {
  const moved = movedSources(known, plan);
  const own = plan.sources.filter(({ name }) => moved.has(name)).flatMap((one) => one.streams);
  return new Set(
    own.flatMap(({ name }) => ((known.streams.get(name)?.error ?? null) === null ? [] : [name])),
  );
}

/** The upstreams with a source that has not moved: their end affects it. */
export function concernedUpstreams(
  { sources }: Planned,
  hasMoved: (source: string) => boolean,
): ReadonlySet<string> {
  return new Set(sources.flatMap(({ name, upstream }) => (hasMoved(name) ? [] : [upstream])));
}
