// The part of a state that belongs to each shard, when a state is split into shards or joined from them.

import { type Config, shardKeyOf, shardOfStream, shardsOf } from '../config/index.ts';
import { isObject, type Json } from '../contracts/index.ts';
import { withBlocksMoved } from '../fetch/index.ts';
import { lookInto } from '../hold/index.ts';
import type { Regrouping, Takes } from '../hold/open.ts';
import { driftKey } from '../pipeline.ts';

/** A config by which a state is carried. */
export type CarryConfig = Pick<Config, 'state' | 'sources' | 'sinks' | 'upstreams' | 'watch'>;

/** The part for a shard. Sources that are not in the config go to the first shard with work. */
export function partFor(config: CarryConfig, shard: number) {
  const [first = 0] = shardsOf(config);
  const isHere = (stream: string) => (shardOfStream(config, stream) ?? first) === shard;
  return { keeps: isHere, sends: isHere, counts: shard === first };
}

/**
 * The joined content of the shards in these directories, by number: all events stored for sinks, and the facts about
 * each source from its own shard, or from the first shard that has any.
 */
export function carriedParts(config: CarryConfig, dirs: ReadonlyMap<number, string>) {
  const having = new Map<string, number[]>();
  for (const [shard, dir] of dirs) {
    for (const { stream } of lookInto(dir, [], ({ streams }) => streams.checkpoints())) {
      const shards = having.getOrInsert(shardKeyOf(stream), []);
      if (!shards.includes(shard)) shards.push(shard);
    }
  }
  const ownerOf = (stream: string) => {
    const own = shardOfStream(config, stream);
    const shards = having.get(shardKeyOf(stream)) ?? [];
    return own === null || (!shards.includes(own) && shards.length > 0) ? (shards[0] ?? null) : own;
  };
  return [...dirs].map(([shard, dir]) => {
    const keeps = (stream: string) => (ownerOf(stream) ?? shard) === shard;
    return { dir, keeps, sends: () => true };
  });
}

/** How the config's sinks and streams are carried; `isWhole`: from one database, whose notes hold for each part. */
export function carrying(
  { sinks, watch }: CarryConfig,
  { isWhole }: { readonly isWhole: boolean },
): Pick<Regrouping, 'sinks' | 'markOf' | 'checkpoint'> {
  const takes = Object.entries(sinks).map(
    ([name, { definition }]) => [name, definition.takes ?? 'events'] as const,
  );
  const drift = watch.drift === null ? [] : [[driftKey, 'all'] as const];
  return {
    sinks: new Map<string, Takes>([...takes, ...drift]),
    markOf: (name, marks) => {
      const sink = Object.hasOwn(sinks, name) ? sinks[name] : undefined;
      if (sink === undefined || marks.length === 0) return null;
      const hasOwn = (sink.definition.own?.(sink.settings) ?? null) !== null;
      // A part with its own objects starts there.
      if (hasOwn) return sink.definition.movedMark?.(marks) ?? null;
      return isWhole ? (marks[0] ?? null) : null;
    },
    checkpoint: (stream, held, by) =>
      stream === driftKey ? withoutPlace(held) : by === 0 ? held : withBlocksMoved(held, by),
  };
}

/** A mark without its position: the sink resumes at its stored position. */
function withoutPlace(held: Json): Json {
  return isObject(held) ? { ...held, next: 0 } : held;
}
