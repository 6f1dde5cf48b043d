// The relations between the blocks of a config: the second phase of reading, and the list of its checks. Each check adds
// its flaws and needs no other check, so their order has no meaning. A new check belongs into this list.

import type { Route } from '../contracts/index.ts';
import type { UpstreamSettings } from '../upstream/index.ts';
import { type Blocks, validParts } from './blocks.ts';
import type { Flaws, Path } from './flaws.ts';
import { checkMasks } from './masks.ts';
import { checkParents } from './parents.ts';
import type { Surroundings } from './references.ts';
import { checkNames, checkRoutes, type Ends, unroutedNotices } from './routes.ts';
import { reportShared, type Section } from './section.ts';
import { checkShards } from './shards.ts';
import { ignoredKeyNotices } from './sinks.ts';
import { type ConfiguredSource, checkUpstreams } from './sources.ts';
import { checkSuccession, checkSuccessorRoutes } from './succession.ts';
import { checkTlsFiles } from './tls-files.ts';
import { checkProxies } from './upstreams.ts';
import type { WrittenValue } from './written.ts';

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

// Finds secrets in plain text, which every reader of the file, a backup or a repository can see, and text that looks
// like a failed reference, such as "$SECRET".

/** Keys whose values are secrets; a client id, a proxy's address or a mode is none. */
const secretKeys =
  /secret|token|password|api_key|credential|signing_key$|^key$|authorization|cookie/i;
const meantAsReference = /^(\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|\{\{.*\}\}|<[^<>]+>)$/;

/** Adds a notice for each. */
function plainSecretNotices(written: WrittenValue, flaws: Flaws, path: Path = []): void {
  for (const [key, child] of written.children ?? []) {
    plainSecretNotices(child, flaws, [...path, key]);
  }
  const { isSecret, template, value, at } = written;
  if (!isSecret || template !== null || typeof value !== 'string') return;
  const name = String(path.findLast((step) => typeof step === 'string') ?? '');
  const next = 'write ${env:NAME}, ${file:/path} or ${exec:COMMAND}';
  if (meantAsReference.test(value)) {
    flaws.add(at, path, `this text is the secret itself and no reference; ${next}`, 'notice');
  } else if (secretKeys.test(name)) {
    flaws.add(at, path, `this secret is plain text; ${next}`, 'notice');
  }
}

// Residency labels: a route must not lead from an upstream with one label to a sink with another. An upstream or sink
// without a label allows every route.

/** Reports each sink that gets events of an upstream with a different label. Without routes, every sink gets all. */
function checkResidency(
  {
    upstreams,
    ends,
    routes,
  }: {
    readonly upstreams: Section<UpstreamSettings>;
    readonly ends: Ends;
    readonly routes: readonly Route[];
  },
  flaws: Flaws,
): void {
  for (const sink of ends.sinks.entries.values()) {
    const there = sink.settings?.residency;
    if (there === undefined) continue;
    for (const source of ends.sources.entries.values()) {
      const { upstream } = source.settings?.settings ?? {};
      const here = upstreams.entries.get(upstream ?? '')?.settings?.residency;
      if (upstream === undefined || here === undefined || here === there) continue;
      const isRouted =
        routes.length === 0 ||
        routes.some(({ from, to }) => from.includes(source.name) && to.includes(sink.name));
      if (!isRouted) continue;
      const written = sink.written.children?.get('residency') ?? sink.written;
      flaws.add(
        written.at,
        [...sink.path, 'residency'],
        `this sink has residency ${there}, and gets events of source ${source.name} from upstream ${upstream} with residency ${here}; remove the route from ${source.name} to ${sink.name}, or correct a label`,
      );
    }
  }
}

// The `watch` of a config: whose changes are checked against which audit trails. Names must exist, and belong to
// sources with changes, or with events.

/** Reports names that do not exist, and sources on the wrong side. */
function checkWatch(
  written: WrittenValue | undefined,
  sources: Section<ConfiguredSource>,
  flaws: Flaws,
): void {
  const at = written?.children?.get('drift');
  if (at === undefined) return;
  const path = ['watch', 'drift'];
  for (const key of ['changes', 'trail'] as const) {
    checkNames(at, { path, key, what: 'source', names: sources }, flaws);
    for (const [index, { at: where, value }] of at.children?.get(key)?.children ?? []) {
      const source = sources.entries.get(String(value))?.settings ?? null;
      if (source === null) continue;
      const isCollection = source.definition.collection !== undefined;
      if (isCollection === (key === 'changes')) continue;
      const what =
        key === 'changes'
          ? 'this source reports no configuration changes'
          : 'this source is no trail of events';
      flaws.add(where, [...path, key, index], what);
    }
  }
}
