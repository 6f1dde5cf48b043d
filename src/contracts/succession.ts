// A pair: a source of an API that ends, and its successor on another API. Both are read side by
// side, and each record of either reaches the sinks once. Here is what the stages say to each other
// about it: what a pair is (PairPlan), what is compared of a record (PairRecord), and what is known
// of a pair (PairReport). How a pair works is in src/fetch/succession/README.md.

/** The two sides of a pair: the source that ends, and its successor. */
export type PairSide = 'old' | 'new';

/**
 * `shadow`: the old side delivers; `cut_over`: the new side does. `ready`, a `shadow` that can be cut
 * over, is worked out and not stored.
 */
export type PairPhase = 'shadow' | 'cut_over';

/** A pair as the config has it. */
export interface PairPlan {
  /** Names of the two sources. A pair is known by its successor. */
  readonly successor: string;
  readonly predecessor: string;
  /** How long a record waits for the other side to show it, milliseconds. */
  readonly patienceMs: number;
  /** How long is between two polls of each side, milliseconds; 0 or left out: not known. */
  readonly everyMs?: Readonly<Record<PairSide, number>>;
  /** How long before the pairing the comparison begins, milliseconds. */
  readonly overlapMs: number;
  readonly streams: Readonly<Record<PairSide, readonly string[]>>;
  /** Companies by the streams that are of one alone; left out: none is. */
  readonly companies?: Readonly<Record<string, string>>;
  /** Stands for how records are folded: with another one, records that wait are compared again. */
  readonly rules: string;
  /** There may be several companies: where one side only says whose a record is, content must agree. */
  readonly needsContent: boolean;
}

/** What is compared of one record. */
export interface PairRecord {
  /** Who it is on both sides, 16 bytes: parent and id as text; without id its time. */
  readonly key: Uint8Array;
  /** Whose it is, by its stream or by itself; null: neither says. */
  readonly company: string | null;
  /** Its id as text, for reports, at most 64 characters; null: it has none. */
  readonly id: string | null;
  /** Epoch milliseconds; null: it has no time that can be read. */
  readonly happenedAt: number | null;
  /**
   * JSON object: by folded path, one letter for the value's type and a digest of the folded value.
   * Equal digests are equal values, whatever the letters.
   */
  readonly fields: string;
  /** Digests by which identities of the other side, stored before the pairing, may know its id. */
  readonly before: readonly (readonly [number, number])[];
  /** Of an object per parent: what the other side's streams have stored if they reported it as it is. */
  readonly object?: {
    /** Streams of the other side that may have it, and the parent's id there. */
    readonly streams: readonly string[];
    readonly parent: string;
    /** The content's digest, as the other side makes it. */
    readonly digest: string;
  };
  /**
   * `change`: a change of a collection, which is only a change to the same values. `summary`: of one
   * side alone, such as a baseline, delivered only by the side that delivers. Default: a record.
   */
  readonly as?: 'change' | 'summary';
  /** Where its bytes are in the page's body. */
  readonly start: number;
  readonly end: number;
}

/** A page of a stream that is part of a pair. */
export interface PairPage {
  /** The successor's name. */
  readonly pair: string;
  readonly side: PairSide;
  /** One for each kept record, in order. */
  readonly records: readonly PairRecord[];
}

/** Entities of a successor's first full scan, beside its predecessor's last reported state. */
export interface PairScan {
  /** The successor's name. */
  readonly pair: string;
  /** Entities that both have; the folded fields as in `PairRecord`. */
  readonly entities: readonly { readonly id: string; readonly old: string; readonly new: string }[];
  /** At the end of the scan: entities of the predecessor that the successor does not show. */
  readonly missing?: PairAlone | undefined;
}

/** A record that waits, to be compared again. */
export interface WaitingRecord {
  readonly id: number;
  readonly side: PairSide;
  /** A PageContext as JSON. */
  readonly context: string;
  readonly uid: Uint8Array;
  readonly record: Uint8Array;
}

/** Records of one side that the other has not shown. */
export interface PairAlone {
  readonly count: number;
  /** Ids of up to three of them. */
  readonly examples: readonly string[];
}

/** A path whose values differ in matched records. */
export interface PairDifference {
  readonly path: string;
  readonly count: number;
  /** Up to three pairs of types: the old side's and the new side's. */
  readonly types: readonly (readonly [string, string])[];
}

/** What is known of a pair. Times are epoch milliseconds. */
export interface PairReport {
  readonly successor: string;
  readonly predecessor: string;
  readonly phase: PairPhase | 'ready';
  readonly begunAt: number;
  readonly cutOverAt: number | null;
  /** Records that both sides have shown. */
  readonly matched: number;
  /** Of these, records that the other side had delivered before the pairing; they are not compared. */
  readonly known: number;
  /** Streams of either side that had delivered nothing before the pairing. */
  readonly fresh: readonly string[];
  /** Shown by one side only, where the other was read past them. */
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
  /** Equal ids whose times are too far apart: they count as two records. */
  readonly apart: PairAlone;
  /** Since when records are held since too few match; null: none is. */
  readonly brake: { readonly since: number; readonly examples: readonly string[] } | null;
  /** Up to when all that each side's upstream showed is stored, epoch milliseconds; 0: never. */
  readonly reached: Readonly<Record<PairSide, number>>;
  /** Why it cannot be cut over without force; empty: it can. */
  readonly notReady: readonly string[];
}

/** What the letter before a digest stands for: the value's type. */
export const pairTypeNames: Readonly<Record<string, string>> = {
  ...{ s: 'text', n: 'number', b: 'boolean', a: 'array', t: 'time', e: 'epoch time' },
};
