// `succeeds` of a source: the conditions on the two sources of a pair, and the OCSF classes and routes of a successor.
// Invariants: an impossible pair is reported before anything runs; a successor reaches no fewer sinks than its
// predecessor.

import type { Route, Succession } from '../contracts/index.ts';
import { type ClassName, classNames } from '../normalise/index.ts';
import { hint } from '../tools/index.ts';
import { locate } from './block.ts';
import { auditClasses } from './event-paths.ts';
import type { Flaws } from './flaws.ts';
import { type NamedBlock, Section, type WrittenBlock } from './section.ts';
import type { ConfiguredSource } from './sources.ts';

/** Reports flaws of the pairs of a config. */
export function checkSuccession(sources: Section<ConfiguredSource>, flaws: Flaws): void {
  const successors = new Map<string, string>();
  for (const entry of sources.entries.values()) {
    const succeeds = entry.settings?.succeeds;
    if (succeeds === undefined) continue;
    const flaw = flawOf(entry, { of: succeeds.source, sources, successors });
    successors.set(succeeds.source, successors.get(succeeds.source) ?? entry.name);
    if (flaw === null) continue;
    const { found } = locate(entry.written, ['succeeds', 'source']);
    flaws.add(found.at, [...entry.path, 'succeeds', 'source'], flaw);
  }
}

function flawOf(
  { name, settings }: NamedBlock<ConfiguredSource>,
  {
    of,
    sources,
    successors,
  }: {
    readonly of: string;
    readonly sources: Section<ConfiguredSource>;
    readonly successors: ReadonlyMap<string, string>;
  },
): string | null {
  const old = sources.entries.get(of);
  if (old === undefined) {
    return `unknown source ${JSON.stringify(of)}${hint(of, sources.names)}; name a source, or remove succeeds if ${name} is cut over`;
  }
  if (of === name) return 'a source cannot succeed itself; name the source of the API that ends';
  const cycle = wayBack(name, sources);
  if (cycle !== null) return `${cycle.join(' succeeds ')}: that is a cycle; remove one succeeds`;
  const other = successors.get(of);
  if (other !== undefined) {
    return `${other} succeeds ${of} already; a source has one successor, remove one succeeds`;
  }
  if (old.settings === null || settings === null) return null;
  const [before, after] = [kindOf(old.settings), kindOf(settings)];
  if (before === 'deliveries' || after === 'deliveries') {
    return 'deliveries are pushed and cannot be compared; succeeds is for lists, collections and records read per parent';
  }
  if (before === after) return null;
  return `${of} reads ${before} and ${name} reads ${after}; both sources of a pair read the same kind`;
}

/**
 * The sources; a successor of audit events is parsed as audit events unless its config sets `records`: both APIs have
 * the same fields in different spellings.
 */
export function withAuditRecords(sources: Section<ConfiguredSource>): Section<ConfiguredSource> {
  return new Section(
    Array.from(sources.entries.values(), (entry) => {
      const { settings } = entry;
      const isAudit = settings !== null && isOfAudit(settings, sources);
      if (settings === null || !isAudit || settings.settings.records === 'audit') return entry;
      const read = { ...settings.settings, records: 'audit' };
      return { ...entry, settings: { ...settings, settings: read, inheritsRecords: true } };
    }),
  );
}

/** A source without `records` has those of its predecessor. */
function isOfAudit(source: ConfiguredSource, sources: Section<ConfiguredSource>): boolean {
  const passed = new Set<ConfiguredSource>();
  for (let at: ConfiguredSource | null | undefined = source; at && !passed.has(at); ) {
    const { definition, settings }: ConfiguredSource = at;
    const { records, mapping } = definition.reading(settings);
    if (records === 'audit') return true;
    const isOpen = Object.hasOwn(definition.fields, 'records') && settings.records === undefined;
    const old: Succession | undefined = at.succeeds;
    if (!isOpen || mapping !== undefined || old === undefined) return false;
    passed.add(at);
    at = sources.entries.get(old.source)?.settings;
  }
  return false;
}

/** OCSF classes of the events of both sources of a pair, by name. */
export interface ClassChange {
  readonly old: readonly ClassName[];
  readonly new: readonly ClassName[];
}

/** The change of classes at the cutover to a successor; null: none, or it has no pair. */
export function classChange(
  sources: Readonly<Record<string, ConfiguredSource>>,
  successor: string,
): ClassChange | null {
  const source = sources[successor];
  const old = sources[source?.succeeds?.source ?? ''];
  if (source === undefined || old === undefined) return null;
  const change = { old: mainClasses(old), new: mainClasses(source) };
  return change.old.join() === change.new.join() ? null : change;
}

/** A change of classes as one sentence, with the next step. */
export function classChangeText(change: ClassChange): string {
  const step = change.old === auditClasses ? 'records: audit or mapping' : 'mapping';
  return `the cutover changes the OCSF class of its events from ${change.old.join(', ')} to ${change.new.join(', ')}; set ${step}, or change rules that name a class`;
}

/** Classes of events that are no conditions; a record without its class's required fields is a Base Event. */
function mainClasses({ definition, settings }: ConfiguredSource): readonly ClassName[] {
  const { mapping, records } = definition.reading(settings);
  const named = classNames.filter((name) => name === mapping?.class);
  if (named.length > 0) return named;
  if (definition.collection !== undefined) return ['entity_management'];
  return records === 'audit' ? auditClasses : ['base_event'];
}

function kindOf({ definition, settings }: ConfiguredSource): string {
  if (definition.parents?.(settings) !== undefined) return 'something of each parent';
  if (definition.collection?.(settings) !== undefined) return 'a collection';
  return definition.list?.(settings) === undefined ? 'deliveries' : 'a list';
}

/** The sources on a path from one to itself; null: there is no cycle. */
function wayBack(name: string, sources: Section<ConfiguredSource>): readonly string[] | null {
  const way = [name];
  for (;;) {
    const next = sources.entries.get(way.at(-1) ?? '')?.settings?.succeeds?.source;
    if (next === undefined) return null;
    if (next === name) return [...way, name];
    if (way.includes(next)) return null;
    way.push(next);
  }
}

/** The routes; a source that no route names uses those of its predecessor. */
export function withSuccessors(
  routes: readonly WrittenBlock<Route>[],
  sources: Section<ConfiguredSource>,
): readonly WrittenBlock<Route>[] {
  const named = new Set(routes.flatMap(({ settings }) => settings?.from ?? []));
  const unnamed = sources.names.filter((name) => !named.has(name));
  const routedAs = new Map(unnamed.map((name) => [name, predecessorIn(named, name, sources)]));
  return routes.map((route) => {
    const { settings } = route;
    if (settings === null) return route;
    const added = unnamed.filter((name) => settings.from.includes(routedAs.get(name) ?? ''));
    return { ...route, settings: { ...settings, from: [...settings.from, ...added] } };
  });
}

/** The nearest predecessor that a route names; null: none. */
function predecessorIn(
  named: ReadonlySet<string>,
  name: string,
  sources: Section<ConfiguredSource>,
): string | null {
  const passed = new Set<string>();
  for (let at: string | undefined = name; at !== undefined && !passed.has(at); ) {
    if (named.has(at)) return at;
    passed.add(at);
    at = sources.entries.get(at)?.settings?.succeeds?.source;
  }
  return null;
}

/** Reports successors that reach fewer sinks than their predecessors. */
export function checkSuccessorRoutes(
  routes: readonly Route[],
  sources: Section<ConfiguredSource>,
  flaws: Flaws,
): void {
  for (const { name, settings, written, path } of sources.entries.values()) {
    const old = settings?.succeeds?.source;
    if (old === undefined) continue;
    const missing = [...sinksOf(routes, old).difference(sinksOf(routes, name))];
    if (missing.length === 0) continue;
    const { found } = locate(written, ['succeeds', 'source']);
    flaws.add(
      found.at,
      [...path, 'succeeds', 'source'],
      `${old} is routed to ${missing.join(', ')} and ${name} is not; route it there, or name ${name} in no route: it then goes where ${old} goes`,
    );
  }
}

function sinksOf(routes: readonly Route[], source: string): Set<string> {
  return new Set(routes.flatMap(({ from, to }) => (from.includes(source) ? to : [])));
}
