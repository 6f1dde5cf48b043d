// What a process of a state with several shards and its worker processes say to each other over the
// channel between them (node:child_process). A worker process runs the journeys of several shards, so
// each message names the turn that it is about: the time from the start of a shard in a worker to its
// end there. Both processes are of one version, since one has started the other.

import { asExportError, type ErrorCode, ExportError } from '../contracts/index.ts';
import type { StatusMoment, TailTake, TailWish } from '../watch/running-status.ts';
import type { ReloadReason } from './reload-requests.ts';

/** The variable that a worker process is started with. */
export const workerVariable = 'SLUICE_WORKER';

/** An error on its way. */
export interface SentError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
}

/** What is said to a turn. */
export type ToTurn =
  /** Begins it; `once`: read to the tail and deliver, then end. */
  | { readonly say: 'start'; readonly shard: number; readonly once: boolean }
  /** End in order. */
  | { readonly say: 'stop'; readonly why: string }
  /** Read the config again; turns that get the same number share one reading. */
  | { readonly say: 'reload'; readonly reason: ReloadReason; readonly number: number }
  /**
   * When the group has answered last: milliseconds since the machine has started, and since the
   * epoch; and how often it had given us up.
   */
  | {
      readonly say: 'heard';
      readonly uptimeMs: number;
      readonly now: number;
      readonly givenUp: number;
    }
  /** The group says that we have the shard, and how often it had given us up; else why not. */
  | { readonly say: 'confirmed'; readonly id: number; readonly givenUp: number }
  | { readonly say: 'refused'; readonly id: number; readonly error: SentError }
  /** Another process has it. */
  | { readonly say: 'lost'; readonly error: SentError }
  /** An operator retries the streams and sinks of a name. */
  | { readonly say: 'retry'; readonly name: string }
  /** A reader opens a view of events, requests its new events, closes it (shard-tail.ts). */
  | { readonly say: 'tail'; readonly id: number; readonly wish: TailWish }
  | { readonly say: 'take'; readonly id: number }
  | { readonly say: 'close'; readonly id: number };

/** What a turn says. */
export type FromTurn =
  | { readonly say: 'confirm'; readonly id: number }
  /** `runs`: it has opened its part of the state and works; its status, null: it has none yet. */
  | { readonly say: 'standing'; readonly runs: boolean; readonly moment: StatusMoment | null }
  /** Why it is about to end by itself. */
  | { readonly say: 'ends'; readonly error: SentError }
  /** It is over: nothing of it is left in the worker. */
  | { readonly say: 'ended'; readonly code: number }
  /** What has come, or why that cannot be shown. */
  | { readonly say: 'took'; readonly id: number; readonly take: TailTake }
  | { readonly say: 'not taken'; readonly id: number; readonly error: SentError };

/** To a worker process. */
export interface ToWorker {
  readonly turn: number;
  readonly message: ToTurn;
}

/** From a worker process; without a turn: it responds. */
export type FromWorker = { readonly turn: number; readonly message: FromTurn } | { turn: null };

/** An error as it is sent. */
export function sentError(error: unknown, doing: string): SentError {
  const { code, message, next } = asExportError(error, doing);
  return { code, message, next };
}

/** And as it is thrown where it arrives. */
export function receivedError({ code, message, next }: SentError): ExportError {
  return new ExportError(code, message, { next });
}
