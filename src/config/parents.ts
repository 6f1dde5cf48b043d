// The origin of a source's parents (`each`): the source that shows them, and the values in its records. Invariants: an
// impossible setting is reported before anything runs; no source gets its parents from itself, directly or through
// others.

import type { ParentsReading, RecordReading } from '../contracts/config.ts';
import { type Json, type NewPage, uidBytes } from '../contracts/index.ts';
import type { PlannedParents } from '../fetch/engine.ts';
import { compileFilter, DecodedPage, normalisersOf } from '../send/index.ts';
import { hint, valueAt } from '../tools/index.ts';
import { type BlockReading, locate } from './block.ts';
import { classesOf } from './event-paths.ts';
import { checkFilter } from './routes.ts';
import type { Section } from './section.ts';
import type { ConfiguredSource } from './sources.ts';

/** The parents of a source, with the reading of the records that contain them. */
export function plannedParents(reading: ParentsReading, from?: RecordReading): PlannedParents {
  const { each } = reading;
  if ('ids' in each || from === undefined) return reading;
  const normaliserFor = normalisersOf([{ name: each.of, reading: from }]);
  let isJudged = true;
  const passes = each.where
    ? compileFilter(each.where, () => {
        isJudged = false;
      })
    : () => true;
  const valuesIn = (page: NewPage) => {
    if (page.context.kind === 'condition') return [];
    const held = { ...page, first: 0, count: page.uids.length / uidBytes };
    const decoded = new DecodedPage(held, normaliserFor(page.context));
    return decoded.events.flatMap((event, at) => {
      isJudged = true;
      // A filter passes events that it cannot judge, but these must not cause requests.
      const isTaken = passes(event) && isJudged;
      return isTaken ? idsOf(valueAt(decoded.record(at), each.id)) : [];
    });
  };
  return { ...reading, valuesIn };
}

function idsOf(value: Json | undefined): readonly string[] {
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(idsOf);
  return typeof value === 'string' || typeof value === 'number' ? [String(value)] : [];
}

/** Reports flaws of `each`. */
export function checkParents(sources: Section<ConfiguredSource>, reading: BlockReading): void {
  for (const { settings: source, written, path, name } of sources.entries.values()) {
    const each = eachOf(source);
    if (source === null || each === null || 'ids' in each) continue;
    const report = (key: string, message: string) => {
      const { found } = locate(written, ['each', key]);
      reading.flaws.add(found.at, [...path, 'each', key], message);
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
      reading,
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
