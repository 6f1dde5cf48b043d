// The declaration of a connector or format. One declaration gives validation, type, default, error
// text, JSON Schema and the reference page. The author of a sink or format exports one definition
// and adds one line to a list (connectors/index.ts, formats/index.ts); nothing under src/ changes.

import type { z } from 'zod';
import type { PageContext } from './event.ts';
import type { DocumentForm, Format } from './format.ts';
import type { Json } from './json.ts';
import type { Assurance, Sink, SinkOpening } from './sink.ts';
import type { Order, Stream } from './source.ts';
import type { Tools } from './tools.ts';
import type { Upstream } from './upstream.ts';

/** The keys of one config block, each a zod type with a description. */
export type Fields = z.ZodRawShape;

/** Parsed settings of a block. */
export type Settings<F extends Fields> = z.output<z.ZodObject<F>>;

/** `format: cef` or `format: { type: cef, … }`, parsed: the type and that format's own settings. */
export interface FormatChoice {
  readonly type: string;
  readonly [setting: string]: unknown;
}

/**
 * The shape of encoded events: lines of text, one JSON object per line, OTLP log records, rows, or
 * GELF.
 */
export type FormatShape = 'lines' | 'json' | 'otlp' | 'rows' | 'gelf';

/** A format as its author writes it. */
export interface FormatSpec<F extends Fields> {
  readonly type: string;
  readonly shape: FormatShape;
  /** One sentence for the reference page. */
  readonly summary: string;
  readonly fields: F;
  make(settings: Settings<F>): Format;
}

/** A format as the engine sees it. */
export interface FormatDefinition {
  readonly type: string;
  readonly shape: FormatShape;
  readonly summary: string;
  readonly fields: Fields;
  make(settings: FormatChoice): Format;
}

/** Declares a format. `make` gets only the parsed values of `fields`, so the types agree. */
export function defineFormat<F extends Fields>(spec: FormatSpec<F>): FormatDefinition {
  return spec as unknown as FormatDefinition;
}

/**
 * An external resource that only one sink may use: the setting that names it, and its full name.
 */
export interface OwnThing {
  readonly key: string;
  readonly name: string;
  /**
   * Separator between the setting's value and the shard number, if each shard has its own resource.
   * Default: the value must contain a placeholder for the number.
   */
  readonly shardSeparator?: string;
  /** A key for the shard number, set by the engine and never by a config. */
  readonly shardKey?: string;
  /** A key for the resources of the other shards with work: the value of `key` by shard number. */
  readonly othersKey?: string;
  /** The flaw if processes on several machines share the state; absent: none. */
  readonly flawIfShared?: string | undefined;
  /**
   * A setting that must be equal in all sinks that share a resource: its key, the resource, its
   * value.
   */
  readonly alike?: { readonly key: string; readonly of: string; readonly value: string };
}

/** Input of `init` for a first config with a sink. */
export interface SinkSample {
  /** The sink's name in the config. Default: its type. */
  readonly name?: string;
  /** The question of `init` and a usual answer; null: no question. */
  readonly to: { readonly what: string; readonly usual: string } | null;
  /** The lines of its YAML: answers quoted as in JSON, frequent changes as comments. */
  lines(to: string): readonly string[];
}

/** A sink as its author writes it. */
export interface SinkSpec<F extends Fields> {
  readonly type: string;
  readonly summary: string;
  /** The sink's own keys; `type`, `format`, `batch` and `retry` are the engine's. */
  readonly fields: F;
  /**
   * `pages`: batches are whole pages as upstream sent them, including every upstream response.
   * There is no format, and no route filters or redacts. Default: events.
   */
  readonly takes?: 'events' | 'pages';
  /**
   * The part of the sink's marks that a state keeps when it moves to another resource, such as into
   * shards; `marks` come from all states that the new one is made of. Default: none.
   */
  movedMark?(marks: readonly Json[]): Json | null;
  /**
   * For pages: an identical repeated response is stored at most once per this many milliseconds.
   */
  answersEveryMs?(settings: Settings<F>): number;
  /** Shapes of the formats that the sink can carry (formats/index.ts maps formats to shapes). */
  readonly carries: readonly FormatShape[];
  /** Type of the format if the config names none. */
  readonly usualFormat: string;
  readonly sample: SinkSample;
  /** True if `send` needs whole documents instead of lines (OTLP). */
  readonly documents?: boolean;
  /** Maximum unresolved sends. More than one only if an acknowledgement takes time (settling). */
  readonly inFlightMax: number | ((settings: Settings<F>) => number);
  /** The form of an event in this sink's own documents, if no format provides it (`_bulk`). */
  document?(settings: Settings<F>, format: Format): DocumentForm;
  /** Wraps or completes the chosen format, for a sink that frames its events (syslog). */
  format?(settings: Settings<F>, chosen: FormatChoice): FormatChoice;
  /**
   * A flaw in settings that are valid each by itself, such as TLS without https, or in them and the
   * chosen format; null: none.
   */
  flaw?(settings: Settings<F>, chosen?: FormatChoice): string | null;
  /**
   * The resource that the sink needs for itself: a second sink with the same one is a flaw (null:
   * none).
   */
  own?(settings: Settings<F>): OwnThing | null;
  /** The output file on this machine that only one process may write to. Default: no file. */
  writes?(settings: Settings<F>): string;
  /** A second sink that receives the same events at its own pace, called `NAME.SUFFIX`. */
  companion?(settings: Settings<F>): Companion | null;
  assurance(settings: Settings<F>): Assurance;
  /**
   * The promise if processes on several machines share the state: a process that was paused and
   * resumes may write events that its successor has written. Default: `assurance`, because the
   * destination rejects that write.
   */
  shared?(settings: Settings<F>): SharedPromise;
  /** Advice for valid settings; sentences, for `check`. */
  advice?(settings: Settings<F>): readonly string[];
  /** Batch bounds if the config sets none. */
  readonly batch?: { readonly events: number; readonly bytes: number; readonly waitMs: number };
  /** Opens without waiting for the receiver: an unreachable one shows as `retry` when sending. */
  open(settings: Settings<F>, opening: SinkOpening): Promise<Sink>;
  /**
   * Settings for a test event beside a running process (`check --send-test`). Null: no test event
   * is sent, because a run resumes from the destination's content. Default: the settings unchanged.
   */
  testSettings?(settings: Settings<F>): Settings<F> | null;
  /**
   * For `check --connect`: connects and authenticates, sends nothing; throws an ExportError.
   * `mark`: the last mark that the sink stored, if the state has one.
   */
  probe(
    settings: Settings<F>,
    tools: Tools,
    signal: AbortSignal,
    mark?: Json | null,
  ): Promise<void>;
  /**
   * For `check --connect`: compares the sent fields with those that the destination reports to
   * store, if it drops the others silently. Throws an ExportError if data would be lost.
   */
  inspect?(settings: Settings<F>, tools: Tools, signal: AbortSignal): Promise<Inspection>;
  /**
   * For `check --setup`: creates the resources that the sink needs at the destination, such as an
   * index template; idempotent. Resolves to a description of them. Throws an ExportError.
   */
  setup?(settings: Settings<F>, format: Format, deps: SetupDeps): Promise<string>;
}

/** The promise of a sink if several processes share the state. */
export interface SharedPromise {
  readonly assurance: Assurance;
  /** The reason, and how to get a stronger promise; one sentence each, for `check`. */
  readonly advice: readonly string[];
}

/** The result of an inspection of the destination. */
export interface Inspection {
  /** The finding, or why nothing was seen and the next step. */
  readonly summary: string;
  /** False: the destination does not permit the inspection. */
  readonly isSeen: boolean;
}

/** Dependencies of `setup`. */
export interface SetupDeps {
  /** The streams whose events the sink receives, for destinations by company or source. */
  readonly streams?: readonly Pick<PageContext, 'source' | 'company'>[];
  readonly tools: Tools;
  readonly signal: AbortSignal;
}

/** A sink that comes with another sink. */
export interface Companion {
  readonly suffix: string;
  readonly definition: SinkDefinition;
  readonly settings: SinkSettings;
}

/** A sink as the engine sees it. */
export type SinkDefinition = Omit<
  SinkSpec<Fields>,
  | 'answersEveryMs'
  | 'document'
  | 'companion'
  | 'inFlightMax'
  | 'format'
  | 'flaw'
  | 'own'
  | 'assurance'
  | 'shared'
  | 'advice'
  | 'testSettings'
  | 'open'
  | 'probe'
  | 'inspect'
  | 'setup'
> & {
  readonly inFlightMax: number | ((settings: SinkSettings) => number);
  answersEveryMs?(settings: SinkSettings): number;
  document?(settings: SinkSettings, format: Format): DocumentForm;
  format?(settings: SinkSettings, chosen: FormatChoice): FormatChoice;
  flaw?(settings: SinkSettings, chosen?: FormatChoice): string | null;
  own?(settings: SinkSettings): OwnThing | null;
  writes?(settings: SinkSettings): string;
  companion?(settings: SinkSettings): Companion | null;
  assurance(settings: SinkSettings): Assurance;
  shared?(settings: SinkSettings): SharedPromise;
  advice?(settings: SinkSettings): readonly string[];
  testSettings?(settings: SinkSettings): SinkSettings | null;
  open(settings: SinkSettings, opening: SinkOpening): Promise<Sink>;
  probe(
    settings: SinkSettings,
    tools: Tools,
    signal: AbortSignal,
    mark?: Json | null,
  ): Promise<void>;
  inspect?(settings: SinkSettings, tools: Tools, signal: AbortSignal): Promise<Inspection>;
  setup?(settings: SinkSettings, format: Format, deps: SetupDeps): Promise<string>;
};

/** A sink's parsed settings, as other packages see them. */
export interface SinkSettings {
  readonly type: string;
  readonly [setting: string]: unknown;
}

/** Declares a sink. Its functions get only the parsed values of `fields`, so the types agree. */
export function defineSink<F extends Fields>(spec: SinkSpec<F>): SinkDefinition {
  return spec as unknown as SinkDefinition;
}

/** Input from which a source makes its streams. */
export interface SourceOpening {
  /** Name of the source in the config. */
  readonly name: string;
  readonly upstream: Upstream;
}

/** The mapping of a record's values to OCSF attributes. */
export interface Mapping {
  /** OCSF class name, such as `network_activity`. */
  readonly class: string;
  /**
   * OCSF attribute path (dotted) by record path (dotted; a literal key with dots is tried first),
   * or several, of which the first that exists is used.
   */
  readonly fields: Readonly<Record<string, string | readonly string[]>>;
}

/** How a source's records are normalised. */
export interface RecordReading {
  readonly id: string | null;
  readonly time: readonly string[];
  /** Accepted time formats in addition to the usual ones (time-forms.ts). */
  readonly timeFormats?: readonly string[];
  readonly mapping?: Mapping;
  /** Records are normalised as audit records unless a mapping applies. Default: by their kind. */
  readonly records?: 'audit';
  /** The name of the records' parent, if they have one. */
  readonly parent?: string;
  /** The mapping for entities of a collection's first scan. Default: as its changes. */
  readonly state?: Mapping;
  /** The platform that the records are from; set by the engine. */
  readonly product?: { readonly name: string; readonly vendor_name?: string };
}

/** A source as its author writes it. */
export interface SourceSpec<F extends Fields> {
  readonly type: string;
  readonly summary: string;
  /** The APIs that it can read. */
  readonly apis: readonly ('unified' | 'services')[];
  /**
   * The source's own keys; `type`, `upstream` and the schedule keys are the engine's. A function,
   * called on first use: building zod types takes time, and a config names few of the sources.
   */
  readonly fields: () => F;
  /** A flaw in settings that are valid each by itself; null: none. */
  flaw?(settings: Settings<F>, upstream: Pick<Upstream, 'api' | 'companies'>): string | null;
  /**
   * The resource that the source needs for itself: a second source with the same one is a flaw
   * (null: none).
   */
  own?(settings: Settings<F>): OwnThing | null;
  /** Advice for valid settings; sentences, for `check`. */
  advice?(settings: Settings<F>): readonly string[];
  /** The streams, one per company and endpoint. Sends no request. */
  streams(settings: Settings<F>, opening: SourceOpening): readonly Stream[];
  /** How its records are normalised. */
  reading(settings: Settings<F>): RecordReading;
  /** How its lists are read; null for collections only. */
  list?(settings: Settings<F>): ListReading;
  /** How its collections are compared. */
  collection?(settings: Settings<F>): CollectionReading;
  /** The origin of the parents whose lists or objects the source reads. */
  parents?(settings: Settings<F>): ParentsReading;
}

/** Selects the parents. */
export interface ParentsReading {
  /**
   * Values at a dotted path: in a collection's entities, or in a list's records whose events pass a
   * filter; or the ids themselves.
   */
  readonly each:
    | { readonly of: string; readonly id: string; readonly where?: string | undefined }
    | { readonly ids: readonly string[] };
  /** Maximum duration of one rotation over all parents, milliseconds. */
  readonly sweepMs: number;
}

/** How lists are read; durations in milliseconds. */
export interface ListReading {
  readonly order: Order | 'auto';
  readonly start: 'beginning' | 'now' | number;
  readonly lookbackMs: number;
  readonly rewindEveryMs: number;
  readonly reconcileEveryMs: number;
  readonly onCursorInvalid: 'rewalk' | 'halt' | 'from_now';
}

/** How collections are compared; durations in milliseconds. */
export interface CollectionReading {
  /** Before a change is reported, a second read confirms it after this time; 0: at once. */
  readonly confirmAfterMs: number;
  /** How long an entity must be absent before its removal is reported. */
  readonly settleMs: number;
  /** Whether removals are reported; otherwise a removed entity is forgotten. */
  readonly removals: boolean;
  /** Complete scans in which an entity must be missing. */
  readonly removalsAfter: number;
  /**
   * If more removals than this share or count occur at once, they are withheld until seen three
   * times.
   */
  readonly brake: { readonly share: number; readonly count: number };
  readonly baseline: 'summary' | 'full';
  /** Maximum duration of one rotation over the details of many entities. */
  readonly sweepMs: number;
  /** Dotted paths within an entity that are not compared. */
  readonly ignore: readonly string[];
  /** Dotted paths of arrays whose order has no meaning. */
  readonly unordered: readonly string[];
  /** Dotted paths that are never learned as volatile. Default: none. */
  readonly neverIgnore?: readonly string[];
}

/** A source's parsed settings, as other packages see them. */
export interface SourceSettings {
  readonly type: string;
  readonly upstream: string;
  readonly [setting: string]: unknown;
}

/** A source as the engine sees it. */
export interface SourceDefinition {
  readonly type: string;
  readonly summary: string;
  readonly apis: readonly ('unified' | 'services')[];
  readonly fields: Fields;
  flaw?(settings: SourceSettings, upstream: Pick<Upstream, 'api' | 'companies'>): string | null;
  own?(settings: SourceSettings): OwnThing | null;
  advice?(settings: SourceSettings): readonly string[];
  streams(settings: SourceSettings, opening: SourceOpening): readonly Stream[];
  reading(settings: SourceSettings): RecordReading;
  list?(settings: SourceSettings): ListReading;
  collection?(settings: SourceSettings): CollectionReading;
  parents?(settings: SourceSettings): ParentsReading;
}

/** Declares a source. Its functions get only the parsed values of `fields`, so the types agree. */
export function defineSource<F extends Fields>(spec: SourceSpec<F>): SourceDefinition {
  let made: F | undefined;
  const definition = {
    ...spec,
    get fields(): F {
      made ??= spec.fields();
      return made;
    },
  };
  return definition as unknown as SourceDefinition;
}
