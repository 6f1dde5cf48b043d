// Checks the origin of a source's parents (`each`): the source that shows them, and the filter on its records.
// Invariants: an impossible setting is reported before anything runs; no source gets its parents from itself, directly
// or through others.

import type { ParentsReading } from '../contracts/config.ts';
import { hint } from '../tools/index.ts';
import { locate } from './block.ts';
import { classesOf } from './event-paths.ts';
import type { Flaws } from './flaws.ts';
import { checkFilter } from './routes.ts';
import type { Section } from './section.ts';
import type { ConfiguredSource } from './sources.ts';

/** Reports flaws of `each`. */
export function checkParents(sources: Section<ConfiguredSource>, flaws: Flaws): void {
  for (const { settings: source, written, path, name } of sources.entries.values()) {
    const each = eachOf(source);
    if (source === null || each === null || 'ids' in each) continue;
    const report = (key: string, message: string) => {
      const { found } = locate(written, ['each', key]);
      flaws.add(found.at, [...path, 'each', key], message);
    };
    const of = sources.entries.get(each.of);
    if (of === undefined) {
      report('of', `unknown source ${JSON.stringify(each.of)}${hint(each.of, sources.names)}`);
      continue;
    }
    const way = wayBack(name, each.of, sources);
    if (way !== null)
      report('of', `${way.join(' has its parents from ')}: the parents form a cycle`);
    const { where } = each;
    if (of.settings === null || where === undefined) continue;
    if (of.settings.definition.collection !== undefined) {
      report('where', `${each.of} is a collection: each entity is used; remove where`);
      continue;
    }
    const at = written.children?.get('each') ?? written;
    const classes = classesOf(of.settings);
    checkFilter(
      { where, from: [each.of] },
      { written: at, path: [...path, 'each'], classes },
      flaws,
    );
  }
}

function eachOf(source: ConfiguredSource | null): ParentsReading['each'] | null {
  return source?.definition.parents?.(source.settings).each ?? null;
}

/** The sources on a path from one to itself; null: there is no cycle. */
function wayBack(
  name: string,
  of: string,
  sources: Section<ConfiguredSource>,
): readonly string[] | null {
  const way = [name];
  for (let at: string | null = of; at !== null; ) {
    if (at === name) return [...way, name];
    if (way.includes(at)) return null;
    way.push(at);
    const each = eachOf(sources.entries.get(at)?.settings ?? null);
    at = each !== null && 'of' in each ? each.of : null;
  }
  return null;
}
