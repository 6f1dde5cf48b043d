// The status from the state directory, with or without a running process.

import { backlog } from '../contracts/index.ts';
import type { Plan } from '../pipeline.ts';
import { timeText } from '../tools/index.ts';
import type { AnnouncedEnd, UpstreamClient } from '../upstream/index.ts';
import { concernedUpstreams, endedStreams, movedSources } from './moved-sources.ts';
import { removedSinksOf } from './removed-sinks.ts';
import { asideFacts, emptyState, type State, settledBefore } from './state.ts';
import {
  elsewhere,
  type LastError,
  roomInSpool,
  type StatusFacts,
  type StoredStatus,
  type StoredUpstream,
} from './status-facts.ts';
import { successionFacts } from './successions.ts';
import { settledUpTo } from './up-to.ts';
import { endFacts } from './upstream-ends.ts';

/** The configured parts. */
interface Configured {
  readonly plan: Pick<Plan, 'sources' | 'sinks' | 'routes'> & {
    readonly upstreams: ReadonlyMap<string, UpstreamClient>;
  };
  readonly state: {
    readonly dir: string;
    readonly maxBytes: number;
    readonly removedSinksMs: number;
  };
  /** Why the file's config does not run; `at` is in epoch milliseconds. */
  readonly refused: (LastError & { readonly at: number }) | null;
}

/**
 * The streams and sinks of a config. A part is `new` before anything was read or sent, and `stopped` while no process
 * runs. A stream that is neither halted nor retried later waits for room if the spool is full. Filters are unknown
 * here.
 */
export function streamsAndSinks(stored: State, { plan, state, refused }: Configured): StoredStatus {
  const { holder, spool } = stored;
  const now = Date.now();
  const streams = plan.sources.flatMap(({ upstream, streams: own }) =>
    own.map((stream) => ({ ...stream, upstream })),
  );
  const expecting = new Set(plan.sources.flatMap((one) => (one.expectMs ? [one.name] : [])));
  const names = [streams, plan.sinks].map((all) => new Set(all.map(({ name }) => name)));
  const orphans = [stored.streams, stored.sinks].map((known, at) =>
    [...known.keys()].filter((name) => !names[at]?.has(name)),
  );
  const ended = endedStreams(stored, plan);
  const isFull = holder !== null && spool.bytes !== null && spool.bytes >= state.maxBytes;
  const stateNow = (noted: string | null | undefined) => {
    if (noted === null || noted === undefined) return 'new';
    return holder === null ? 'stopped' : noted;
  };
  return {
    running: holder,
    state_dir: state.dir,
    reload_refused: refused && { ...refused, at: timeText(refused.at) },
    streams: streams.map(({ name, source, upstream, company }) => {
      const held = stored.streams.get(name);
      const caughtUpAt = held?.caught_up_at ?? null;
      const isEnded = ended.has(name);
      const waitsForRoom =
        isFull && !isEnded && held?.state !== 'halted' && held?.state !== 'retrying';
      return {
        name,
        source,
        upstream,
        ...(company !== undefined && { company }),
        order: held?.checkpoint?.order ?? null,
        checkpoint_at: timeText(held?.checkpoint?.savedAt ?? null),
        caught_up_at: timeText(caughtUpAt),
        lag_ms: caughtUpAt === null ? null : Math.max(0, now - caughtUpAt),
        next_poll_at: holder === null ? null : timeText(held?.next_poll_at ?? null),
        ...(holder !== null && held?.interval_ms && { interval_ms: held.interval_ms }),
        waits_for: waitsForRoom ? roomInSpool : null,
        silent_since:
          expecting.has(source) && !isEnded ? timeText(held?.silent_since ?? null) : null,
        state: stateNow(isEnded ? 'waiting' : held?.state),
        ...(isEnded && { ended: true }),
        ...(held?.parents && { parents: held.parents }),
        ...(held?.checkpoint?.compared && { compared: held.checkpoint.compared }),
        error: isEnded ? null : (held?.error ?? null),
      };
    }),
    spool: {
      bytes: spool.bytes,
      max_bytes: state.maxBytes,
      events: spool.events,
      oldest_at: timeText(spool.oldestAt),
    },
    sinks: plan.sinks.map(({ name, settings: { type } }) => {
      const held = stored.sinks.get(name);
      return {
        name,
        type,
        position: held?.position ?? 0,
        backlog: backlog(spool, held?.position ?? 0),
        up_to: timeText(
          settledUpTo(stored, {
            ...{ plan, sink: name },
            position: settledBefore(held?.position ?? 0, held?.aside ?? []),
          }),
        ),
        dead_letters: held?.deadLetters ?? 0,
        state: stateNow(held?.state),
        error: held?.error ?? null,
        notice: held?.notice ?? null,
        suspects: held?.suspects ?? null,
        set_aside: asideFacts(held?.aside ?? []),
      };
    }),
    orphans: { streams: orphans[0] ?? [], sinks: orphans[1] ?? [] },
    filters: [],
    lookups: lookupsOf(plan, stored),
    upstreams: storedEnds(stored, plan, now),
    config_differences: [],
    removed_sinks: removedSinksOf(stored, {
      present: plan.sinks.map(({ name }) => name),
      removedSinksMs: state.removedSinksMs,
    }),
    successions: stored.pairs.map(successionFacts),
    unread_times: [],
  };
}

/** The end of each upstream, by its config and the dates that the state has from responses. */
export function storedEnds(
  stored: Pick<State, 'ends' | 'pairs' | 'streams'>,
  plan: Pick<Configured['plan'], 'upstreams' | 'sources'>,
  now: number,
): readonly StoredUpstream[] {
  const movedOnes = movedSources(stored, plan);
  const concerned = concernedUpstreams(plan, (source) => movedOnes.has(source));
  return Array.from(plan.upstreams.values(), (client) => {
    const moved = !concerned.has(client.name);
    return endFacts(client.name, client.endBy(announcedOf(stored, client)), { now, moved });
  });
}

/** The dates that an upstream's responses have announced, from the state. */
export function announcedOf(
  { ends }: Pick<State, 'ends'>,
  { name, baseUrl }: Pick<UpstreamClient, 'name' | 'baseUrl'>,
): readonly AnnouncedEnd[] {
  const held = ends.get(name);
  return held?.base === baseUrl ? held.announced : [];
}

/** The status of a part in another process: this machine knows only its names. */
export function statusElsewhere(configured: Configured): StoredStatus {
  const statusView = streamsAndSinks(emptyState, configured);
  return {
    ...statusView,
    // Only the shard's process knows the dates of headers.
    upstreams: statusView.upstreams.filter(({ ends_from: from }) => from === 'config'),
    streams: statusView.streams.map((stream) => ({ ...stream, state: elsewhere })),
    sinks: statusView.sinks.map((sink) => ({ ...sink, state: elsewhere })),
  };
}

/** The look-ups that sources use, as stored. */
export function lookupsOf(
  { sources }: Pick<Plan, 'sources'>,
  { lookups: held }: Pick<State, 'lookups'>,
): StatusFacts['lookups'] {
  const requested = new Map(
    sources.flatMap((one) => (one.lookups ? [[one.upstream, one.lookups] as const] : [])),
  );
  return [...requested].flatMap(([upstream, lookups]) =>
    lookups.requested.map((name) => {
      const { at = null, error = null } = held.get(upstream)?.[name] ?? {};
      return { upstream, name, read_at: timeText(at), error };
    }),
  );
}
