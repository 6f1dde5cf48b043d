// The blocks of a config, each parsed by its declaration alone: the first phase of reading. The relations between blocks
// are in `checks.ts`. Invariant: an invalid block keeps its name and is null, and the other blocks are read as well, so no
// error hides another.

import type { z } from 'zod';
import type { DriftSettings, Route } from '../contracts/index.ts';
import { unknownKey } from '../tools/index.ts';
import type { UpstreamSettings } from '../upstream/index.ts';
import { parseBlock } from './block.ts';
import type { Flaws } from './flaws.ts';
import type { Surroundings } from './references.ts';
import { readRoutes } from './routes.ts';
import { readSection, type Section, type WrittenBlock } from './section.ts';
import {
  logBlock,
  maskBlock,
  shutdownBlock,
  stateBlock,
  statusBlock,
  topKeys,
  watchBlock,
} from './shape.ts';
import { type ConfiguredSink, readSinks, withCompanions } from './sinks.ts';
import { type ConfiguredSource, readSources } from './sources.ts';
import { withAuditRecords, withSuccessors } from './succession.ts';
import { readUpstreams } from './upstreams.ts';
import type { WrittenValue } from './written.ts';

/** The blocks of a config; null or undefined: absent, or invalid. */
export interface Blocks {
  /** The whole config as written. */
  readonly tree: WrittenValue;
  readonly state: z.output<typeof stateBlock> | undefined;
  readonly upstreams: Section<UpstreamSettings>;
  /** A successor has the records of its predecessor. */
  readonly sources: Section<ConfiguredSource>;
  readonly sinks: Section<ConfiguredSink>;
  /** A successor has the routes of its predecessor. */
  readonly routes: readonly WrittenBlock<Route>[];
  readonly mask: z.output<typeof maskBlock>;
  readonly watch: z.output<typeof watchBlock> | undefined;
  readonly status: z.output<typeof statusBlock>;
  readonly shutdown: z.output<typeof shutdownBlock> | undefined;
  readonly log: z.output<typeof logBlock> | undefined;
}

/** Reads all blocks; null: the file is no mapping. */
export function readBlocks(
  tree: WrittenValue,
  configEnv: Surroundings,
  flaws: Flaws,
): Blocks | null {
  if (!isMapping(tree, flaws)) return null;
  const at = (key: (typeof topKeys)[number]) => ({ written: tree.children?.get(key), path: [key] });
  const upstreams = readUpstreams(readSection(tree, 'upstreams', flaws), configEnv, flaws);
  const sources = withAuditRecords(readSources(readSection(tree, 'sources', flaws), flaws));
  return {
    tree,
    state: parseBlock(stateBlock, at('state'), flaws),
    upstreams,
    sources,
    sinks: readSinks(readSection(tree, 'sinks', flaws), flaws),
    routes: withSuccessors(readRoutes(at('routes').written, flaws), sources),
    mask: parseBlock(maskBlock, at('mask'), flaws),
    watch: parseBlock(watchBlock, at('watch'), flaws),
    status: parseBlock(statusBlock, at('status'), flaws),
    shutdown: parseBlock(shutdownBlock, at('shutdown'), flaws),
    log: parseBlock(logBlock, at('log'), flaws),
  };
}

/** False: the file has no keys. Reports unknown keys. */
function isMapping({ value, children, at, broken }: WrittenValue, flaws: Flaws): boolean {
  if (children === null || Array.isArray(value)) {
    const isEmpty = value === null || value === undefined;
    const what = isEmpty ? 'the config is empty' : 'a config is a mapping';
    const needed = 'upstreams, sources and sinks';
    if (!broken) flaws.add(isEmpty ? null : at, [], `${what}; it needs ${needed}`);
    return false;
  }
  for (const [key, { keyAt }] of children) {
    if (topKeys.some((known) => known === key)) continue;
    flaws.add(keyAt, [String(key)], unknownKey(String(key), topKeys));
  }
  return true;
}

/** The valid sources, sinks, upstreams and routes of a config, with the sinks that accompany others. */
export function validParts({ upstreams, sources, sinks, routes, mask, watch }: Blocks) {
  const valid = routes.flatMap(({ settings, written }): Route[] => {
    if (settings === null) return [];
    // An unknown filter cannot be compiled.
    const isUnset = written.children?.get('where')?.unset != null;
    const route = isUnset ? { ...settings, where: undefined } : settings;
    return [route.mask === undefined ? route : { ...route, maskKey: mask?.key }];
  });
  const drift = watch?.drift;
  return {
    upstreams: validIn(upstreams),
    sources: validIn(sources),
    ...withCompanions(validIn(sinks), valid),
    watch: { drift: drift ? driftOf(drift) : null },
  };
}

function driftOf({
  within: withinMs,
  ...drift
}: NonNullable<NonNullable<Blocks['watch']>['drift']>): DriftSettings {
  return { ...drift, withinMs };
}

function validIn<T>({ entries }: Section<T>): Readonly<Record<string, T>> {
  const valid = [...entries.values()].flatMap(({ name, settings }): [string, T][] =>
    settings === null ? [] : [[name, settings]],
  );
  return Object.fromEntries(valid);
}
