// The `routes` of a config: names that must exist, filters that must parse, and redactions that must reach what they are
// to hide. A source or sink that no route names is allowed, and told as a notice, since it may be an oversight.

import { compileFilter, type Route } from '../../send/route.ts';
import { type BlockReading, parseBlock, shown } from './block.ts';
import type { Flaws, Path } from './flaws.ts';
import { hint } from './nearest.ts';
import type { Section } from './section.ts';
import { routeBlock } from './shape.ts';
import { type ConfiguredSink, writesOriginal } from './sinks.ts';
import type { ConfiguredSource } from './sources.ts';
import type { Written } from './written.ts';

/** What routes lead from and to. */
export interface Ends {
  readonly sources: Section<ConfiguredSource>;
  readonly sinks: Section<ConfiguredSink>;
}

/** Reads all routes; none where the key is left out. */
export function readRoutes(
  written: Written | undefined,
  ends: Ends,
  reading: BlockReading,
): readonly Route[] {
  if (written === undefined || written.broken || written.value === null) return [];
  if (!Array.isArray(written.value)) {
    reading.flaws.add(written.at, ['routes'], `expected a list of routes, found ${shown(written)}`);
    return [];
  }
  return [...(written.children?.values() ?? [])].flatMap((one, index) => {
    const path = ['routes', index];
    checkNames(one, { path, key: 'from', what: 'source', names: ends.sources }, reading);
    checkNames(one, { path, key: 'to', what: 'sink', names: ends.sinks }, reading);
    const route = parseBlock(routeBlock, { written: one, path }, reading)?.settings;
    if (route === undefined) return [];
    checkFilter(route, one, path, reading);
    checkRedaction(route, { written: one, path, sinks: ends.sinks }, reading);
    return [route];
  });
}

/** Tells of sources that lead nowhere and of sinks that get nothing. */
export function unroutedNotices(routes: readonly Route[], ends: Ends, notices: Flaws): void {
  if (routes.length === 0) return;
  const from = new Set(routes.flatMap((route) => route.from));
  const to = new Set(routes.flatMap((route) => route.to));
  for (const { name, written, path } of ends.sources.entries.values()) {
    if (from.has(name)) continue;
    notices.add(written.keyAt, path, 'no route names this source: it is read, and no sink gets it');
  }
  for (const { name, written, path } of ends.sinks.entries.values()) {
    if (to.has(name)) continue;
    notices.add(written.keyAt, path, 'no route names this sink: it gets nothing');
  }
}

interface Names {
  readonly path: Path;
  readonly key: 'from' | 'to';
  readonly what: string;
  readonly names: Section<unknown>;
}

/** Looked at apart from the route's other keys, so that one mistake does not hide another. */
function checkNames(
  route: Written,
  { path, key, what, names }: Names,
  { flaws }: BlockReading,
): void {
  for (const [index, named] of route.children?.get(key)?.children ?? []) {
    const { value, template, at } = named;
    if (typeof value !== 'string' || names.entries.has(value)) continue;
    const near = template === null ? hint(value, names.names) : '';
    flaws.add(at, [...path, key, index], `unknown ${what} ${shown(named)}${near}`);
  }
}

function checkFilter(route: Route, written: Written, path: Path, { flaws }: BlockReading): void {
  if (route.where === undefined) return;
  try {
    compileFilter(route.where, () => {});
  } catch (error) {
    const where = written.children?.get('where');
    // The first line says what is wrong; the rest repeats the expression, which may hold what a reference gave.
    const [what = ''] = error instanceof Error ? error.message.split('\n') : [];
    const detail = where?.template === null ? `: ${what}` : '';
    flaws.add(
      where?.at ?? written.at,
      [...path, 'where'],
      `this is no CEL expression${detail}; such as event.severity_id >= 3`,
    );
  }
}

function checkRedaction(
  route: Route,
  at: {
    readonly written: Written;
    readonly path: Path;
    readonly sinks: Section<ConfiguredSink>;
  },
  { flaws }: BlockReading,
): void {
  if (!route.redact?.length) return;
  const { written, path, sinks } = at;
  for (const name of new Set(route.to)) {
    const format = sinks.entries.get(name)?.settings?.format;
    if (format === undefined || !writesOriginal(format)) continue;
    flaws.add(
      written.children?.get('redact')?.keyAt ?? written.at,
      [...path, 'redact'],
      `the sink ${name} writes records as upstream sent them (schema: original or raw_data: true), ` +
        'and those cannot be redacted; change its format, or leave redact out',
    );
  }
}
