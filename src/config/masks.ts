// The masks of routes: paths, key, and the ways on which unmasked values would pass. Invariant: no config is accepted in
// which a mask has no effect, because an operator relies on it.

import type { Route } from '../contracts/index.ts';
import type { ClassName } from '../normalise/index.ts';
import { withoutReferences } from './block.ts';
import { maskFlaw, pathFlaw } from './event-paths.ts';
import type { Flaws, Path } from './flaws.ts';
import type { Section, WrittenBlock } from './section.ts';
import type { ConfiguredSink } from './sinks.ts';
import type { WrittenValue } from './written.ts';

/** A route in the config. */
export interface RouteAt {
  readonly written: WrittenValue;
  readonly path: Path;
  /** Of the events on this route. */
  readonly classes: readonly ClassName[];
}

/** Reports flaws of the masks of one route. */
export function checkMasked(
  { mask = {}, redact = [] }: Route,
  { written, path, classes }: RouteAt,
  flaws: Flaws,
): void {
  const block = written.children?.get('mask');
  for (const dotted of Object.keys(mask)) {
    const at = block?.children?.get(dotted) ?? written;
    const steps = dotted.split('.');
    const other = redact.find((one) => isBelow(dotted, one) || isBelow(one, dotted));
    const what =
      pathFlaw(steps, classes, 'each') ??
      maskFlaw(steps, classes) ??
      (other === undefined
        ? null
        : `${dotted} is masked, and redact removes ${other}; remove one of them`);
    if (what !== null) {
      flaws.add(at.keyAt ?? at.at, [...path, 'mask', dotted], withoutReferences(what, at));
    }
  }
}

function isBelow(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}.`);
}

/** Reports masks without a key, masks that an earlier route bypasses, and archives beside a mask. */
export function checkMasks(
  routes: readonly WrittenBlock<Route>[],
  { sinks, isMaskSet }: { readonly sinks: Section<ConfiguredSink>; readonly isMaskSet: boolean },
  flaws: Flaws,
): void {
  const valid = routes.flatMap(({ settings }) => settings ?? []);
  const masked = new Set<string>();
  for (const [index, { written, path: ofRoute, settings: route }] of routes.entries()) {
    const masks = Object.values(route?.mask ?? {});
    if (route === null || masks.length === 0) continue;
    for (const name of route.from) masked.add(name);
    const at = written.children?.get('mask')?.keyAt ?? written.at;
    const path = [...ofRoute, 'mask'];
    if (masks.includes('hash') && !isMaskSet) {
      flaws.add(
        at,
        path,
        'the mask hash needs a key: set mask.key, such as mask: { key: "${file:/run/secrets/mask-key}" }',
      );
    }
    const bypass = bypassOf(
      route,
      routes.slice(0, index).map(({ settings }) => settings),
    );
    if (bypass !== null) flaws.add(at, path, bypass);
  }
  checkArchives(valid, masked, sinks, flaws);
}

/** An earlier route that passes every event of a way leaves nothing for this one. */
function bypassOf(route: Route, before: readonly (Route | null)[]): string | null {
  for (const [index, earlier] of before.entries()) {
    if (earlier === null) continue;
    const { from, to, where } = earlier;
    const source = route.from.find((name) => from.includes(name));
    const sink = route.to.find((name) => to.includes(name));
    if (where || source === undefined || sink === undefined) continue;
    return `routes[${index}] passes every event from ${source} to ${sink} first, so this mask has no effect there; put this route before it, or remove one`;
  }
  return null;
}

function checkArchives(
  routes: readonly Route[],
  masked: ReadonlySet<string>,
  sinks: Section<ConfiguredSink>,
  flaws: Flaws,
): void {
  for (const { name, settings, written, path } of sinks.entries.values()) {
    if (settings?.definition.takes !== 'pages' || settings.settings.accept_unmasked === true)
      continue;
    const source = routes
      .filter(({ to }) => to.includes(name))
      .flatMap(({ from }) => from)
      .find((one) => masked.has(one));
    if (source === undefined) continue;
    flaws.add(
      written.keyAt,
      path,
      `this sink keeps pages as upstream sent them, unmasked, and a route masks events from ${source}; ` +
        'set accept_unmasked: true if the archive may keep them, or leave the source out of its routes',
    );
  }
}
