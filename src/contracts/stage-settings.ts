// Settings that a config has for the stages: config/ parses them, and the stages use them. Spans are milliseconds.

import type { Secret } from './secret.ts';
import type { TlsSettings } from './tools.ts';

/** When the streams of a source are polled. */
export type Schedule =
  | {
      /** The longest interval. */
      readonly everyMs: number;
      /** The shortest interval of an adaptive schedule; absent: the interval is fixed. */
      readonly minMs?: number;
    }
  | { readonly cron: string; readonly timezone: string | undefined };

/** The expected volume of each stream of a source. */
export interface ExpectedVolume {
  readonly perMs: number;
  readonly atLeast: number;
}

/** The `succeeds` setting of a source. */
export interface Succession {
  /** The source that ends. */
  readonly source: string;
  /** Path in the new records of the id that the old ones have; undefined: the source's own id. */
  readonly id?: string | undefined;
  /** Paths in the new records, by paths in the old ones. */
  readonly fields: Readonly<Record<string, string>>;
  /** Paths that are not compared, in the names of either side. */
  readonly ignore: readonly string[];
  readonly overlapMs: number;
  readonly patienceMs: number;
}

/** The masks, as a config names them. */
export const maskKinds = ['hash', 'domain', 'last4', 'network'] as const;

/** One of the masks. */
export type MaskKind = (typeof maskKinds)[number];

/** Masks by dotted path within the OCSF event; a path into a list applies to each element. */
export type Masks = Readonly<Record<string, MaskKind>>;

/** One entry of `routes`. */
export interface Route {
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly where?: string | undefined;
  readonly redact?: readonly string[] | undefined;
  readonly mask?: Masks | undefined;
  /** The key of `hash`; a config sets it on each route with a mask. */
  readonly maskKey?: Secret | undefined;
}

/** Location of ids and kinds in OCSF events: dotted paths, also through arrays. */
export interface MatchPaths {
  /** Ids of a changed entity and its parents. */
  readonly changes: readonly string[];
  /** Ids of the entity in an audit event. */
  readonly trail: readonly string[];
  /** Its name for the entity's kind. */
  readonly type: readonly string[];
  /** The company; an event without one may belong to any. */
  readonly company: readonly string[];
}

/** The `watch.drift` setting. */
export interface DriftSettings {
  /** Sources whose changes must be explained, and the sources that explain them. */
  readonly changes: readonly string[];
  readonly trail: readonly string[];
  readonly withinMs: number;
  readonly match: MatchPaths;
}

/** From least to most severe. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const;

/** The severity of a line, and the minimum severity that is written. */
export type LogLevel = (typeof logLevels)[number];

/** An OpenTelemetry collector that receives log lines or metrics. */
export interface OtlpCollector {
  /** The endpoint, e.g. `http://collector:4318/v1/logs`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, Secret>>;
  readonly tls?: TlsSettings | undefined;
}

/** The default of `status.ready.streams`. */
export const usualReadyShare = 0.5;
