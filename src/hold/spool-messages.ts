// Messages between the spool and its worker thread. One message carries several requests or
// replies, because each message has a cost. Every request gets one reply with the same id, after
// the commit that covers it; id 0 is the worker's own message that the database is open. The
// operations are the worker's table.

import type { MessagePort } from 'node:worker_threads';
import type { ErrorCode, Numbering, Offset, SpoolGauge } from '../contracts/index.ts';
import type { OutboxRow } from './outbox.ts';
import type { StoreSettings } from './store.ts';

/** Start data of the worker. */
export interface WorkerSettings extends StoreSettings {
  readonly sinks: readonly string[];
  /** Nothing is delayed for batching or for its second: for tests that await each step. */
  readonly eager?: boolean;
  /** Default: as much as a full disk needs. Smaller values are for tests that open hundreds. */
  readonly reserveBytesMax?: number;
}

/** Opens a spool in a thread; all messages about it pass through the port. */
export interface SpoolOpening {
  readonly settings: WorkerSettings;
  readonly port: MessagePort;
}

/** A requested operation, by its name. */
export interface WorkerRequest {
  readonly id: number;
  readonly op: string;
  readonly args: readonly unknown[];
}

/** A failure in the form that crosses the thread's border. */
export interface ReportedError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
}

/** The worker's reply to one request: a result or an error. */
export interface WorkerReply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: ReportedError;
  /** Of an append: the memory of its pages. */
  readonly memory?: readonly ArrayBuffer[];
}

/** The worker's message after a commit: the replies, and the spool's size. */
export interface WorkerReplies {
  readonly answers: readonly WorkerReply[];
  readonly gauge?: SpoolGauge;
  /** With the first message. */
  readonly numbering?: Numbering;
  /** With the first message: offsets of stored responses without records. */
  readonly held?: readonly Offset[];
  /** If the database is a cache: the rows changed by these replies. */
  readonly changed?: readonly OutboxRow[];
  /** Events retained for a removed sink were released and must be reported. */
  readonly hasReleased?: boolean;
  /** The disk has no space for pages. */
  readonly diskFull?: boolean;
  /** The database is damaged and unusable until the next start repairs it. */
  readonly damage?: ReportedError;
  /** Work on it has taken more than a second at a time, which delays other spools of the thread. */
  readonly isSlow?: boolean;
  /** The thread has closed the spool, because of this error. */
  readonly ended?: string;
}
