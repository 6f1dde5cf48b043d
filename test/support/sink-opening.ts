// Opening a sink as the engine would: settings parsed by the sink's own fields, its default format (or another), the real
// clock and HTTP client, and a log that is kept for the test to read. And batches as the engine would cut them. The
// sink and the client are closed when the test ends.

import { z } from 'zod';
import { formats } from '../../formats/index.ts';
import type { SinkDefinition, SinkSettings } from '../../src/contracts/definition.ts';
import type { ErrorDetails } from '../../src/contracts/errors.ts';
import type { Event } from '../../src/contracts/event.ts';
import type { Format } from '../../src/contracts/format.ts';
import type { Json } from '../../src/contracts/json.ts';
import type { Epoch } from '../../src/contracts/numbering.ts';
import type { Batch, Sink, SinkOpening } from '../../src/contracts/sink.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import type { Clock, Log, Tools } from '../../src/contracts/tools.ts';
import { encodeLines } from '../../src/send/encode.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { anEvent } from './an-event.ts';
import { afterThisTest } from './temp.ts';

/** A line that a sink logged. */
export interface LoggedLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
  readonly text: string;
  readonly fields: ErrorDetails;
}

/** The three tools, real but for the log, which is kept; and for the clock, if the test brings one. */
export interface TestTools extends Tools {
  readonly logged: readonly LoggedLine[];
}

/** Tools for one test. */
export function testTools(clock: Clock = systemClock()): TestTools {
  const logged: LoggedLine[] = [];
  const http = openHttpClient();
  afterThisTest(() => http.close());
  return { clock, http, logged, log: keptLog(logged, {}) };
}

function keptLog(lines: LoggedLine[], always: ErrorDetails): Log {
  const keep =
    (level: LoggedLine['level']) => (event: string, text: string, fields?: ErrorDetails) => {
      lines.push({ level, event, text, fields: { ...always, ...fields } });
    };
  return {
    debug: keep('debug'),
    info: keep('info'),
    warn: keep('warn'),
    error: keep('error'),
    with: (fields) => keptLog(lines, { ...always, ...fields }),
  };
}

/** What a test may say about the opening; all else has a default. */
export interface OpeningWishes {
  /** `cef`, or a format with its settings. Default: the sink's default format. */
  readonly format?: string | { readonly type: string; readonly [setting: string]: unknown };
  readonly tools?: TestTools;
  /** Name of the sink in the config. */
  readonly name?: string;
  readonly spoolId?: string;
  readonly epochs?: readonly Epoch[];
  readonly position?: number;
  readonly mark?: Json | null;
  readonly report?: SinkOpening['report'];
  /** Keeps a mark, as the engine does beside the position. Default: not kept. */
  readonly remember?: (mark: Json) => Promise<void>;
}

/** An open sink with what it was opened with. */
export interface OpenedSink {
  readonly sink: Sink;
  readonly format: Format;
  readonly tools: TestTools;
  /** A batch of these events as the engine would hand it to this sink. */
  batch(events: readonly Event[], id?: string): Batch;
}

/** Opens a sink from settings as they stand in a config. */
export async function openSink(
  definition: SinkDefinition,
  config: { readonly [setting: string]: unknown },
  wishes: OpeningWishes = {},
): Promise<OpenedSink> {
  return await openParsed(definition, parseSettings(definition, config), wishes);
}

/** Opens a sink from settings as the config reader has parsed them. */
export async function openParsed(
  definition: SinkDefinition,
  settings: SinkSettings,
  wishes: OpeningWishes = {},
): Promise<OpenedSink> {
  const tools = wishes.tools ?? testTools();
  const chosen = makeFormat(definition, settings, wishes.format);
  const document = definition.document?.(settings, chosen);
  const format = document === undefined ? chosen : { ...chosen, document };
  const sink = await definition.open(settings, {
    name: wishes.name ?? 'sink-under-test',
    format,
    numbering: {
      spool: wishes.spoolId ?? 'spool-1',
      epochs: wishes.epochs ?? [{ id: 1, until: null }],
    },
    config: () => null,
    sinks: () => [],
    position: wishes.position ?? 0,
    mark: wishes.mark ?? null,
    remember: wishes.remember ?? (async () => undefined),
    report: wishes.report ?? (async () => undefined),
    tools,
  });
  afterThisTest(() => sink.close());
  const batch = (events: readonly Event[], id?: string) =>
    batchOf(events, { definition, format, id });
  return { sink, format, tools, batch };
}

/** A sink's settings as the config reader would parse them. */
export function parseSettings(
  definition: SinkDefinition,
  config: { readonly [setting: string]: unknown },
): SinkSettings {
  return { type: definition.type, ...z.strictObject(definition.fields).parse(config) };
}

function makeFormat(
  definition: SinkDefinition,
  settings: SinkSettings,
  wished: OpeningWishes['format'],
): Format {
  const asked = wished ?? definition.usualFormat;
  const written = typeof asked === 'string' ? { type: asked } : asked;
  const choice = parseFormat(written);
  const { made, choice: completed } = parseFormat(
    definition.format?.(settings, choice.choice) ?? choice.choice,
  );
  return made.make(completed);
}

function parseFormat(written: { readonly type: string; readonly [setting: string]: unknown }) {
  const { type, ...rest } = written;
  const made = formats.find((format) => format.type === type);
  if (made === undefined) throw new Error(`there is no format ${type}`);
  return { made, choice: { type, ...z.strictObject(made.fields).parse(rest) } };
}

function batchOf(
  events: readonly Event[],
  made: { definition: SinkDefinition; format: Format; id: string | undefined },
): Batch {
  const start = events[0]?.offset ?? 0;
  const end = (events.at(-1)?.offset ?? start - 1) + 1;
  const { definition, format } = made;
  const encoding = definition.documents === true ? (format.document ?? format) : format;
  const lines = encodeLines(events, encoding);
  const pages = definition.takes === 'pages' ? events.map(pageOf) : [];
  return { id: made.id ?? `batch-${start}-${end}`, events, lines, pages, start, end };
}

/** A page whose one record is the event's. */
function pageOf({ context, offset, raw, uid }: Event): HeldPage {
  const body = Buffer.concat([Buffer.from('['), raw, Buffer.from(']')]);
  const uids = Buffer.from(uid, 'hex');
  return { context, body, items: '', kept: null, uids, first: offset, count: 1 };
}

/** Events of consecutive offsets, each with a uid of its own. */
export function someEvents(count: number, firstOffset = 0): readonly Event[] {
  return Array.from({ length: count }, (_, i) => anEvent({ offset: firstOffset + i }));
}
