// The moves that config and state know: when upstreams end, and the pairs of sources. For read-only commands: nothing
// is changed, and no upstream is contacted.

import { type Config, inShards, type UpstreamEnd } from '../../config/index.ts';
import type { PairReport } from '../../contracts/index.ts';
import { operatorOf } from '../../operator/index.ts';
import { planToLook } from '../../run/index.ts';
import { announcedOf, type State, type StoredUpstream, storedEnds } from '../../watch/index.ts';
import { whereItRuns } from './at-work.ts';

/** The ends of all upstreams of a config, and its pairs. */
export interface KnownMoves {
  readonly upstreams: readonly StoredUpstream[];
  readonly pairs: readonly PairReport[];
}

/** Reads the state of a config, or of its part; in Kafka where no process has it here. */
export async function knownMoves(config: Config): Promise<KnownMoves> {
  const stored = await storedOf(config);
  const plan = await planToLook(config);
  return { upstreams: storedEnds(stored, plan, Date.now()), pairs: stored.pairs };
}

/** When each upstream ends, by its config and the dates of responses that the state has. */
export async function knownEnds(config: Config): Promise<ReadonlyMap<string, UpstreamEnd>> {
  const parts = inShards(config).map(async (part) => {
    const { config: at } = whereItRuns(part);
    const [stored, plan] = [await storedOf(at), await planToLook(at)];
    return Array.from(plan.upstreams.values(), (client) => {
      return [client.name, client.endBy(announcedOf(stored, client))] as const;
    });
  });
  return new Map((await Promise.all(parts)).flat());
}

async function storedOf(config: Config): Promise<State> {
  return await operatorOf(config).status(({ facts }) => facts());
}
