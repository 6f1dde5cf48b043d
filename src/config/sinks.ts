// The `sinks` of a config: each block by its type's declaration, with its format, batch bounds and retry waits. A
// format that a sink cannot carry is reported here, before anything is opened.

import { sinks } from '../../connectors/index.ts';
import { formats, formatsOf } from '../../formats/index.ts';
import type { FormatChoice, SinkDefinition, SinkSettings } from '../contracts/config.ts';
import { hint } from '../tools/index.ts';
import { type BlockReading, parseBlock, shown } from './block.ts';
import type { Flaws, Path } from './flaws.ts';
import {
  definitionOf,
  type NamedBlock,
  reportBlockFlaw,
  reportShared,
  type Section,
} from './section.ts';
import { formatBlock, sinkBlock } from './shape.ts';
import { checkTlsFiles } from './tls-files.ts';
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
export const batchDefault = { events: 1_000, bytes: 1024 * 1024, waitMs: 1_000 };

/** Reads all sinks. */
export function readSinks(section: Section<null>, reading: BlockReading): Section<ConfiguredSink> {
  const read = section.map((entry) => {
    const before = reading.flaws.count;
    const definition = definitionOf(sinks, { ...entry, what: 'sink' }, reading);
    if (definition === null) return null;
    const parsed = parseBlock(sinkBlock(definition), entry, reading);
    const chosen = readFormat(definition, entry, reading);
    if (parsed === undefined || chosen === null) return null;
    const {
      batch,
      retry,
      residency,
      own_process: _ignored,
      format: _,
      ...settings
    } = { format: null, own_process: false, ...parsed };
    checkWhole({ entry, definition, settings, chosen }, reading);
    if (retry.min > retry.max) {
      reportBlockFlaw('retry.min is longer than retry.max', entry, reading);
    }
    if (reading.flaws.count > before) return null;
    const format = wrapped({ definition, settings, chosen, entry }, reading);
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
  // Two sinks on one file interleave lines; two on one transactional id fence each other.
  reportShared('sink', read, reading);
  return read;
}

/** Reports sink keys of older versions that no longer have an effect. */
export function ignoredKeyNotices(section: Section<unknown>, notices: Flaws): void {
  for (const { written, path } of section.entries.values()) {
    const key = written.children?.get('own_process');
    if (key === undefined) continue;
    notices.add(
      key.keyAt,
      [...path, 'own_process'],
      'this key has no effect: the process of a shard sends to all of its sinks; remove the key',
    );
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
  reading: BlockReading,
): FormatChoice | null {
  const path: Path = [...entry.path, 'format'];
  const isRequested = definition.takes !== 'pages';
  const written = isRequested ? entry.written.children?.get('format') : undefined;
  if (written?.broken) return null;
  const short = typeof written?.value === 'string';
  const type = short ? written : written?.children?.get('type');
  if (written !== undefined && typeof type?.value !== 'string') {
    const requested = `expected a format: ${formatsOf(definition).join(', ')}, or { type: …, … }`;
    if (!type?.broken) reading.flaws.add(type?.at ?? written.at, path, requested);
    return null;
  }
  const isKnown = typeof type?.value === 'string' && type.unset === null;
  const requested = isKnown ? String(type.value) : definition.usualFormat;
  const format = formats.find((one) => one.type === requested);
  if (format === undefined || !formatsOf(definition).includes(format.type)) {
    if (type !== undefined)
      reportFormat(definition, { type, path, known: format !== undefined }, reading);
    return null;
  }
  const block = formatBlock(format);
  if (written === undefined || short || !isKnown) return block.parse({ type: format.type });
  return parseBlock(block, { written, path }, reading) ?? null;
}

function reportFormat(
  definition: SinkDefinition,
  at: { readonly type: WrittenValue; readonly path: Path; readonly known: boolean },
  { flaws }: BlockReading,
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
  reading: BlockReading,
): FormatChoice | null {
  const { definition, settings, chosen, entry } = at;
  if (definition.format === undefined) return chosen;
  const written = entry.written.children?.get('format');
  let reported = false;
  for (const [key, { keyAt }] of written?.children ?? []) {
    if (key === 'type' || !Object.hasOwn(definition.fields, key)) continue;
    const message = `${key} is a key of the ${definition.type} sink itself: write it beside format`;
    reading.flaws.add(keyAt, [...entry.path, 'format', key], message);
    reported = true;
  }
  if (reported) return null;
  const whole = definition.format(settings, chosen);
  const format = formats.find((one) => one.type === whole.type);
  const parsed = format && formatBlock(format).safeParse(whole);
  if (parsed?.success) return parsed.data;
  const message = `the settings of this ${definition.type} sink and its format do not go together`;
  reading.flaws.add(written?.at ?? entry.written.at, [...entry.path, 'format'], message);
  return null;
}

function checkWhole(
  at: {
    readonly entry: NamedBlock<null>;
    readonly definition: SinkDefinition;
    readonly settings: SinkSettings;
    readonly chosen: FormatChoice;
  },
  reading: BlockReading,
): void {
  const flaw = at.definition.flaw?.(at.settings, at.chosen) ?? null;
  if (flaw !== null) reportBlockFlaw(flaw, at.entry, reading);
  checkTlsFiles(at.entry, reading, { pairs: flaw === null });
  checkTlsFiles(at.entry, reading, { block: 'tsa' });
}
