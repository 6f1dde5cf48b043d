// Several upstreams as in edge.ts, for deployments in which each has a shard of its own.

import { readConfig } from '../../src/config/config.ts';
import { shardsOf } from '../../src/config/shards.ts';
import { anEdge } from './edge.ts';

/**
 * Upstreams of these names, each with so many audit events; the `upstreams` block that names them, and the environment of a
 * config with it, which may need more.
 */
export async function someEdges(
  names: readonly string[],
  events: number,
  more: Readonly<Record<string, string>> = {},
) {
  const edges = await Promise.all(names.map((name) => anEdge(events, name)));
  const env: Readonly<Record<string, string>> = Object.assign(
    {},
    more,
    ...edges.map((one) => one.env),
  );
  /** How many shards there have to be in a config until each upstream has its own: which one follows from its port. */
  const apart = (config: (shards: number) => string, shards = names.length): number =>
    shardsOf(readConfig(config(shards), { env })).length === names.length
      ? shards
      : apart(config, shards + 1);
  return {
    ...{ env, apart },
    upstreams: ['upstreams:', ...edges.map(({ entry }) => entry)].join('\n'),
    /** The requests on a path that each has answered. */
    requests: (path: string) =>
      edges.map(({ sandbox }) => sandbox.control.requests()[path]?.requests ?? 0),
    /** So many events more at each. */
    grow: (count: number) => {
      for (const { sandbox } of edges) sandbox.control.grow('/v1/audit/events', count);
    },
  };
}
