// What the spool and its worker thread say to each other, several questions or answers in one message since each message
// has its price. Every question gets one answer with the same id, after the commit that covers it; id 0 is the worker's own
// word that the database is open.

import type { ErrorCode } from '../contracts/errors.ts';
import type { Offset } from '../contracts/event.ts';
import type { Json } from '../contracts/json.ts';
import type { Numbering } from '../contracts/numbering.ts';
import type { Acknowledgement, SpoolGauge } from '../contracts/spool.ts';
import type { BackfillProgress, BackfillRequest } from './backfills.ts';
import type { StoreAppend, StoreSettings } from './store.ts';

/** What the worker is started with. */
export interface WorkerSettings extends StoreSettings {
  readonly sinks: readonly string[];
  /** Nothing waits for company, or for its second: for tests that wait for each step. */
  readonly eager?: boolean;
}

/** A question to the worker. */
export type Question = { readonly id: number } & Ask;

/** What can be asked. */
export type Ask =
  | { readonly op: 'append'; readonly entry: StoreAppend }
  | { readonly op: 'acknowledge'; readonly sink: string; readonly step: Acknowledgement }
  | { readonly op: 'note'; readonly kind: string; readonly name: string; readonly facts: string }
  | { readonly op: 'inform'; readonly request: number; readonly progress: Json }
  | { readonly op: 'read'; readonly from: Offset; readonly bytesMax: number }
  | { readonly op: 'progress'; readonly sink: string }
  | { readonly op: 'recall'; readonly stream: string }
  | { readonly op: 'trail'; readonly stream: string }
  | { readonly op: 'entities'; readonly stream: string }
  | { readonly op: 'retain'; readonly sinks: readonly string[] }
  | { readonly op: 'requests' }
  | { readonly op: 'settle'; readonly request: number; readonly answer: Json }
  | { readonly op: 'leave'; readonly backfill: BackfillRequest; readonly last: BackfillProgress }
  | { readonly op: 'moved'; readonly stream: string }
  | { readonly op: 'tick' }
  | { readonly op: 'close' };

/** A failure as it crosses the thread's border. */
export interface ToldError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
}

/** The worker's answer to one question: a result or an error. */
export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: ToldError;
  /** Of an append: the memory that its pages came in. */
  readonly memory?: readonly ArrayBuffer[];
}

/** What the worker says after a commit: the answers that it covers, and how full the spool is by then. */
export interface Answers {
  readonly answers: readonly Answer[];
  readonly gauge?: SpoolGauge;
  /** With the first word. */
  readonly numbering?: Numbering;
  /** The disk has no room for pages. */
  readonly diskFull?: boolean;
  /** The database is damaged: nothing can be relied on any more until the next start has mended it. */
  readonly damage?: ToldError;
}
