// The `sources` of a config: each block by its type's declaration, and the check of sources against their upstreams. A
// source without a schedule is read every 30 seconds.

import type { z } from 'zod';
import { sources } from '../../connectors/sources/index.ts';
import {
  requestedLookups,
  type SourceDefinition,
  type SourceSettings,
} from '../contracts/config.ts';
import {
  type ExpectedVolume,
  isObject,
  type Schedule,
  type Succession,
} from '../contracts/index.ts';
import { mappingFlaws } from '../normalise/index.ts';
import { hint } from '../tools/index.ts';
import type { UpstreamSettings } from '../upstream/index.ts';
import { locate, parseBlock, shown, withoutReferences } from './block.ts';
import type { Flaws, Path } from './flaws.ts';
import { readSchedule } from './schedule.ts';
import { definitionOf, type NamedBlock, reportBlockFlaw, type Section } from './section.ts';
import { sourceBlock } from './shape.ts';
import type { WrittenValue } from './written.ts';

/** One source as configured. */
export interface ConfiguredSource {
  readonly definition: SourceDefinition;
  readonly settings: SourceSettings;
  readonly schedule: Schedule;
  /** How long its streams may be silent, milliseconds; null: without limit. */
  readonly expectMs: number | null;
  /** The expected volume of each stream; undefined: none. */
  readonly expectVolume?: ExpectedVolume;
  /** Its predecessor, and how the two are compared; undefined: none. */
  readonly succeeds?: Succession;
  /** Its records are parsed as those of its predecessor; its own block does not say so. */
  readonly inheritsRecords?: boolean;
}

/** Reads all sources. */
export function readSources(section: Section<null>, flaws: Flaws): Section<ConfiguredSource> {
  return section.map((entry): ConfiguredSource | null => {
    const before = flaws.count;
    const definition = definitionOf(sources, { ...entry, what: 'source' }, flaws);
    if (definition === null) return null;
    const parsed = parseBlock(sourceBlock(definition), entry, flaws);
    if (parsed === undefined) return null;
    // The engine's own keys are settings too: only the connector's are typed by its fields.
    const settings: SourceSettings = withoutUnsetFilter(parsed, entry.written);
    const schedule = readSchedule(parsed, entry, flaws);
    checkMapping(definition.reading(settings).mapping, entry, flaws);
    if (schedule === null) return null;
    const expectMs = parsed.expect_every ?? null;
    if (expectMs !== null && 'everyMs' in schedule && expectMs <= schedule.everyMs) {
      const flaw =
        'expect_every must be longer than every, and than its max: else every stream counts as silent';
      reportBlockFlaw(flaw, entry, flaws);
    }
    const volume = parsed.expect_volume;
    if (volume !== undefined && 'everyMs' in schedule && volume.per < schedule.everyMs) {
      const flaw =
        'expect_volume.per is shorter than every, so that a period could pass without a poll';
      reportBlockFlaw(flaw, entry, flaws);
    }
    // Without a known upstream no stream can be created.
    const isUnknown = entry.written.children?.get('upstream')?.unset != null;
    if (flaws.count > before || isUnknown) return null;
    const succeeds = successionOf(parsed.succeeds);
    const expectVolume = volume && { perMs: volume.per, atLeast: volume.at_least };
    return {
      ...{ definition, settings, schedule, expectMs },
      ...(expectVolume && { expectVolume }),
      ...(succeeds && { succeeds }),
    };
  });
}

/** `succeeds` in the engine's form. */
function successionOf(
  written: z.output<ReturnType<typeof sourceBlock>>['succeeds'],
): Succession | undefined {
  if (written === undefined) return undefined;
  const { source, id, fields, ignore, overlap, patience } = written;
  return { source, id, fields, ignore, overlapMs: overlap, patienceMs: patience };
}

/** An unknown filter cannot be compiled. */
function withoutUnsetFilter(settings: SourceSettings, written: WrittenValue): SourceSettings {
  const { each } = settings;
  const { found, steps } = locate(written, ['each', 'where']);
  if (steps < 2 || found.unset === null || !isObject(each)) return settings;
  return { ...settings, each: { ...each, where: undefined } };
}

function checkMapping(
  mapping: ReturnType<SourceDefinition['reading']>['mapping'],
  entry: NamedBlock<null>,
  flaws: Flaws,
): void {
  if (mapping === undefined) return;
  const written = entry.written.children?.get('mapping') ?? entry.written;
  for (const { path, message } of mappingFlaws(mapping)) {
    const steps = mappingSteps(path);
    const { found } = locate(written, steps);
    // The flaw concerns the attribute's name, and the name is the key.
    const at = steps.length > 1 ? found.keyAt : found.at;
    const said = withoutReferences(message, written);
    flaws.add(at ?? found.at, [...entry.path, 'mapping', ...steps], said);
  }
}

/** `fields.src_endpoint.ip` is the key `src_endpoint.ip` of `fields`. */
function mappingSteps(path: string): Path {
  const [first = '', ...rest] = path.split('.');
  return rest.length === 0 ? [first] : [first, rest.join('.')];
}

/** Reports sources whose upstream does not exist, or has not what they read. */
export function checkUpstreams(
  sourcesOf: Section<ConfiguredSource>,
  upstreams: Section<UpstreamSettings>,
  flaws: Flaws,
): void {
  for (const entry of sourcesOf.entries.values()) {
    const named = entry.written.children?.get('upstream');
    if (named === undefined || typeof named.value !== 'string') continue;
    const upstream = upstreams.entries.get(named.value);
    if (upstream === undefined) {
      const near = named.template === null ? hint(named.value, upstreams.names) : '';
      const message = `unknown upstream ${shown(named)}${near}`;
      flaws.add(named.at, [...entry.path, 'upstream'], message);
      continue;
    }
    const wrongApi = apiFlaw(entry, upstream);
    if (wrongApi !== null) flaws.add(named.at, [...entry.path, 'upstream'], wrongApi);
    if (entry.settings === null || upstream.settings === null) continue;
    const { definition, settings } = entry.settings;
    const isLooked = requestedLookups(settings).length > 0;
    const flaw =
      isLooked && upstream.settings.api !== 'services'
        ? 'enrich needs an upstream with api: services, which has the look-ups'
        : (definition.flaw?.(settings, upstream.settings) ?? null);
    if (flaw !== null) reportBlockFlaw(flaw, entry, flaws);
  }
}

/** A wrong API is reported even if both blocks have other flaws. */
function apiFlaw({ written }: NamedBlock<unknown>, upstream: NamedBlock<unknown>): string | null {
  const definition = sources.find(({ type }) => type === written.children?.get('type')?.value);
  const api = upstream.written.children?.get('api');
  if ((api?.value !== 'unified' && api?.value !== 'services') || api.unset !== null) return null;
  if (definition === undefined || definition.apis.includes(api.value)) return null;
  return `${definition.type} reads an upstream with api: ${definition.apis.join(' or ')}, and ${upstream.name} is ${api.value}`;
}
