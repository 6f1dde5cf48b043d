// When `run --once` has no bound of time: it goes on for as long as anything moves, and ends when
// nothing has for a minute and whoever should move keeps failing. A stream that upstream has told
// to wait is not failing, and neither is a sink that is still working on its first answer.

import type { Clock } from '../contracts/index.ts';
import type { PipelineState } from '../pipeline.ts';

/** What is watched. */
export interface Watched {
  readonly clock: Clock;
  readonly state: () => PipelineState;
  /** Events in the spool so far. */
  readonly end: () => number;
}

/** Without any progress for so long, failing is taken for lasting. */
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

/** Nobody is left to move: every sink behind fails, or else every unfinished stream. */
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
