// Turns a config into the objects of the pipeline: creates the upstream clients, the streams of each source, and one
// encoder per distinct format. Nothing is connected yet, and the pipeline opens the sinks.

import { type Config, formats, keptSha256 } from '../config/index.ts';
import {
  type FormatChoice,
  type ParentsReading,
  type RecordReading,
  requestedLookups,
} from '../contracts/config.ts';
import { type Format, invariant, type Tools } from '../contracts/index.ts';
import type { PlannedSource } from '../fetch/engine.ts';
import { Lookups } from '../fetch/index.ts';
import type { Plan } from '../pipeline.ts';
import type { PlannedSink } from '../send/delivery.ts';
import { leadsTo } from '../send/index.ts';
import {
  type EndsByUpstream,
  type Throttles,
  type Tokens,
  UpstreamClient,
} from '../upstream/index.ts';
import { plannedParents } from './planned-parents.ts';

/** Default of the minimum time between two stored copies of an equal response. */
const answersEveryMsUsual = 10_000;

/** Shared by upstreams with one credential. */
export interface Shared {
  readonly throttles: Pick<Throttles, 'gate'>;
  readonly tokens: Tokens;
}

/** Dependencies of a plan; throttles, tokens and ends belong to the program and are shared by all upstreams. */
export interface PlanDeps extends Tools, Shared {
  readonly ends: EndsByUpstream;
}

/** The pipeline's plan, and its upstream clients by name. */
export interface WholePlan extends Plan {
  readonly upstreams: ReadonlyMap<string, UpstreamClient>;
}

/**
 * Creates the plan. `shared`: own throttles and tokens of an upstream, by name, in place of the program's. Throws an
 * ExportError if a secret can no longer be read.
 */
export function planFrom(
  config: Config,
  deps: PlanDeps,
  shared: ReadonlyMap<string, Shared> = new Map(),
): WholePlan {
  const clients = new Map(
    Object.entries(config.upstreams).map(([name, settings]) => [
      name,
      new UpstreamClient(name, settings, { ...deps, ...shared.get(name) }),
    ]),
  );
  for (const { mask, maskKey } of config.routes) if (mask !== undefined) maskKey?.reveal();
  return {
    sources: plannedSources(config, clients),
    sinks: plannedSinks(config),
    routes: config.routes,
    config: keptSha256(config.kept),
    drift: config.watch.drift,
    upstreams: clients,
  };
}

/** A text that is equal for choices that encode alike. */
export function formatKeyOf(choice: FormatChoice): string {
  return JSON.stringify(choice, (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

function plannedSources(
  config: Config,
  clients: ReadonlyMap<string, UpstreamClient>,
): readonly PlannedSource[] {
  const lookups = lookupsOf(config, clients);
  return Object.entries(config.sources).map(
    ([name, { definition, settings, schedule, expectMs, expectVolume, succeeds }]) => {
      const upstream = clients.get(settings.upstream);
      invariant(upstream !== undefined, `the upstream of ${name} is known`);
      return {
        name,
        upstream: settings.upstream,
        streams: definition.streams(settings, { name, upstream }),
        reading: readingOf({ definition, settings }, config),
        list: definition.list?.(settings) ?? null,
        collection: definition.collection?.(settings) ?? null,
        parents: parentsOf(definition.parents?.(settings), config),
        schedule,
        ...(expectMs !== null && { expectMs }),
        ...(expectVolume && { expectVolume }),
        ...(requestedLookups(settings).length > 0 && lookups.get(settings.upstream)),
        ...answersHeld(name, config),
        ...(succeeds && { succeeds }),
      };
    },
  );
}

/** Whether a source's responses are stored: a sink with pages receives them. */
function answersHeld(
  source: string,
  { sinks, routes }: Config,
): Pick<PlannedSource, 'answersEveryMs'> {
  const every = Object.entries(sinks).flatMap(([name, { definition, settings }]) => {
    const isTaker = definition.takes === 'pages' && leadsTo(routes, { source, sink: name });
    return isTaker ? (definition.answersEveryMs?.(settings) ?? answersEveryMsUsual) : [];
  });
  return every.length === 0 ? {} : { answersEveryMs: Math.min(...every) };
}

function parentsOf(reading: ParentsReading | undefined, config: Config) {
  if (reading === undefined || 'ids' in reading.each) return reading;
  const of = config.sources[reading.each.of];
  return plannedParents(reading, of && readingOf(of, config));
}

/** How a source's records are read: by its connector, and by the API of its upstream. */
export function readingOf(
  { definition, settings }: Pick<Config['sources'][string], 'definition' | 'settings'>,
  { upstreams }: Pick<Config, 'upstreams'>,
): RecordReading {
  const reading = definition.reading(settings);
  const upstream = upstreams[settings.upstream];
  if (upstream === undefined) return reading;
  const { api, product: name = api, vendor } = upstream;
  return { ...reading, product: { name, ...(vendor !== undefined && { vendor_name: vendor }) } };
}

/** By upstream: its sources share one set of look-ups. */
function lookupsOf(
  { sources }: Config,
  clients: ReadonlyMap<string, UpstreamClient>,
): ReadonlyMap<string, { readonly lookups: Lookups }> {
  return new Map(
    Array.from(clients, ([name, client]) => {
      const own = Object.values(sources).filter(({ settings }) => settings.upstream === name);
      const requested = new Set(own.flatMap(({ settings }) => requestedLookups(settings)));
      return [name, { lookups: new Lookups(client, [...requested]) }];
    }),
  );
}

function plannedSinks(config: Config): readonly PlannedSink[] {
  const made = new Map<string, Format>();
  return Object.entries(config.sinks).map(([name, { definition, settings, ...sink }]) => {
    const choice = formatKeyOf(sink.format);
    const format = made.getOrInsertComputed(choice, () => makeFormat(sink.format));
    const document = definition.document?.(settings, format);
    return {
      name,
      definition,
      settings,
      format: document === undefined ? format : { ...format, document },
      formatKey: document === undefined ? choice : `${choice} of ${name}`,
      bounds: { eventsMax: sink.batch.events, bytesMax: sink.batch.bytes },
      waitMs: sink.batch.waitMs,
      retry: sink.retry,
    };
  });
}

function makeFormat(choice: FormatChoice): Format {
  const definition = formats.find((format) => format.type === choice.type);
  invariant(definition !== undefined, `the format ${choice.type} is listed`);
  return definition.make(choice);
}
