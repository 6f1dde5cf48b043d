// What the spool and its worker thread say to each other, several questions or answers in one
// message since each message has its price. Every question gets one answer with the same id, after
// the commit that covers it; id 0 is the worker's own word that the database is open. What can be
// asked is the worker's table of operations.

import type { ErrorCode } from '../contracts/errors.ts';
import type { Offset } from '../contracts/event.ts';
import type { Numbering } from '../contracts/numbering.ts';
import type { SpoolGauge } from '../contracts/spool.ts';
import type { OutboxRow } from './outbox.ts';
import type { StoreSettings } from './store.ts';

/** What the worker is started with. */
export interface WorkerSettings extends StoreSettings {
  readonly sinks: readonly string[];
  /** Nothing waits for company, or for its second: for tests that wait for each step. */
  readonly eager?: boolean;
  /** The database is a cache of a log, to which all that changes in it is handed. */
  readonly isCache?: boolean;
  /** Left out: as much as a full disk asks for. Less is for tests that open hundreds. */
  readonly reserveBytesMax?: number;
}

/** An operation that the worker is asked for, by its name. */
export interface WorkerRequest {
  readonly id: number;
  readonly op: string;
  readonly args: readonly unknown[];
}

/** A failure as it crosses the thread's border. */
export interface ReportedError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
}

/** The worker's answer to one question: a result or an error. */
export interface WorkerReply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: ReportedError;
  /** Of an append: the memory that its pages came in. */
  readonly memory?: readonly ArrayBuffer[];
}

/** What the worker says after a commit: the answers, and how full the spool is. */
export interface WorkerReplies {
  readonly answers: readonly WorkerReply[];
  readonly gauge?: SpoolGauge;
  /** With the first word. */
  readonly numbering?: Numbering;
  /** As well: the offsets of answers held. */
  readonly held?: readonly Offset[];
  /** Where the database is a cache: what has changed by these answers. */
  readonly changed?: readonly OutboxRow[];
  /** Events kept for a removed sink were released, and wait for a report. */
  readonly hasReleased?: boolean;
  /** The disk has no room for pages. */
  readonly diskFull?: boolean;
  /** The database is damaged: nothing can be relied on until the next start mends it. */
  readonly damage?: ReportedError;
}
