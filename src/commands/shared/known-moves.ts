// What config and state know of a move: when upstreams end, and the pairs of sources. For commands
// that look: nothing is changed, and no upstream is asked.

import type { Config } from '../../config/config.ts';
import { inShards } from '../../config/shards.ts';
import type { PairReport } from '../../contracts/succession.ts';
import { planToLook } from '../../run/plan-to-look.ts';
import type { UpstreamEnd } from '../../upstream/ends.ts';
import type { StoredUpstream } from '../../watch/standing.ts';
import { readState, type State } from '../../watch/state.ts';
import { announcedOf, storedEnds } from '../../watch/stored.ts';
import { isAfar, withCopy } from './afar.ts';
import { whereItRuns } from './at-work.ts';

/** The ends of all upstreams of a config, and its pairs. */
export interface KnownMoves {
  readonly upstreams: readonly StoredUpstream[];
  readonly pairs: readonly PairReport[];
  /** From when on records of successors are compared, epoch milliseconds, by source. */
  readonly comparedFrom: ReadonlyMap<string, number>;
}

/** Reads the state of a config, or of its part; in Kafka where no process has it here. */
export async function knownMoves(config: Config): Promise<KnownMoves> {
  const stored = await storedOf(config);
  const plan = await planToLook(config);
  const comparedFrom = plan.sources.flatMap(({ name, succeeds, streams }) => {
    if (succeeds === undefined) return [];
    const from = streams.flatMap(
      (stream) => stored.streams.get(stream.name)?.checkpoint?.standingBefore ?? [],
    );
    return from.length === 0 ? [] : [[name, Math.max(...from)] as const];
  });
  return {
    ...{ upstreams: storedEnds(stored, plan, Date.now()), pairs: stored.pairs },
    comparedFrom: new Map(comparedFrom),
  };
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
  const look = ({ state }: Config) => readState(state.dir);
  return isAfar(config) ? await withCopy(config, look) : look(config);
}
