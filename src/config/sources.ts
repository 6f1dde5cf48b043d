// The `sources` of a config: each block by its type's declaration, and checks that need its upstream. A source without
// a schedule is read every 30 seconds.

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
import { type BlockReading, locate, parseBlock, shown, withoutReferences } from './block.ts';
import type { Path } from './flaws.ts';
import { readSchedule } from './schedule.ts';
import {
  definitionOf,
  type NamedBlock,
  reportBlockFlaw,
  reportShared,
  type Section,
} from './section.ts';
import { sourceBlock } from './shape.ts';
import { checkTlsFiles } from './tls-files.ts';
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
export function readSources(
  section: Section<null>,
  upstreams: Section<UpstreamSettings>,
  reading: BlockReading,
): Section<ConfiguredSource> {
  const read = section.map((entry): ConfiguredSource | null => {
    const before = reading.flaws.count;
    const upstream = upstreamOf(entry, upstreams, reading);
    const definition = definitionOf(sources, { ...entry, what: 'source' }, reading);
    if (definition === null) return null;
    if (upstream) checkApi({ entry, definition, upstream }, reading);
    const parsed = parseBlock(sourceBlock(definition), entry, reading);
    if (parsed === undefined) return null;
    // The engine's own keys are settings too: only the connector's are typed by its fields.
    const settings: SourceSettings = withoutUnsetFilter(parsed, entry.written);
    const schedule = readSchedule(parsed, entry, reading);
    checkWhole({ entry, definition, settings, upstream }, reading);
    if (schedule === null) return null;
    const expectMs = parsed.expect_every ?? null;
    if (expectMs !== null && 'everyMs' in schedule && expectMs <= schedule.everyMs) {
      const flaw = 'expect_every is no longer than every, so that all would be silent all the time';
      reportBlockFlaw(flaw, entry, reading);
    }
    const volume = parsed.expect_volume;
    if (volume !== undefined && 'everyMs' in schedule && volume.per < schedule.everyMs) {
      const flaw =
        'expect_volume.per is shorter than every, so that a period could pass without a poll';
      reportBlockFlaw(flaw, entry, reading);
    }
    // Without a known upstream no stream can be created.
    const isUnknown = entry.written.children?.get('upstream')?.unset != null;
    if (reading.flaws.count > before || isUnknown) return null;
    const succeeds = successionOf(parsed.succeeds);
    const expectVolume = volume && { perMs: volume.per, atLeast: volume.at_least };
    return {
      ...{ definition, settings, schedule, expectMs },
      ...(expectVolume && { expectVolume }),
      ...(succeeds && { succeeds }),
    };
  });
  reportShared('source', read, reading);
  return read;
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

function upstreamOf(
  { written, path }: NamedBlock<null>,
  upstreams: Section<UpstreamSettings>,
  { flaws }: BlockReading,
): NamedBlock<UpstreamSettings> | null {
  const named = written.children?.get('upstream');
  if (named === undefined || typeof named.value !== 'string') return null;
  const upstream = upstreams.entries.get(named.value);
  if (upstream !== undefined) return upstream;
  const near = named.template === null ? hint(named.value, upstreams.names) : '';
  flaws.add(named.at, [...path, 'upstream'], `unknown upstream ${shown(named)}${near}`);
  return null;
}

interface Together {
  readonly entry: NamedBlock<null>;
  readonly definition: SourceDefinition;
  readonly upstream: NamedBlock<UpstreamSettings> | null;
}

/** A wrong API is reported even if the upstream's block has other flaws. */
function checkApi({ entry, definition, upstream }: Together, { flaws }: BlockReading): void {
  const api = upstream?.written.children?.get('api');
  if ((api?.value !== 'unified' && api?.value !== 'services') || api.unset !== null) return;
  if (definition.apis.includes(api.value)) return;
  const named = entry.written.children?.get('upstream');
  flaws.add(
    named?.at ?? entry.written.at,
    [...entry.path, 'upstream'],
    `${definition.type} reads an upstream with api: ${definition.apis.join(' or ')}, and ${upstream?.name} is ${api.value}`,
  );
}

function checkWhole(
  { entry, definition, upstream, settings }: Together & { readonly settings: SourceSettings },
  reading: BlockReading,
): void {
  if (upstream?.settings) {
    const isLooked = requestedLookups(settings).length > 0;
    const flaw =
      isLooked && upstream.settings.api !== 'services'
        ? 'enrich needs an upstream with api: services, which has the look-ups'
        : (definition.flaw?.(settings, upstream.settings) ?? null);
    if (flaw !== null) reportBlockFlaw(flaw, entry, reading);
  }
  checkTlsFiles(entry, reading);
  const { mapping } = definition.reading(settings);
  if (mapping === undefined) return;
  const written = entry.written.children?.get('mapping') ?? entry.written;
  for (const { path, message } of mappingFlaws(mapping)) {
    const steps = mappingSteps(path);
    const { found } = locate(written, steps);
    // The flaw concerns the attribute's name, and the name is the key.
    const at = steps.length > 1 ? found.keyAt : found.at;
    const said = withoutReferences(message, written);
    reading.flaws.add(at ?? found.at, [...entry.path, 'mapping', ...steps], said);
  }
}

/** `fields.src_endpoint.ip` is the key `src_endpoint.ip` of `fields`. */
function mappingSteps(path: string): Path {
  const [first = '', ...rest] = path.split('.');
  return rest.length === 0 ? [first] : [first, rest.join('.')];
}
