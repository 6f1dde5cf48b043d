// What a verification finds, as everybody gets it: the command, its JSON and its page.

import type { ArchiveComparison } from '../comparison.ts';
import type { EntryOf } from '../entries.ts';
import type { Verifier } from '../note.ts';

/** Something that is not as the signed log says, and where. */
export interface Break {
  /** The entry's index in the log; null where no single entry is concerned. */
  readonly index: number | null;
  /** The last entry concerned, where there are several in a row. */
  readonly through?: number;
  readonly stream: string | null;
  /** The entry's number within its stream. */
  readonly seq: number | null;
  /** The object concerned, by its name in the archive. */
  readonly object: string | null;
  readonly what: string;
}

/** Something that sluice could not have, and said so at the time: the archive tells of it rightly. */
export interface ReportedGap {
  readonly index: number;
  readonly stream: string;
  readonly seq: number;
  /** RFC 3339. */
  readonly at: string;
  readonly what: string;
  /** False where a later entry shows that it has ended. */
  readonly isOpen: boolean;
}

/** What one day of a stream holds. */
export interface StreamDay {
  pages: number;
  records: number;
  gaps: number;
  breaks: number;
}

/** One stream, as far as it was read. */
export interface VerifiedStream {
  readonly stream: string;
  pages: number;
  /** Answers of upstream among them. */
  answers: number;
  records: number;
  /** When the first and the last page were read, RFC 3339. */
  first: string;
  last: string;
  /** By day (UTC) on which pages were read. */
  readonly days: Map<string, StreamDay>;
}

/** That somebody outside has seen the log: its first `size` entries existed `at` that time. */
export interface WitnessedSize {
  readonly size: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Who says so. */
  readonly by: readonly string[];
  /** Until when the certificates behind a stamp are valid, epoch milliseconds. */
  readonly until?: number;
}

/** A config that was in force from then on. */
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

/** Records that went from one page, and why. */
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

/** What was removed as entries say, by cause. */
export interface Removed {
  /** Segments and cuts of the lake that retention (`keep`) removed, and the pages of these segments. */
  readonly retention: { objects: number; pages: number };
  /** The same, removed on request (`archive prune`). */
  readonly asked: { objects: number; pages: number };
  /** Erased records, and the erasures whose rest of the body is not proven. */
  readonly erased: { records: number; unproven_rest: number };
  /** Rows of the lake that were erased with their records. */
  lake_rows: number;
}

/** A comparison of a stream with what upstream served then, as the log tells of it. */
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

/** What was found of an archive. */
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
  /** Time stamps that stand, and the newest of them. */
  readonly stamps: number;
  readonly stamp: WitnessedSize | null;
  /** Checkpoints that as many witnesses as were asked for have cosigned, and the newest of them. */
  readonly cosigned: number;
  readonly cosignature: WitnessedSize | null;
  readonly pages: number;
  readonly records: number;
  /** Bodies of pages that were read, in bytes as upstream sent them. */
  readonly bodyBytes: number;
  readonly streams: readonly VerifiedStream[];
  readonly gaps: readonly ReportedGap[];
  readonly erasures: readonly Erasure[];
  readonly removed: Removed;
  /** Objects that no entry names, at most a thousand; no evidence of anything. */
  readonly strays: readonly string[];
  /** The first one, and each that differs from the one before. */
  readonly configs: readonly ConfigChange[];
  readonly successions: readonly SuccessionSeen[];
  /** Of the logs of other shards, one each. */
  readonly siblings: readonly SiblingSeen[];
  /** The shards that have work by the newest start, and when that was (RFC 3339); null: no entry says. */
  readonly work: {
    readonly index: number;
    readonly at: string;
    readonly shards: readonly number[];
  } | null;
  /** The newest start, where it is of this version and names no shards: its writer was not that of a shard. */
  readonly unsharded: { readonly index: number; readonly at: string } | null;
  /** The last comparison of each stream, and before it those that have found something. */
  readonly compared: readonly Compared[];
  /** In the order of the log. */
  readonly breaks: readonly Break[];
  /** Found beyond as many as are listed. */
  readonly breaksOmitted: number;
  /** What a reader has to know of what was not, or cannot be, checked. */
  readonly remarks: readonly string[];
}
