// What of a state belongs to which shard, when it is carried into several or out of them.

import { type Config, shardKeyOf, shardOfStream, shardsOf } from '../config/index.ts';
import { isObject, type Json } from '../contracts/index.ts';
import { driftKey } from '../drift/index.ts';
import { withBlocksMoved } from '../fetch/index.ts';
import { lookInto } from '../hold/index.ts';
import type { Regrouping, Takes } from '../hold/open.ts';

/** A config by which a state is carried. */
export type CarryConfig = Pick<Config, 'state' | 'sources' | 'sinks' | 'upstreams' | 'watch'>;

/** What of a state goes into a shard; of sources that the config does not have, into the first with work. */
export function partFor(config: CarryConfig, shard: number) {
  const [first = 0] = shardsOf(config);
  const isHere = (stream: string) => (shardOfStream(config, stream) ?? first) === shard;
  return { keeps: isHere, sends: isHere, counts: shard === first };
}

/**
 * What comes out of the shards in these directories, by their numbers: all that is held for sinks, and of each source
 * what is known of it in its own shard; where that has nothing, in the first that has.
 */
export function carriedParts(config: CarryConfig, dirs: ReadonlyMap<number, string>) {
  const having = new Map<string, number[]>();
  for (const [shard, dir] of dirs) {
    for (const { stream } of lookInto(dir, [], ({ streams }) => streams.checkpoints())) {
      const shards = having.get(shardKeyOf(stream)) ?? [];
      having.set(shardKeyOf(stream), shards);
      if (!shards.includes(shard)) shards.push(shard);
    }
  }
  const keeper = (stream: string) => {
    const own = shardOfStream(config, stream);
    const shards = having.get(shardKeyOf(stream)) ?? [];
    return own === null || (!shards.includes(own) && shards.length > 0) ? (shards[0] ?? null) : own;
  };
  return [...dirs].map(([shard, dir]) => {
    const keeps = (stream: string) => (keeper(stream) ?? shard) === shard;
    return { dir, keeps, sends: () => true };
  });
}

/** How the config's sinks and streams are carried; `isWhole`: from one database, whose notes hold for each part of it. */
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
      // What a shard has for itself begins there.
      if (hasOwn) return sink.definition.movedMark?.(marks) ?? null;
      return isWhole ? (marks[0] ?? null) : null;
    },
    checkpoint: (stream, held, by) =>
      stream === driftKey ? withoutPlace(held) : by === 0 ? held : withBlocksMoved(held, by),
  };
}

/** It goes on at its position. */
function withoutPlace(held: Json): Json {
  return isObject(held) ? { ...held, next: 0 } : held;
}
