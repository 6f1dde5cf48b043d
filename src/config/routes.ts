// The `routes` of a config: names must exist, filters must parse and use attributes that events have, and redactions
// must reach their fields. A source or sink without a route is allowed and reported as a notice, because it may be an
// oversight.

import type { Route } from '../contracts/index.ts';
import { filterParts, hint } from '../tools/index.ts';
import { parseBlock, shown, withoutReferences } from './block.ts';
import { classesOf, isNoFlag, pathFlaw, pathText, valueFlaw } from './event-paths.ts';
import type { Flaws, Path } from './flaws.ts';
import { checkMasked, type RouteAt } from './masks.ts';
import type { Section, WrittenBlock } from './section.ts';
import { routeBlock } from './shape.ts';
import { type ConfiguredSink, writesOriginal } from './sinks.ts';
import type { ConfiguredSource } from './sources.ts';
import type { WrittenValue } from './written.ts';

/** The sources and sinks of routes. */
export interface Ends {
  readonly sources: Section<ConfiguredSource>;
  readonly sinks: Section<ConfiguredSink>;
}

/** Reads all routes; none if the key is absent. */
export function readRoutes(
  written: WrittenValue | undefined,
  flaws: Flaws,
): readonly WrittenBlock<Route>[] {
  if (written === undefined || written.broken || written.value === null) return [];
  if (!Array.isArray(written.value)) {
    flaws.add(written.at, ['routes'], `expected a list of routes, found ${shown(written)}`);
    return [];
  }
  return Array.from(written.children?.values() ?? [], (one, index) => {
    const path = ['routes', index];
    const settings = parseBlock(routeBlock, { written: one, path }, flaws) ?? null;
    return { written: one, path, settings };
  });
}

/** Reports names that do not exist, and parts of a route that its sources or sinks do not have. */
export function checkRoutes(
  routes: readonly WrittenBlock<Route>[],
  ends: Ends,
  flaws: Flaws,
): void {
  for (const { written, path, settings: route } of routes) {
    checkNames(written, { path, key: 'from', what: 'source', names: ends.sources }, flaws);
    checkNames(written, { path, key: 'to', what: 'sink', names: ends.sinks }, flaws);
    if (route === null) continue;
    const sourcesOf = route.from.map((name) => ends.sources.entries.get(name)?.settings ?? null);
    const classes = [...new Set(sourcesOf.flatMap(classesOf))];
    checkFilter(route, { written, path, classes }, flaws);
    checkRedacted(route, { written, path, classes }, flaws);
    checkMasked(route, { written, path, classes }, flaws);
    checkRedaction(route, { written, path, sinks: ends.sinks }, flaws);
    checkPages(route, { written, path, sinks: ends.sinks }, flaws);
  }
}

/** Reports sources without a sink and sinks without a source. */
export function unroutedNotices(routes: readonly Route[], ends: Ends, flaws: Flaws): void {
  if (routes.length === 0) return;
  const from = new Set(routes.flatMap((route) => route.from));
  const to = new Set(routes.flatMap((route) => route.to));
  const report = (section: Section<unknown>, named: ReadonlySet<string>, what: string) => {
    for (const { name, written, path } of section.entries.values()) {
      if (!named.has(name)) flaws.add(written.keyAt, path, `no route names this ${what}`, 'notice');
    }
  };
  report(ends.sources, from, 'source: it is read, and no sink gets it');
  report(ends.sinks, to, 'sink: it gets nothing');
}

interface Names {
  readonly path: Path;
  readonly key: string;
  readonly what: string;
  readonly names: Section<unknown>;
}

/** Checks that the names of a list exist, separately from other keys, so that no error hides another. */
export function checkNames(
  route: WrittenValue,
  { path, key, what, names }: Names,
  flaws: Flaws,
): void {
  for (const [index, named] of route.children?.get(key)?.children ?? []) {
    const { value, template, at } = named;
    if (typeof value !== 'string' || names.entries.has(value)) continue;
    const near = template === null ? hint(value, names.names) : '';
    flaws.add(at, [...path, key, index], `unknown ${what} ${shown(named)}${near}`);
  }
}

/** Reports flaws of a filter for events of these sources. */
export function checkFilter(
  { where, from }: Pick<Route, 'where' | 'from'>,
  { written, path, classes }: RouteAt,
  flaws: Flaws,
): void {
  if (where === undefined) return;
  const at = written.children?.get('where') ?? written;
  const report = (what: string) =>
    flaws.add(at.at, [...path, 'where'], withoutReferences(what, at));
  try {
    const { paths, flags, comparisons } = filterParts(where);
    const wrong = new Set(paths.flatMap((one) => pathFlaw(one, classes, 'named') ?? []));
    for (const { path: read, value } of comparisons) {
      const what = read === 'source' ? sourceFlaw(value, from) : valueFlaw(read, value, classes);
      if (what !== null) wrong.add(what);
    }
    for (const what of wrong) report(what);
    const noFlag = flags.find((one) => isNoFlag(one, classes));
    if (wrong.size === 0 && noFlag !== undefined) {
      report(`${pathText(noFlag)} is neither true nor false; such as event.severity_id >= 3`);
    }
  } catch (error) {
    // The first line has the error; the rest repeats the expression.
    const [what = ''] = error instanceof Error ? error.message.split('\n') : [];
    const unknown = /^Unknown variable: (\w+)/.exec(what)?.[1];
    const near = unknown === undefined ? '' : hint(unknown, ['event', 'source', 'stream']);
    const meant = otherSyntax(where) ?? `${near}; such as event.severity_id >= 3`;
    report(`this is no CEL filter: ${what}${meant}`);
  }
}

/** The CEL operator for an operator of another language in a filter; null: none occurs. */
function otherSyntax(where: string): string | null {
  const code = where.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, '""');
  const words = { and: '&&', or: '||', not: '!' } as const;
  for (const [word, operator] of Object.entries(words)) {
    const found = new RegExp(`(?<![\\w.])${word}(?![\\w(.])`, 'i').exec(code)?.[0];
    if (found !== undefined) return `; CEL writes ${operator} for ${found}`;
  }
  if (/<>/.test(code)) return '; CEL writes != for <>';
  if (/(?<![=!<>])=(?![=~])/.test(code)) return '; CEL writes == for =';
  return /=~/.test(code) ? '; CEL writes text.matches("pattern") for =~' : null;
}

/** A source that is not on this route. CEL itself rejects values of other types. */
function sourceFlaw(value: unknown, from: readonly string[]): string | null {
  if (typeof value !== 'string' || from.includes(value)) return null;
  return `this route has no source ${JSON.stringify(value)}${hint(value, from)}`;
}

function checkRedacted(
  { redact = [] }: Route,
  { written, path, classes }: RouteAt,
  flaws: Flaws,
): void {
  const list = written.children?.get('redact');
  for (const [index, dotted] of redact.entries()) {
    const at = list?.children?.get(index) ?? written;
    const what = pathFlaw(dotted.split('.'), classes, 'each');
    if (what !== null) {
      flaws.add(at.at, [...path, 'redact', index], withoutReferences(what, at));
    }
  }
}

interface RouteTo {
  readonly written: WrittenValue;
  readonly path: Path;
  readonly sinks: Section<ConfiguredSink>;
}

/** Pages for a sink must be upstream's responses, or the archive proves nothing. */
function checkPages(route: Route, at: RouteTo, flaws: Flaws): void {
  const { written, path, sinks } = at;
  const takers = route.to.filter(
    (name) => sinks.entries.get(name)?.settings?.definition.takes === 'pages',
  );
  for (const key of ['where', 'redact', 'mask'] as const) {
    if (Object.keys(route[key] ?? {}).length === 0) continue;
    for (const name of new Set(takers)) {
      flaws.add(
        written.children?.get(key)?.keyAt ?? written.at,
        [...path, key],
        `the sink ${name} proves the responses of upstream, so it gets whole pages and no field can be removed or masked; ` +
          `give it a route of its own without ${key}`,
      );
    }
  }
}

function checkRedaction(route: Route, at: RouteTo, flaws: Flaws): void {
  const { written, path, sinks } = at;
  const changes = { redact: 'redacted', mask: 'masked' } as const;
  for (const key of ['redact', 'mask'] as const) {
    if (Object.keys(route[key] ?? {}).length === 0) continue;
    for (const name of new Set(route.to)) {
      const { format, definition } = sinks.entries.get(name)?.settings ?? {};
      if (format === undefined || definition?.takes === 'pages' || !writesOriginal(format))
        continue;
      flaws.add(
        written.children?.get(key)?.keyAt ?? written.at,
        [...path, key],
        `the sink ${name} writes records as upstream sent them (schema: original or raw_data: true), ` +
          `and those cannot be ${changes[key]}; change its format, or leave ${key} out`,
      );
    }
  }
}
