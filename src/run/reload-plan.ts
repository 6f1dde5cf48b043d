// The plan of a config that is to run in place of another one. Upstreams that have not changed go
// on with the token and the limits that they have; for one that has, both begin anew, since a
// changed credential or ceiling must not meet what was learnt under the old one. Nothing is asked
// of anyone yet.

import type { Config } from '../config/config.ts';
import { planFrom, type WholePlan } from '../config/plan.ts';
import { openThrottles, type Throttles } from '../upstream/throttles.ts';
import { openTokens, type Tokens } from '../upstream/tokens.ts';
import { upstreamDigests } from './reload-changes.ts';
import type { BootTools } from './tools.ts';

/** What upstreams with one credential share. */
interface Shared {
  readonly tokens: Tokens;
  readonly throttles: Throttles;
}

/** What each upstream of a config shares with others, by its name. */
export type SharedByUpstream = ReadonlyMap<string, Shared>;

/** As a start makes it: one for all. */
export function sharedAtStart({ upstreams }: Config, tools: BootTools): SharedByUpstream {
  return new Map(Object.keys(upstreams).map((name) => [name, tools]));
}

/** What the upstreams of a config share that runs in place of `before`. */
export function sharedAfter(
  config: Config,
  before: { readonly config: Config; readonly shared: SharedByUpstream },
  tools: BootTools,
): SharedByUpstream {
  const known = new Map<string, Shared>();
  for (const [name, digest] of upstreamDigests(before.config)) {
    const shared = before.shared.get(name);
    if (shared !== undefined) known.set(digest, shared);
  }
  return new Map(
    Array.from(upstreamDigests(config), ([name, digest]) => {
      const shared = known.get(digest) ?? {
        tokens: openTokens(tools),
        throttles: openThrottles(tools),
      };
      known.set(digest, shared);
      return [name, shared];
    }),
  );
}

/**
 * Makes the plan, each upstream with what it shares. Throws an ExportError when a secret cannot be
 * read.
 */
export function planWith(config: Config, shared: SharedByUpstream, tools: BootTools): WholePlan {
  const without = { ...config, upstreams: {}, sources: {} };
  const { sinks, routes } = planFrom(without, tools);
  const parts = Array.from(
    Map.groupBy(Object.entries(config.upstreams), ([name]) => shared.get(name) ?? tools),
    ([{ tokens, throttles }, upstreams]) => {
      const names = new Set(upstreams.map(([name]) => name));
      const sources = Object.entries(config.sources).filter(([, { settings }]) =>
        names.has(settings.upstream),
      );
      const part = {
        ...config,
        upstreams: Object.fromEntries(upstreams),
        sources: Object.fromEntries(sources),
        sinks: {},
      };
      return planFrom(part, { ...tools, tokens, throttles });
    },
  );
  return {
    sources: parts.flatMap((part) => part.sources),
    sinks,
    routes,
    upstreams: new Map(parts.flatMap((part) => [...part.upstreams])),
  };
}
