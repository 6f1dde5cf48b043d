// A pair: a source of an API that ends, and its successor on another API. Both are read side by
// side, and each record of either reaches the sinks once. These types pass between the stages: the
// pair (PairPlan), the comparison data of a record (PairRecord), and the status (PairReport).
// src/succession/README.md explains the mechanism.

/** The two sides of a pair: the source that ends, and its successor. */
export type PairSide = 'old' | 'new';

/**
 * `shadow`: the old side delivers; `cut_over`: the new side delivers. `ready` (a `shadow` that can
 * be cut over) is computed and not stored.
 */
export type PairPhase = 'shadow' | 'cut_over';

/** A pair as configured. */
export interface PairPlan {
  /** Names of the two sources. The successor's name is the pair's key. */
  readonly successor: string;
  readonly predecessor: string;
  /** How long a record waits for the other side to show it, milliseconds. */
  readonly patienceMs: number;
  /** Poll interval of each side, milliseconds; 0 or absent: unknown. */
  readonly everyMs?: Readonly<Record<PairSide, number>>;
  /** The comparison starts this long before the pairing, milliseconds. */
  readonly overlapMs: number;
  readonly streams: Readonly<Record<PairSide, readonly string[]>>;
  /** Companies by stream, for streams of one company. Default: none. */
  readonly companies?: Readonly<Record<string, string>>;
  /** Fingerprint of the folding rules: if it changes, waiting records are compared again. */
  readonly rules: string;
  /**
   * There may be several companies: if only one side names a record's company, the content must
   * match too.
   */
  readonly needsContent: boolean;
}

/** The comparison data of one record. */
export interface PairRecord {
  /** Its identity on both sides, 16 bytes: parent and id as text; without an id, its time. */
  readonly key: Uint8Array;
  /** Its company, from its stream or its content; null: unknown. */
  readonly company: string | null;
  /** Its id as text, for reports, at most 64 characters; null: it has none. */
  readonly id: string | null;
  /** Epoch milliseconds; null: no valid time. */
  readonly happenedAt: number | null;
  /**
   * JSON object: by folded path, a type code and a digest of the folded value. Equal digests are
   * equal values, whatever the type codes.
   */
  readonly fields: string;
  /** Digests under which the other side may have stored its id before the pairing. */
  readonly before: readonly (readonly [number, number])[];
  /**
   * For an object per parent: the state that the other side's streams have stored if they reported
   * the same content.
   */
  readonly object?: {
    /** Streams of the other side that may have it, and the parent's id there. */
    readonly streams: readonly string[];
    readonly parent: string;
    /** The content's digest as the other side computes it. */
    readonly digest: string;
  };
  /**
   * `change`: a change of a collection, compared by its values. `summary`: belongs to one side,
   * such as a baseline; only the delivering side delivers it. Default: a record.
   */
  readonly as?: 'change' | 'summary';
  /** Byte range in the page's body. */
  readonly start: number;
  readonly end: number;
}

/** A page of a stream that is part of a pair. */
export interface PairPage {
  /** The successor's name. */
  readonly pair: string;
  readonly side: PairSide;
  /** One per kept record, in order. */
  readonly records: readonly PairRecord[];
}

/** Entities of a successor's first full scan, with the last state that the predecessor reported. */
export interface PairScan {
  /** The successor's name. */
  readonly pair: string;
  /** Entities that both sides have; folded fields as in `PairRecord`. */
  readonly entities: readonly { readonly id: string; readonly old: string; readonly new: string }[];
  /** At the end of the scan: entities of the predecessor that the successor lacks. */
  readonly missing?: PairAlone | undefined;
}

/** A waiting record, to be compared again. */
export interface WaitingRecord {
  readonly id: number;
  readonly side: PairSide;
  /** A PageContext as JSON. */
  readonly context: string;
  readonly uid: Uint8Array;
  readonly record: Uint8Array;
}

/** Records that only one side has shown. */
export interface PairAlone {
  readonly count: number;
  /** Ids of at most three. */
  readonly examples: readonly string[];
}

/** A path whose values differ in matched records. */
export interface PairDifference {
  readonly path: string;
  readonly count: number;
  /** Up to three pairs of types: the old side's and the new side's. */
  readonly types: readonly (readonly [string, string])[];
}

/** Status of a pair. Times are epoch milliseconds. */
export interface PairReport {
  readonly successor: string;
  readonly predecessor: string;
  readonly phase: PairPhase | 'ready';
  readonly begunAt: number;
  readonly cutOverAt: number | null;
  /** Records that both sides have shown. */
  readonly matched: number;
  /** Of these, records delivered by the other side before the pairing; they are not compared. */
  readonly known: number;
  /** Streams of either side that had delivered nothing before the pairing. */
  readonly fresh: readonly string[];
  /** Shown only by one side although the other was read past them. */
  readonly onlyOld: PairAlone;
  readonly onlyNew: PairAlone;
  /** Delivered before the other side was read past them. */
  readonly early: PairAlone;
  /** Records that wait for the other side. */
  readonly waiting: number;
  readonly waitingBytes: number;
  /** Matched records with a field that differs. */
  readonly differing: PairAlone;
  readonly fields: readonly PairDifference[];
  /** Fields that one side only has, with the number of records. */
  readonly onlyOldFields: Readonly<Record<string, number>>;
  readonly onlyNewFields: Readonly<Record<string, number>>;
  /** Equal ids with times too far apart: counted as two records. */
  readonly apart: PairAlone;
  /** Since when records are withheld because too few match; null: none is. */
  readonly brake: { readonly since: number; readonly examples: readonly string[] } | null;
  /** Up to when all records of each side's upstream are stored, epoch milliseconds; 0: never. */
  readonly reached: Readonly<Record<PairSide, number>>;
  /** Reasons against a cutover without force; empty: none. */
  readonly notReady: readonly string[];
}

/** Names of the value types that the type codes in `fields` stand for. */
export const pairTypeNames: Readonly<Record<string, string>> = {
  ...{ s: 'text', n: 'number', b: 'boolean', a: 'array', t: 'time', e: 'epoch time' },
};
