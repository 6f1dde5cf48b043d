// How a connector or format presents itself. One declaration gives validation, type, default, error
// text, JSON Schema and the reference page. A sink or format author exports one definition and adds
// one line to a list (connectors/index.ts, formats/index.ts); nothing under src/ is touched.

import type { z } from 'zod';
import type { DocumentForm, Format } from './format.ts';
import type { Json } from './json.ts';
import type { Assurance, Sink, SinkOpening } from './sink.ts';
import type { Order, Stream } from './source.ts';
import type { Tools } from './tools.ts';
import type { Upstream } from './upstream.ts';

/** The keys of one config block, each a zod type with a description. */
export type Fields = z.ZodRawShape;

/** A block's settings once parsed. */
export type Settings<F extends Fields> = z.output<z.ZodObject<F>>;

/** `format: cef` or `format: { type: cef, … }`, parsed: the type and that format's own settings. */
export interface FormatChoice {
  readonly type: string;
  readonly [setting: string]: unknown;
}

/** What encoded events are made of: lines of text, one JSON object a line, OTLP's log records. */
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

/** Declares a format. `make` gets only what `fields` has parsed, so the types meet here. */
export function defineFormat<F extends Fields>(spec: FormatSpec<F>): FormatDefinition {
  return spec as unknown as FormatDefinition;
}

/** A thing outside that only one sink may use: the setting that names it, and its full name. */
export interface OwnThing {
  readonly key: string;
  readonly name: string;
  /**
   * What comes between the setting and the number of a shard, each of which has one of its own; left
   * out: the setting has to say where the number goes.
   */
  readonly shardSeparator?: string;
  /** A setting beside it that is the number of the shard, and that no config gives. */
  readonly shardKey?: string;
  /** The same for the shards that have work besides: by number, `key` as it is for that shard. */
  readonly othersKey?: string;
  /** What is wrong with it where processes of several machines share the state; absent: nothing. */
  readonly flawIfShared?: string | undefined;
  /** A setting that is one for all that share something else: its key, what that is, its value. */
  readonly alike?: { readonly key: string; readonly of: string; readonly value: string };
}

/** What `init` needs to write a first config with a sink. */
export interface SinkSample {
  /** What the config calls it; left out: its type. */
  readonly name?: string;
  /** What is asked for, and an answer that will often do; null: nothing is asked. */
  readonly to: { readonly what: string; readonly usual: string } | null;
  /** The lines of its YAML: texts asked for in JSON's quotes, likely changes as comments. */
  lines(to: string): readonly string[];
}

/** A sink as its author writes it. */
export interface SinkSpec<F extends Fields> {
  readonly type: string;
  readonly summary: string;
  /** The sink's own keys; `type`, `format`, `batch` and `retry` are the engine's. */
  readonly fields: F;
  /**
   * `pages`: batches are of whole pages as upstream sent them, with every answer of upstream among
   * them. Then there is no format, and no route to it filters or redacts. Left out: events.
   */
  readonly takes?: 'events' | 'pages';
  /**
   * What of its marks goes along when a state is carried to where its own thing has another place, as into shards; the
   * marks are of all states that the new one is made of. Left out: nothing.
   */
  movedMark?(marks: readonly Json[]): Json | null;
  /** Of pages: an answer that says the same again is held once in so many milliseconds. */
  answersEveryMs?(settings: Settings<F>): number;
  /** Shapes of the formats it can carry (formats/index.ts says which those are). */
  readonly carries: readonly FormatShape[];
  /** Type of the format that it has where the config names none. */
  readonly usualFormat: string;
  readonly sample: SinkSample;
  /** True where `send` wants whole documents and not lines (OTLP). */
  readonly documents?: boolean;
  /** Unresolved sends at a time. More than one only where an answer takes its time (settling). */
  readonly inFlightMax: number | ((settings: Settings<F>) => number);
  /** How an event stands in this sink's own documents, where no format knows (`_bulk`). */
  document?(settings: Settings<F>, format: Format): DocumentForm;
  /** Wraps or completes the chosen format, for a sink that frames its events (syslog). */
  format?(settings: Settings<F>, chosen: FormatChoice): FormatChoice;
  /** What is wrong with settings that each are right (`null`: nothing), e.g. TLS without https. */
  flaw?(settings: Settings<F>): string | null;
  /** What it must have for itself: a second sink with the same is a flaw (`null`: nothing). */
  own?(settings: Settings<F>): OwnThing | null;
  /** The output file on this machine that one process writes to at a time; left out: there is none. */
  writes?(settings: Settings<F>): string;
  /** A sink that comes with it and gets the same events at its own pace, called `NAME.SUFFIX`. */
  companion?(settings: Settings<F>): Companion | null;
  assurance(settings: Settings<F>): Assurance;
  /**
   * Where processes on several machines share the state: what it promises then, since one that was
   * paused and resumes may still write what its successor has written; left out: `assurance`, because
   * the destination refuses such a write.
   */
  shared?(settings: Settings<F>): SharedPromise;
  /** What an author of a config should know though nothing is wrong; sentences, for `check`. */
  advice?(settings: Settings<F>): readonly string[];
  /** Batch bounds where the config gives none. */
  readonly batch?: { readonly events: number; readonly bytes: number; readonly waitMs: number };
  /** Opens without waiting for the far side: what is unreachable shows as `retry` when sending. */
  open(settings: Settings<F>, opening: SinkOpening): Promise<Sink>;
  /**
   * What a test event is sent with, beside whatever runs (`check --send-test`); null: none is sent,
   * since a run goes on from what stands at the far side. Left out: the settings as they are.
   */
  testSettings?(settings: Settings<F>): Settings<F> | null;
  /**
   * For `check --connect`: connects and authenticates, sends nothing; throws an ExportError. `mark`:
   * what the sink has had remembered last, where the state has something.
   */
  probe(
    settings: Settings<F>,
    tools: Tools,
    signal: AbortSignal,
    mark?: Json | null,
  ): Promise<void>;
  /**
   * For `check --connect`: compares what it sends with what its far side says that it keeps, where
   * that would drop the rest without a word. Throws an ExportError where something would be lost.
   */
  inspect?(settings: Settings<F>, tools: Tools, signal: AbortSignal): Promise<Inspection>;
  /**
   * For `check --setup`: makes what it needs at its far side, such as an index template, as often
   * as it is asked; resolves to what that is. Throws an ExportError.
   */
  setup?(settings: Settings<F>, format: Format, deps: SetupDeps): Promise<string>;
}

/** The promise of a sink where several processes share the state. */
export interface SharedPromise {
  readonly assurance: Assurance;
  /** Why it is that, and what to do for more; one sentence each, for `check`. */
  readonly advice: readonly string[];
}

/** What a look at a far side has shown. */
export interface Inspection {
  /** What was seen, or why nothing was and what to do. */
  readonly told: string;
  /** False: it may not be looked at. */
  readonly isSeen: boolean;
}

/** What a sink sets its far side up with. */
export interface SetupDeps {
  readonly tools: Tools;
  readonly signal: AbortSignal;
}

/** A sink that comes with another. */
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
  flaw?(settings: SinkSettings): string | null;
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

/** A sink's parsed settings, seen from outside the sink. */
export interface SinkSettings {
  readonly type: string;
  readonly [setting: string]: unknown;
}

/** Declares a sink. Its functions get only what `fields` has parsed, so the types meet here. */
export function defineSink<F extends Fields>(spec: SinkSpec<F>): SinkDefinition {
  return spec as unknown as SinkDefinition;
}

/** What a source is given to make its streams with. */
export interface SourceOpening {
  /** Name of the source in the config. */
  readonly name: string;
  readonly upstream: Upstream;
}

/** What of a record goes where. */
export interface Mapping {
  /** OCSF class name, such as `network_activity`. */
  readonly class: string;
  /**
   * OCSF attribute path (dotted) by record path (dotted; a literal key with dots is tried first),
   * or several, of which the first that is there wins.
   */
  readonly fields: Readonly<Record<string, string | readonly string[]>>;
}

/** How a source's records are to be normalised. */
export interface RecordReading {
  readonly id: string | null;
  readonly time: readonly string[];
  /** Forms of times in addition to the usual ones (time-forms.ts). */
  readonly timeFormats?: readonly string[];
  readonly mapping?: Mapping;
  /** Records are read as audit records are, where no mapping says otherwise; left out: as their kind. */
  readonly records?: 'audit';
  /** What the parent of its records is called, where they have one. */
  readonly parent?: string;
  /** What entities of a collection's first reading are; left out: as its changes. */
  readonly state?: Mapping;
  /** The platform that the records are from; set by the engine. */
  readonly product?: { readonly name: string; readonly vendor_name?: string };
}

/** A source as its author writes it. */
export interface SourceSpec<F extends Fields> {
  readonly type: string;
  readonly summary: string;
  /** Which of the two APIs it can read. */
  readonly apis: readonly ('unified' | 'services')[];
  /**
   * The source's own keys; `type`, `upstream` and those of its schedule are the engine's. A function,
   * called where they are first needed: zod takes its time, and a config names few of the sources.
   */
  readonly fields: () => F;
  /** Says what is wrong with settings that each are right (`null`: nothing). */
  flaw?(settings: Settings<F>, upstream: Pick<Upstream, 'api' | 'companies'>): string | null;
  /** What it must have for itself: a second source with the same is a flaw (`null`: nothing). */
  own?(settings: Settings<F>): OwnThing | null;
  /** The streams, one per company and endpoint. Nothing is asked of upstream yet. */
  streams(settings: Settings<F>, opening: SourceOpening): readonly Stream[];
  /** How its records are normalised. */
  reading(settings: Settings<F>): RecordReading;
  /** How its lists are read; null for collections only. */
  list?(settings: Settings<F>): ListReading;
  /** How its collections are compared. */
  collection?(settings: Settings<F>): CollectionReading;
  /** Where the parents come from whose lists or objects it reads. */
  parents?(settings: Settings<F>): ParentsReading;
}

/** Which parents there are. */
export interface ParentsReading {
  /**
   * Values at a dotted path: of a collection's entities, or of a list's records whose events pass a
   * filter; or the ids themselves.
   */
  readonly each:
    | { readonly of: string; readonly id: string; readonly where?: string | undefined }
    | { readonly ids: readonly string[] };
  /** How long a rotation over all of them may take, milliseconds. */
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
  /** A change is read a second time after this before it is told; 0: at once. */
  readonly confirmAfterMs: number;
  /** How long an absence must last. */
  readonly settleMs: number;
  /** Whether what is gone is told; else it is forgotten. */
  readonly removals: boolean;
  /** Complete readings that an entity must be missing from. */
  readonly removalsAfter: number;
  /** More removals at once than this share or count are held until they are seen three times. */
  readonly brake: { readonly share: number; readonly count: number };
  readonly baseline: 'summary' | 'full';
  /** How long a rotation over the details of many entities may take. */
  readonly sweepMs: number;
  /** Dotted paths within an entity that are not compared. */
  readonly ignore: readonly string[];
  /** Dotted paths of arrays whose order says nothing. */
  readonly unordered: readonly string[];
  /** Dotted paths that are never learned as volatile. Default: none. */
  readonly neverIgnore?: readonly string[];
}

/** A source's parsed settings, seen from outside the source. */
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
  streams(settings: SourceSettings, opening: SourceOpening): readonly Stream[];
  reading(settings: SourceSettings): RecordReading;
  list?(settings: SourceSettings): ListReading;
  collection?(settings: SourceSettings): CollectionReading;
  parents?(settings: SourceSettings): ParentsReading;
}

/** Declares a source. Its functions get only what `fields` has parsed: the types meet here. */
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
