// The `sinks` of a config: each block by its type's declaration, with its format, batch bounds and retry waits. A
// format that a sink cannot carry is reported here, before anything is opened.

import { sinks } from '../../connectors/index.ts';
import { formats, formatsOf } from '../../formats/index.ts';
import type { FormatChoice, SinkDefinition, SinkSettings } from '../contracts/config.ts';
import { invariant, type Route } from '../contracts/index.ts';
import { hint } from '../tools/index.ts';
import { parseBlock, shown } from './block.ts';
import type { Flaws, Path } from './flaws.ts';
import { definitionOf, type NamedBlock, reportBlockFlaw, type Section } from './section.ts';
import { formatBlock, sinkBlock } from './shape.ts';
import type { WrittenValue } from './written.ts';

/** One sink as configured. */
export interface ConfiguredSink {
  readonly definition: SinkDefinition;
  readonly settings: SinkSettings;
  /** The format with all of its settings, as `FormatDefinition.make` accepts it. */
  readonly format: FormatChoice;
  readonly batch: { readonly events: number; readonly bytes: number; readonly waitMs: number };
  readonly retry: { readonly minMs: number; readonly maxMs: number };
  /** A label that is compared with those of upstreams; undefined: none. */
  readonly residency?: string | undefined;
}

/** Batch bounds if neither config nor sink sets any. */
const batchDefault = { events: 1_000, bytes: 1024 * 1024, waitMs: 1_000 };

/** Reads all sinks. */
export function readSinks(section: Section<null>, flaws: Flaws): Section<ConfiguredSink> {
  return section.map((entry) => {
    const before = flaws.count;
    const definition = definitionOf(sinks, { ...entry, what: 'sink' }, flaws);
    if (definition === null) return null;
    const parsed = parseBlock(sinkBlock(definition), entry, flaws);
    const chosen = readFormat(definition, entry, flaws);
    if (parsed === undefined || chosen === null) return null;
    const {
      batch,
      retry,
      residency,
      own_process: _ignored,
      format: _,
      ...settings
    } = { format: null, own_process: false, ...parsed };
    const flaw = definition.flaw?.(settings, chosen) ?? null;
    if (flaw !== null) reportBlockFlaw(flaw, entry, flaws);
    if (retry.min > retry.max) {
      reportBlockFlaw('retry.min is longer than retry.max', entry, flaws);
    }
    if (flaws.count > before) return null;
    const format = wrapped({ definition, settings, chosen, entry }, flaws);
    if (format === null) return null;
    const usual = definition.batch ?? batchDefault;
    return {
      definition,
      settings,
      format,
      batch: {
        events: batch?.events ?? usual.events,
        bytes: batch?.bytes ?? usual.bytes,
        waitMs: batch?.wait ?? usual.waitMs,
      },
      retry: { minMs: retry.min, maxMs: retry.max },
      residency,
    };
  });
}

type Sinks = Readonly<Record<string, ConfiguredSink>>;

/**
 * The sinks with those that accompany them, such as an archive's lake, and the routes extended to them. A companion
 * receives the events of its main sink, under a name that no config can use.
 */
export function withCompanions(sinks: Sinks, routes: readonly Route[]) {
  const added = new Map<string, string>();
  const whole = Object.entries(sinks).flatMap(([name, sink]): [string, ConfiguredSink][] => {
    const companion = sink.definition.companion?.(sink.settings) ?? null;
    if (companion === null) return [[name, sink]];
    const { definition, settings, suffix } = companion;
    added.set(name, `${name}.${suffix}`);
    const format = formats.find(({ type }) => type === definition.usualFormat);
    invariant(format !== undefined, `the format ${definition.usualFormat} is listed`);
    const own: ConfiguredSink = {
      definition,
      settings,
      format: formatBlock(format).parse({ type: format.type }),
      batch: definition.batch ?? batchDefault,
      retry: sink.retry,
    };
    return [
      [name, sink],
      [`${name}.${suffix}`, own],
    ];
  });
  return {
    sinks: Object.fromEntries(whole) as Sinks,
    routes: routes.map((route) => ({
      ...route,
      to: route.to.flatMap((name) => [name, ...(added.has(name) ? [`${added.get(name)}`] : [])]),
    })),
  };
}

/** Reports sink keys of older versions that no longer have an effect. */
export function ignoredKeyNotices(section: Section<unknown>, flaws: Flaws): void {
  for (const { written, path } of section.entries.values()) {
    const key = written.children?.get('own_process');
    if (key === undefined) continue;
    const what = 'this key has no effect: the process of a shard sends to all of its sinks';
    flaws.add(key.keyAt, [...path, 'own_process'], `${what}; remove the key`, 'ignored');
  }
}

/** True if a format writes the record as upstream sent it, which no redaction reaches. */
export function writesOriginal(format: FormatChoice): boolean {
  const { message } = format;
  if (format.schema === 'original' || format.raw_data === true) return true;
  if (message === 'original') return true;
  return isChoice(message) && writesOriginal(message);
}

function isChoice(value: unknown): value is FormatChoice {
  return typeof value === 'object' && value !== null && 'type' in value;
}

/** The format as written, short or long, or the sink's first; with that format's defaults. */
function readFormat(
  definition: SinkDefinition,
  entry: NamedBlock<null>,
  flaws: Flaws,
): FormatChoice | null {
  const path: Path = [...entry.path, 'format'];
  const isRequested = definition.takes !== 'pages';
  const written = isRequested ? entry.written.children?.get('format') : undefined;
  if (written?.broken) return null;
  const short = typeof written?.value === 'string';
  const type = short ? written : written?.children?.get('type');
  if (written !== undefined && typeof type?.value !== 'string') {
    const requested = `expected a format: ${formatsOf(definition).join(', ')}, or { type: …, … }`;
    if (!type?.broken) flaws.add(type?.at ?? written.at, path, requested);
    return null;
  }
  const isKnown = typeof type?.value === 'string' && type.unset === null;
  const requested = isKnown ? String(type.value) : definition.usualFormat;
  const format = formats.find((one) => one.type === requested);
  if (format === undefined || !formatsOf(definition).includes(format.type)) {
    if (type !== undefined)
      reportFormat(definition, { type, path, known: format !== undefined }, flaws);
    return null;
  }
  const block = formatBlock(format);
  if (written === undefined || short || !isKnown) return block.parse({ type: format.type });
  return parseBlock(block, { written, path }, flaws) ?? null;
}

function reportFormat(
  definition: SinkDefinition,
  at: { readonly type: WrittenValue; readonly path: Path; readonly known: boolean },
  flaws: Flaws,
): void {
  const { type, path, known } = at;
  const carries = formatsOf(definition);
  const carried = carries.join(', ');
  if (known) {
    flaws.add(
      type.at,
      path,
      `a ${definition.type} sink does not carry ${shown(type)}; it carries ${carried}`,
    );
    return;
  }
  const near = type.template === null ? hint(String(type.value), carries) : '';
  flaws.add(
    type.at,
    path,
    `unknown format ${shown(type)}${near || `; this sink carries ${carried}`}`,
  );
}

/** The format as the sink completes it (syslog frames events in its own format). */
function wrapped(
  at: {
    readonly definition: SinkDefinition;
    readonly settings: SinkSettings;
    readonly chosen: FormatChoice;
    readonly entry: NamedBlock<null>;
  },
  flaws: Flaws,
): FormatChoice | null {
  const { definition, settings, chosen, entry } = at;
  if (definition.format === undefined) return chosen;
  const written = entry.written.children?.get('format');
  let reported = false;
  for (const [key, { keyAt }] of written?.children ?? []) {
    if (key === 'type' || !Object.hasOwn(definition.fields, key)) continue;
    const message = `${key} is a key of the ${definition.type} sink itself: write it beside format`;
    flaws.add(keyAt, [...entry.path, 'format', key], message);
    reported = true;
  }
  if (reported) return null;
  const whole = definition.format(settings, chosen);
  const format = formats.find((one) => one.type === whole.type);
  const parsed = format && formatBlock(format).safeParse(whole);
  if (parsed?.success) return parsed.data;
  const message = `the settings of this ${definition.type} sink and its format do not go together`;
  flaws.add(written?.at ?? entry.written.at, [...entry.path, 'format'], message);
  return null;
}
