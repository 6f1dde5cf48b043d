// The shards of a state in Kafka: each has the work of some upstreams, with its own log, its own directory and a group
// of processes, and sees a config of its own. Invariants: an upstream's shard follows from its name, so every reader of
// the config computes the same one, also with new credentials; upstreams with one client are in one shard, because a
// token must have one user; an exclusive resource of a sink exists in each shard.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { MemberSettings } from '../cluster/index.ts';
import type { DriftSettings } from '../contracts/index.ts';
import type { UpstreamSettings } from '../upstream/index.ts';
import type { Flaws } from './flaws.ts';
import type { ConfiguredSink } from './sinks.ts';
import type { ConfiguredSource } from './sources.ts';

/** The parts of a config by which its work is distributed. */
interface Shared {
  readonly state: { readonly kafka: Pick<MemberSettings, 'shards'> | null };
  readonly upstreams: Readonly<Record<string, UpstreamSettings>>;
  readonly sources: Readonly<Record<string, ConfiguredSource>>;
  readonly sinks: Readonly<Record<string, ConfiguredSink>>;
  readonly watch: { readonly drift: Pick<DriftSettings, 'changes' | 'trail'> | null };
}

/** The parts of a config that differ between shards. */
interface Work extends Shared {
  readonly state: {
    readonly dir: string;
    readonly places: readonly string[];
    readonly kafka: MemberSettings | null;
  };
  readonly watch: { readonly drift: DriftSettings | null };
}

/** Replaced by the shard's number in a setting. */
const placeholder = '{partition}';

/** Identifies an upstream and its client without revealing a secret. */
export function upstreamDigest({ base_url: url, auth }: UpstreamSettings): string {
  const client = `${url} ${auth.client_id?.reveal() ?? ''}`;
  return createHash('sha256').update(client).digest('hex').slice(0, 16);
}

/** The config of each shard; with a single shard, the config itself. */
export function inShards<C extends Work>(config: C): readonly C[] {
  return shardsOf(config).map((shard) => ofShard(config, shard));
}

/** The shards with work, in order. */
export function shardsOf(config: Work): readonly number[] {
  if (countOf(config) === 1) return [0];
  const used = Object.values(config.sources).map(({ settings }) =>
    shardIn(config, settings.upstream),
  );
  return [...new Set(used)].sort((a, b) => a - b);
}

/** The common part of the streams of one source, or of an upstream's look-ups or end. */
export function shardKeyOf(stream: string): string {
  return /^[^/:#]*(#lookups|#ends)?/.exec(stream)?.[0] ?? '';
}

/** The shard that reads a stream; null: the config has no such source or upstream. */
export function shardOfStream(config: Work, stream: string): number | null {
  const owner = shardKeyOf(stream);
  const [, upstream] = /^(.*)(?:#lookups|#ends)$/.exec(owner) ?? [];
  if (upstream !== undefined) {
    return Object.hasOwn(config.upstreams, upstream) ? shardIn(config, upstream) : null;
  }
  // Drift detection runs with its trail.
  const name = owner === '' ? (config.watch.drift?.trail[0] ?? '') : owner;
  const source = Object.hasOwn(config.sources, name) ? config.sources[name] : undefined;
  return source === undefined ? null : shardIn(config, source.settings.upstream);
}

/** A shard's part of a config: its sources and upstreams, and all sinks. */
export function ofShard<C extends Work>(config: C, shard: number): C {
  const { state, sources, upstreams, sinks, watch } = config;
  if (state.kafka === null || countOf(config) === 1) return config;
  const isHere = (upstream: string) => shardIn(config, upstream) === shard;
  const dirIn = (dir: string) => join(dir, `shard-${shard}`);
  const own = entriesOf(sources, (_, { settings }) => isHere(settings.upstream));
  const others = shardsOf(config).filter((one) => one !== shard);
  const watched = watch.drift?.trail.some((name) => Object.hasOwn(own, name));
  return {
    ...config,
    state: {
      ...state,
      dir: dirIn(state.dir),
      places: state.places.map(dirIn),
      kafka: { ...state.kafka, shard },
    },
    sources: own,
    upstreams: entriesOf(upstreams, isHere),
    sinks: Object.fromEntries(
      Object.entries(sinks).map(([name, sink]) => [name, sinkIn(sink, shard, others)]),
    ),
    watch: { ...watch, drift: watched ? watch.drift : null },
  };
}

/** The sinks for a single shard: a shard number in a setting is 0. */
export function sinksOfOne({ state, sinks }: Pick<Shared, 'state' | 'sinks'>): Shared['sinks'] {
  if (state.kafka === null || countOf({ state }) > 1) return sinks;
  const isAsked = ({ definition, settings }: ConfiguredSink) => {
    const own = definition.own?.(settings) ?? null;
    return own !== null && String(settings[own.key]).includes(placeholder);
  };
  return Object.fromEntries(
    Object.entries(sinks).map(([name, sink]) => [name, isAsked(sink) ? sinkIn(sink, 0) : sink]),
  );
}

/** Reports settings that several processes or shards cannot share; `at`: the offset of `state.kafka.shards`. */
export function checkShards(config: Shared, at: number | null, flaws: Flaws): void {
  for (const [name, { definition, settings }] of Object.entries(config.sinks)) {
    const { key, flawIfShared } = definition.own?.(settings) ?? {};
    if (config.state.kafka === null || key === undefined || flawIfShared === undefined) continue;
    flaws.add(at, ['sinks', name, key], flawIfShared);
  }
  checkPins(config, at, flaws);
  if (countOf(config) === 1) return;
  for (const [name, { definition, settings }] of Object.entries(config.sinks)) {
    const own = definition.own?.(settings) ?? null;
    if (own === null || own.shardSeparator !== undefined) continue;
    if (String(settings[own.key]).includes(placeholder)) continue;
    const what = `each shard writes ${own.key} for itself: put ${placeholder}, which is replaced by its number, into it`;
    flaws.add(at, ['sinks', name, own.key], what);
  }
  const shardOfSource = (name: string) => {
    const upstream = config.sources[name]?.settings.upstream ?? '';
    return Object.hasOwn(config.upstreams, upstream) ? shardIn(config, upstream) : null;
  };
  const together = [
    ...Object.entries(config.sources).map(([name, { definition, settings }]) => {
      const each = definition.parents?.(settings).each;
      return {
        path: ['sources', name, 'each'],
        names: each && 'of' in each ? [name, each.of] : [],
      };
    }),
    {
      path: ['watch', 'drift'],
      names: [...(config.watch.drift?.changes ?? []), ...(config.watch.drift?.trail ?? [])],
    },
  ];
  for (const { path, names } of [...together, ...listening(config)]) {
    // One without an upstream is in no shard, and reported already.
    const [first, ...others] = names.filter((one) => shardOfSource(one) !== null);
    const far = others.find((one) => shardOfSource(one) !== shardOfSource(first ?? one));
    if (far === undefined) continue;
    const what = `${first} and ${far} are of upstreams in different shards, and each is a process that knows nothing of the other; have both read by one client, or set state.kafka.shards to 1`;
    flaws.add(at, path, what);
  }
}

/** Reports upstreams pinned to a shard that does not exist, or to another one than their mates. */
function checkPins(config: Shared, at: number | null, flaws: Flaws): void {
  if (config.state.kafka === null) return;
  const count = countOf(config);
  for (const name of Object.keys(config.upstreams)) {
    const path = ['upstreams', name, 'shard'];
    const pin = pinOf(config, name);
    if (pin === null) continue;
    if (pin >= count) {
      const allowed = count === 1 ? '0' : `0 to ${count - 1}`;
      flaws.add(
        at,
        path,
        `${pin} is no shard: state.kafka.shards is ${count}; expected ${allowed}`,
      );
    }
    const other = shardMates(config, name).find((one) => ![null, pin].includes(pinOf(config, one)));
    if (other === undefined) continue;
    const why = `upstreams.${other}.shard is ${pinOf(config, other)}, and both are in one shard: they have one client, or a source of one succeeds a source of the other; set the same shard, or remove one`;
    flaws.add(at, path, `is ${pin}, but ${why}`);
  }
}

/** Sources with a shared external resource, such as a listen address. */
function listening({ sources }: Pick<Shared, 'sources'>) {
  const shared = Object.entries(sources).flatMap(([name, { definition, settings }]) => {
    const { alike } = definition.own?.(settings) ?? {};
    return alike === undefined ? [] : [{ name, of: alike.of }];
  });
  return [...Map.groupBy(shared, ({ of }) => of).values()].map((users) => ({
    path: ['sources', users[0]?.name ?? ''],
    names: users.map(({ name }) => name),
  }));
}

function countOf({ state }: Pick<Shared, 'state'>): number {
  return state.kafka?.shards ?? 1;
}

/** The shard of an upstream: the pinned one, or the one computed from its leader's name. */
function shardIn(
  config: Pick<Shared, 'state' | 'upstreams' | 'sources'>,
  upstream: string,
): number {
  const leader = leadersIn(config).get(upstream) ?? upstream;
  const pinned = shardMates(config, upstream).find((name) => pinOf(config, name) !== null);
  const number = pinned === undefined ? null : pinOf(config, pinned);
  return (number ?? numberOf(leader)) % countOf(config);
}

/**
 * The upstreams in the shard of an upstream, by name: those with its client, and those whose sources are in pairs with
 * its sources.
 */
export function shardMates(
  config: Pick<Shared, 'upstreams' | 'sources'>,
  upstream: string,
): readonly string[] {
  const leaders = leadersIn(config);
  const leader = leaders.get(upstream);
  return [...leaders].flatMap(([name, of]) => (of === leader ? [name] : [])).sort();
}

function pinOf({ upstreams }: Pick<Shared, 'upstreams'>, name: string): number | null {
  return (Object.hasOwn(upstreams, name) ? upstreams[name]?.shard : null) ?? null;
}

/** Computed for each source of each shard, and constant for a config. */
const known = new WeakMap<Shared['upstreams'], ReadonlyMap<string, string>>();

function leadersIn(config: Pick<Shared, 'upstreams' | 'sources'>): ReadonlyMap<string, string> {
  return known.getOrInsertComputed(config.upstreams, () => leadersOf(config));
}

/**
 * By upstream, the leader from whose name its shard is computed: the first by name of those with its client; for a
 * successor's upstream, the leader of the predecessor's upstream. An upstream that succeeds several follows the first
 * by name, and so do the others.
 */
function leadersOf({
  upstreams,
  sources,
}: Pick<Shared, 'upstreams' | 'sources'>): ReadonlyMap<string, string> {
  const inOrder = Object.entries(upstreams).sort(([a], [b]) => (a < b ? -1 : 1));
  const clients = Map.groupBy(inOrder, ([, settings]) => clientOf(settings));
  const first = new Map(
    [...clients.values()].flatMap((same) => same.map(([name]) => [name, same[0]?.[0] ?? name])),
  );
  const pairs = Object.values(sources).flatMap(({ settings, succeeds }) => {
    const old = succeeds && sources[succeeds.source]?.settings.upstream;
    const [from, to] = [first.get(settings.upstream), first.get(old ?? '')];
    return from === undefined || to === undefined || from === to ? [] : [{ from, to }];
  });
  const groups = new Map([...first.values()].map((name) => [name, new Set([name])]));
  for (const { from, to } of pairs) {
    const [one, other] = [groups.get(from), groups.get(to)];
    if (one === undefined || other === undefined || one === other) continue;
    for (const name of other) groups.set(name, one.add(name));
  }
  const leaderOf = (name: string) => {
    const group = [...(groups.get(name) ?? [name])].sort();
    // The oldest API; with pairs in opposite directions there is none.
    return group.find((one) => pairs.every(({ from }) => from !== one)) ?? group[0] ?? name;
  };
  return new Map(Array.from(first, ([name, of]) => [name, leaderOf(of)] as const));
}

function numberOf(name: string): number {
  return createHash('sha256').update(name).digest().readUInt32BE();
}

function clientOf(settings: UpstreamSettings): string {
  return JSON.stringify([upstreamDigest(settings), settings.auth.api_key?.reveal() ?? null]);
}

function entriesOf<T>(
  all: Readonly<Record<string, T>>,
  requested: (name: string, one: T) => boolean,
): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(all).filter(([name, one]) => requested(name, one)));
}

function sinkIn(
  sink: ConfiguredSink,
  shard: number,
  others: readonly number[] = [],
): ConfiguredSink {
  const own = sink.definition.own?.(sink.settings) ?? null;
  if (own === null) return sink;
  const { key, shardKey, othersKey, shardSeparator = '' } = own;
  const given = String(sink.settings[key] ?? '');
  const namedFor = (one: number) =>
    given.includes(placeholder)
      ? given.replaceAll(placeholder, String(one))
      : `${given}${given === '' ? '' : shardSeparator}${one}`;
  const settings = {
    ...sink.settings,
    ...(shardKey !== undefined && { [shardKey]: shard }),
    ...(othersKey !== undefined && {
      [othersKey]: Object.fromEntries(others.map((one) => [one, namedFor(one)])),
    }),
    [key]: namedFor(shard),
  };
  return { ...sink, settings };
}
