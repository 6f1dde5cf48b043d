// Schedules the comparisons of archives with upstream (`compare_every`): one after the other, the first one that long
// after an archive was first seen. The state has the time of the last comparison and the streams done since: an
// interrupted comparison resumes with its current stream. Invariant: a failure of a comparison never stops the journey.

import type { BucketSettings } from '../archive/index.ts';
import type { SinkSettings } from '../contracts/config.ts';
import { errorText } from '../contracts/index.ts';
import type { Pipeline } from '../pipeline.ts';
import type { BackfillReadingDeps } from './backfill.ts';

const lookEveryMs = 1_000;
/** After a failure it is tried again so soon, or when it is due if that is sooner. */
const againMs = 15 * 60_000;
const dueKey = 'compared_at';

/** The dependencies. */
export interface ComparisonDeps extends Omit<BackfillReadingDeps, 'live'> {
  readonly pipeline: Pipeline;
}

/** Compares until stopped. Never rejects. */
export async function serveComparisons(deps: ComparisonDeps, stop: AbortSignal): Promise<void> {
  const { clock } = deps.tools;
  const failedAt = new Map<string, number>();
  while (!stop.aborted) {
    await compareDue(deps, stop, failedAt);
    await clock.sleep(lookEveryMs, stop).catch(() => undefined);
  }
}

/**
 * Compares the archives that are due, those aside that have failed of late (`failedAt`, monotonic).
 * Never rejects.
 */
export async function compareDue(
  deps: ComparisonDeps,
  stop: AbortSignal,
  failedAt = new Map<string, number>(),
): Promise<void> {
  const { clock, log } = deps.tools;
  for (const [sink, { settings }] of Object.entries(deps.made().config.sinks)) {
    const everyMs = settings.type === 'archive' ? settings.compare_every : undefined;
    if (typeof everyMs !== 'number' || stop.aborted) continue;
    const waits = (failedAt.get(sink) ?? Number.NEGATIVE_INFINITY) + Math.min(againMs, everyMs);
    if (clock.monotonic() < waits) continue;
    try {
      if (await isDue(sink, everyMs, deps)) await compare(sink, settings, deps, stop);
      failedAt.delete(sink);
    } catch (error) {
      if (stop.aborted) return;
      failedAt.set(sink, clock.monotonic());
      log.warn('archive_compare_failed', 'comparing the archive with upstream failed; retrying', {
        sink,
        error: errorText(error),
      });
    }
  }
}

async function isDue(sink: string, everyMs: number, deps: ComparisonDeps): Promise<boolean> {
  const { spool, tools } = deps;
  const now = tools.clock.now();
  const text = (await spool.entities(keyOf(sink), [dueKey])).get(dueKey);
  if (text === undefined) await noteDone(sink, deps);
  // A clock that was set back holds it off no longer than once.
  return text !== undefined && Math.abs(now - Number(text)) >= everyMs;
}

async function compare(
  sink: string,
  settings: SinkSettings,
  deps: ComparisonDeps,
  stop: AbortSignal,
): Promise<void> {
  // Loaded only for a comparison.
  const [{ compareArchive, listsIn }, { openStore }] = await Promise.all([
    import('./compare.ts'),
    import('../archive/index.ts'),
  ]);
  const { spool } = deps;
  const names = listsIn(deps.made().plan.sources).map(({ stream }) => stream.name);
  const done = await spool.entities(keyOf(sink), names.map(doneKey));
  const progress = {
    isDone: (stream: string) => done.has(doneKey(stream)),
    note: async (stream: string) => {
      const put = [[doneKey(stream), '']] as const;
      await spool.append({ stream: keyOf(sink), pages: [], entities: { put, drop: [] } });
    },
  };
  const store = await openStore(String(settings.location), settings as BucketSettings);
  try {
    const live = () => deps.pipeline.state;
    await compareArchive({ sink, store, progress }, { ...deps, live }, stop);
  } finally {
    store.close();
  }
  await noteDone(sink, deps, names);
}

async function noteDone(
  sink: string,
  { spool, tools }: ComparisonDeps,
  names: readonly string[] = [],
): Promise<void> {
  const put = [[dueKey, String(tools.clock.now())]] as const;
  const entities = { put, drop: names.map(doneKey) };
  await spool.append({ stream: keyOf(sink), pages: [], entities });
}

/** Of a stream that was compared since all were the last time. */
function doneKey(stream: string): string {
  return `done ${stream}`;
}

/** No stream has this name. */
function keyOf(sink: string): string {
  return `#compare-${sink}`;
}
