// Where a source's parents come from (`each`): which source shows them, and which values in its
// records are taken. What must stay true: what cannot work is told before anything runs, and no
// source gets its parents from itself, by whatever way round.

import type { ParentsReading, RecordReading } from '../contracts/definition.ts';
import type { Json } from '../contracts/json.ts';
import { type NewPage, uidBytes } from '../contracts/spool.ts';
import type { PlannedParents } from '../fetch/parents/feed.ts';
import { compileFilter } from '../send/filter.ts';
import { DecodedPage } from '../send/held-event.ts';
import { normalisersOf } from '../send/normalisers.ts';
import { valueAt } from '../tools/records.ts';
import { type BlockReading, locate } from './block.ts';
import { classesOf } from './event-paths.ts';
import { hint } from './nearest.ts';
import { checkFilter } from './routes.ts';
import type { Section } from './section.ts';
import type { ConfiguredSource } from './sources.ts';

/** Which parents there are, with how the records of the source that shows them are looked into. */
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
      // A filter passes what it cannot judge, which is no reason to ask for anything.
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

/** Tells what is wrong with where parents come from. */
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

/** The sources from one to itself; null where there is no way. */
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
