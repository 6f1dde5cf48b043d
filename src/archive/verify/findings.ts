// The results of a verification, for the command, its JSON and its page.

import type { ArchiveComparison } from '../comparison.ts';
import type { EntryOf } from '../entries.ts';
import type { Verifier } from '../note.ts';

/** A contradiction to the signed log, with its location. */
export interface Break {
  /** The entry's index in the log; null: it concerns no single entry. */
  readonly index: number | null;
  /** The last affected entry of several in a row. */
  readonly through?: number;
  readonly stream: string | null;
  /** The entry's number within its stream. */
  readonly seq: number | null;
  /** The affected object, by its name in the archive. */
  readonly object: string | null;
  readonly what: string;
}

/** Data that sluice could not get and reported at the time; the archive is correct about it. */
export interface ReportedGap {
  readonly index: number;
  readonly stream: string;
  readonly seq: number;
  /** RFC 3339. */
  readonly at: string;
  readonly what: string;
  /** False if a later entry shows that it has ended. */
  readonly isOpen: boolean;
}

/** The totals of one day of a stream. */
export interface StreamDay {
  pages: number;
  records: number;
  gaps: number;
  breaks: number;
}

/** The totals of one stream, as far as it was read. */
export interface VerifiedStream {
  readonly stream: string;
  pages: number;
  /** Number of responses of upstream among the pages. */
  answers: number;
  records: number;
  /** Reading times of the first and the last page, RFC 3339. */
  first: string;
  last: string;
  /** By the day (UTC) on which pages were read. */
  readonly days: Map<string, StreamDay>;
}

/** An external proof: the log's first `size` entries existed `at` that time. */
export interface WitnessedSize {
  readonly size: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The proving parties. */
  readonly by: readonly string[];
  /** Until when the certificates of a stamp are valid, epoch milliseconds. */
  readonly until?: number;
}

/** A config in force from an entry on. */
export interface ConfigChange {
  readonly index: number;
  /** RFC 3339. */
  readonly at: string;
  readonly sha256: string;
}

/** Which source of a pair delivers from an entry on. */
export interface SuccessionSeen extends Omit<EntryOf<'succession'>, 't' | 'stream' | 'seq'> {
  readonly index: number;
}

/** Records erased from one page, with the reason. */
export interface Erasure {
  readonly index: number;
  /** RFC 3339. */
  readonly at: string;
  /** Index of the page's entry. */
  readonly page: number;
  /** SHA-256 of each, in hex. */
  readonly records: readonly string[];
  readonly reason: string;
}

/** Removed data by its entries, by cause. */
export interface Removed {
  /** Segments and lake cuts deleted by retention (`keep`), and the pages of these segments. */
  readonly retention: { objects: number; pages: number };
  /** The same, on request (`archive prune`). */
  readonly asked: { objects: number; pages: number };
  /** Erased records, and erasures without a proven rest of the body. */
  readonly erased: { records: number; unproven_rest: number };
  /** Rows of the lake that were erased with their records. */
  lake_rows: number;
}

/** A comparison of a stream with upstream's data, from the log. */
export interface Compared extends ArchiveComparison {
  readonly index: number;
  readonly stream: string;
  /** RFC 3339. */
  readonly at: string;
}

/** A tree that the log of another shard had signed, by the newest entry that names it. */
export interface SiblingSeen {
  readonly index: number;
  readonly shard: number;
  readonly size: number;
  /** In hex. */
  readonly root: string;
}

/** The result of a verification. */
export interface Report {
  readonly place: string;
  readonly origin: string;
  /** Entries under the newest checkpoint. */
  readonly size: number;
  /** Root of the tree, base64. */
  readonly root: string;
  /** Keys that have signed the newest checkpoint. */
  readonly signedBy: readonly Verifier[];
  /** Older checkpoints that were checked against the tree. */
  readonly checkpoints: number;
  /** Number of valid time stamps, and the newest of them. */
  readonly stamps: number;
  readonly stamp: WitnessedSize | null;
  /** Number of checkpoints with the required cosignatures, and the newest of them. */
  readonly cosigned: number;
  readonly cosignature: WitnessedSize | null;
  readonly pages: number;
  readonly records: number;
  /** Size of the bodies that were read, in bytes as upstream sent them. */
  readonly bodyBytes: number;
  readonly streams: readonly VerifiedStream[];
  readonly gaps: readonly ReportedGap[];
  readonly erasures: readonly Erasure[];
  readonly removed: Removed;
  /** Objects that no entry names, at most a thousand; no evidence. */
  readonly strays: readonly string[];
  /** The first one, and each that differs from the previous one. */
  readonly configs: readonly ConfigChange[];
  readonly successions: readonly SuccessionSeen[];
  /** One for the log of each other shard. */
  readonly siblings: readonly SiblingSeen[];
  /** The shards with work, from the newest start and its time (RFC 3339); null: no entry has them. */
  readonly work: {
    readonly index: number;
    readonly at: string;
    readonly shards: readonly number[];
  } | null;
  /** The newest start, if it is of this version and names no shards: its writer was not the writer of a shard. */
  readonly unsharded: { readonly index: number; readonly at: string } | null;
  /** The last comparison of each stream, and earlier ones with differences. */
  readonly compared: readonly Compared[];
  /** In the order of the log. */
  readonly breaks: readonly Break[];
  /** Number of breaks beyond the listed ones. */
  readonly breaksOmitted: number;
  /** Facts that were not, or cannot be, checked. */
  readonly remarks: readonly string[];
}
