// Decides when `run --once` without a time limit ends: not while there is progress, and after a minute without progress
// if the remaining streams or sinks keep failing. A stream that waits at upstream's request is not failing, and neither
// is a sink without its first response yet.

import type { Clock } from '../contracts/index.ts';
import type { PipelineState } from '../pipeline.ts';

/** The watched facts. */
export interface Watched {
  readonly clock: Clock;
  readonly state: () => PipelineState;
  /** Number of events in the spool so far. */
  readonly end: () => number;
}

/** A failure without any progress for this long counts as lasting. */
export const patienceMs = 60_000;
const lookEveryMs = 500;

/** Resolves when it is time to give up; rejects when the signal aborts before. */
export async function timeToGiveUp(
  { clock, state, end }: Watched,
  signal: AbortSignal,
): Promise<void> {
  let seen = '';
  let movedAt = clock.monotonic();
  for (;;) {
    const now = state();
    const progress = progressOf(now, end());
    if (progress !== seen) {
      seen = progress;
      movedAt = clock.monotonic();
    }
    if (clock.monotonic() - movedAt >= patienceMs && isFailing(now, end())) return;
    await clock.sleep(lookEveryMs, signal);
  }
}

function progressOf({ streams, sinks }: PipelineState, end: number): string {
  const finished = streams.filter((stream) => stream.caughtUpAt !== null).length;
  const delivered = sinks.map((sink) => `${sink.position}/${sink.delivered}/${sink.deadLetters}`);
  return [end, finished, ...delivered].join(' ');
}

/** True if no progress is possible: every sink behind fails, or else every unfinished stream. */
function isFailing({ streams, sinks }: PipelineState, end: number): boolean {
  const behind = sinks.filter((sink) => sink.position < end);
  if (behind.length > 0) return behind.every((sink) => sink.error !== null);
  const unfinished = streams.filter(
    (stream) => stream.caughtUpAt === null && stream.state !== 'halted',
  );
  const isStuck = ({ error }: (typeof streams)[number]) =>
    error !== null && error.code !== 'upstream_throttled';
  return unfinished.length > 0 && unfinished.every(isStuck);
}
