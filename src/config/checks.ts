// The relations between the blocks of a config: the second phase of reading, and the list of its checks. Each check adds
// its flaws and needs no other check, so their order has no meaning. A new check belongs into this list.

import { type Blocks, validParts } from './blocks.ts';
import type { Flaws } from './flaws.ts';
import { checkMasks } from './masks.ts';
import { checkParents } from './parents.ts';
import { plainSecretNotices } from './plain-secrets.ts';
import type { Surroundings } from './references.ts';
import { checkResidency } from './residency.ts';
import { checkRoutes, unroutedNotices } from './routes.ts';
import { reportShared } from './section.ts';
import { checkShards } from './shards.ts';
import { ignoredKeyNotices } from './sinks.ts';
import { checkUpstreams } from './sources.ts';
import { checkSuccession, checkSuccessorRoutes } from './succession.ts';
import { checkTlsFiles } from './tls-files.ts';
import { checkProxies } from './upstreams.ts';
import { checkWatch } from './watch.ts';

/** Adds the flaws, notices and ignored keys of a config whose blocks are read. */
export function checkBlocks(blocks: Blocks, configEnv: Surroundings, flaws: Flaws): void {
  const { tree, state, upstreams, sources, sinks } = blocks;
  const written = (key: string) => tree.children?.get(key);
  const routes = blocks.routes.flatMap(({ settings }) => settings ?? []);

  checkTlsFiles(blocks, configEnv, flaws);
  checkProxies(upstreams, configEnv, flaws);
  checkUpstreams(sources, upstreams, flaws);
  reportShared('source', sources, flaws);
  // Two sinks on one file interleave lines; two on one transactional id fence each other.
  reportShared('sink', sinks, flaws);
  checkParents(sources, flaws);
  checkSuccession(sources, flaws);
  checkSuccessorRoutes(routes, sources, flaws);
  checkRoutes(blocks.routes, { sources, sinks }, flaws);
  checkMasks(blocks.routes, { sinks, isMaskSet: written('mask') !== undefined }, flaws);
  checkResidency({ upstreams, ends: { sources, sinks }, routes }, flaws);
  checkWatch(written('watch'), sources, flaws);
  if (state?.kafka !== undefined) {
    const shards = written('state')?.children?.get('kafka')?.children?.get('shards');
    checkShards(
      { ...validParts(blocks), state: { kafka: state.kafka } },
      shards?.at ?? null,
      flaws,
    );
  }
  unroutedNotices(routes, { sources, sinks }, flaws);
  ignoredKeyNotices(sinks, flaws);
  plainSecretNotices(tree, flaws);
}
