// Keeps a backfill below the live streams: before each of its requests the needs of streams and sinks are checked. A
// backfill uses at most half of the time and half of each ceiling, leaves half of the quota that upstream reports, and
// never queues where a request must wait. It stores no more in the spool than the sinks accept, so that a sink that is
// down never stops polling because of old events. Invariant: without other requests it makes progress.

import type { Config } from '../config/index.ts';
import { backlog, type Clock, type Offset, type Spool, type Stream } from '../contracts/index.ts';
import { Throttle } from '../upstream/index.ts';
import type { WholePlan } from './plan.ts';

/** The facts to check. */
export interface PaceDeps {
  readonly config: Config;
  readonly plan: WholePlan;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly random: () => number;
  readonly live: () => Live;
}

/** The live streams and the sinks; no streams where the backfill runs alone. */
export interface Live {
  readonly streams: readonly { readonly source: string; readonly state: string }[];
  readonly sinks: readonly {
    readonly name: string;
    readonly position: Offset;
    /** An event that was sent may wait for others to fill a batch. */
    readonly sent: Offset;
    readonly state: string;
    readonly error: { readonly message: string } | null;
  }[];
}

/** Waits until a request may go. */
export type Pace = (signal: AbortSignal) => Promise<void>;

const lookEveryMs = 100;
/** A sink that accepts events and is further behind gets its stored events first. */
const behindMax = 20_000;
/** Share of the spool that the past may fill. */
const spoolShareMax = 0.5;
/** The longest delay that a live stream or an old quota report can cause. */
const courtesyMsMax = 5_000;
/** The largest share of the time that a backfill's requests use. */
const askingShareMax = 0.5;

/** The pace of one stream's backfill. */
export function paceFor(stream: Stream, deps: PaceDeps): Pace {
  const { clock, live } = deps;
  const own = ownThrottle(stream, deps);
  let goneAt: number | null = null;
  return async (signal) => {
    const until = async (may: () => boolean, forMs = Number.POSITIVE_INFINITY) => {
      const deadline = clock.monotonic() + forMs;
      while (!may() && clock.monotonic() < deadline) await clock.sleep(lookEveryMs, signal);
    };
    const tookMs = goneAt === null ? 0 : clock.monotonic() - goneAt;
    await until(() => hasRoom(deps));
    if (live().streams.length > 0) {
      const restMs = tookMs * (1 / askingShareMax - 1);
      if (restMs > 0) await clock.sleep(restMs, signal);
      await until(() => !isAsking(stream, deps), courtesyMsMax);
      await until(() => !isScarce(stream, deps), courtesyMsMax);
      for (;;) {
        const waitMs = own.delayAt(clock.monotonic());
        if (waitMs === 0) break;
        await clock.sleep(waitMs, signal);
      }
      own.take(clock.monotonic());
    }
    goneAt = clock.monotonic();
  };
}

/** Half of each ceiling that the stream's requests pass. */
function ownThrottle(stream: Stream, { config, random }: PaceDeps): Throttle {
  const { upstream, keys } = whereOf(stream, config);
  const ceilings = (config.upstreams[upstream]?.throttle ?? [])
    .filter(({ path = '*' }) => keys.includes(path))
    .map(({ requests, per }) => ({
      requests: Math.max(1, Math.floor(requests / 2)),
      perMs: requests === 1 ? per * 2 : per,
    }));
  return new Throttle({ ceilings, random });
}

function hasRoom({ config, spool, live }: PaceDeps): boolean {
  const { gauge } = spool;
  const { sinks } = live();
  const isBehind = sinks.some(
    ({ sent, state }) => backlog(gauge, sent) > behindMax && isTaking(state),
  );
  if (isBehind) return false;
  // Events that all sinks have passed may be kept for replay: they are released if space is needed.
  return (
    gauge.bytes < config.state.maxBytes * spoolShareMax ||
    sinks.every(({ position }) => backlog(gauge, position) === 0)
  );
}

function isTaking(state: string): boolean {
  return state !== 'retrying' && state !== 'refused' && state !== 'stopped';
}

/** A live stream of the same upstream is in the middle of a poll. */
function isAsking(stream: Stream, { config, live }: PaceDeps): boolean {
  const { upstream } = whereOf(stream, config);
  return live().streams.some(
    ({ source, state }) =>
      state === 'polling' && config.sources[source]?.settings.upstream === upstream,
  );
}

/** A request would have to wait, or less than half of the budget is left. */
function isScarce(stream: Stream, { config, plan }: PaceDeps): boolean {
  const { upstream, keys } = whereOf(stream, config);
  const throttles = plan.upstreams.get(upstream)?.state().throttles ?? [];
  return throttles.some(
    ({ path, waitMs, limit, remaining }) =>
      keys.includes(path) &&
      (waitMs > 0 || (limit !== undefined && remaining !== undefined && remaining * 2 < limit)),
  );
}

function whereOf(
  stream: Stream,
  { sources }: Config,
): { upstream: string; keys: readonly string[] } {
  const settings = sources[stream.source]?.settings;
  return { upstream: settings?.upstream ?? '', keys: [...stream.paths, '*'] };
}
