// The messages between a shard supervisor and its worker processes, over the channel of node:child_process. A worker runs
// the journeys of several shards, so each message names its turn: one run of a shard in a worker, from start to end.
// Both processes have the same version: a worker of another one ends at once.

import type { Config } from '../config/index.ts';
import { asExportError, type ErrorCode, ExportError } from '../contracts/index.ts';
import type { StatusMoment, TailTake, TailWish } from '../watch/running-status.ts';
import type { ReloadReason } from './reload-requests.ts';

/** The variable that a worker process is started with. */
export const workerVariable = 'SLUICE_WORKER';

/** An error as it is sent. */
export interface SentError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
}

/** The files of a config that runs: the present ones may have faults, or drop what a reload must not drop. */
export interface AcceptedConfig {
  /** The text of the config file. */
  readonly text: string;
  /** Companies by the path of their file. */
  readonly companies: readonly (readonly [path: string, ids: readonly string[]])[];
}

/** A message to a turn. */
export type ToTurn =
  /** Start with this config; `once`: read to the tail, deliver, then end. */
  | {
      readonly say: 'start';
      readonly shard: number;
      readonly once: boolean;
      readonly config: AcceptedConfig;
    }
  /** End in order. */
  | { readonly say: 'stop'; readonly why: string }
  /** Run this config; `refused`: why the config in the file does not run, if so. */
  | {
      readonly say: 'reload';
      readonly reason: ReloadReason;
      readonly config: AcceptedConfig;
      readonly refused: SentError | null;
    }
  /**
   * The time of the last answer of the group: milliseconds since the start of the machine, and since the epoch; why the last
   * request since then failed; and how often the group has removed this process.
   */
  | {
      readonly say: 'answered';
      readonly uptimeMs: number;
      readonly now: number;
      readonly failure: string | null;
      readonly givenUp: number;
    }
  /** This process owns the shard, and how often the group has removed it; or why it does not own the shard. */
  | { readonly say: 'confirmed'; readonly id: number; readonly givenUp: number }
  | { readonly say: 'refused'; readonly id: number; readonly error: SentError }
  /** Another process owns the shard. */
  | { readonly say: 'lost'; readonly error: SentError }
  /** An operator retries the streams and sinks of a name. */
  | { readonly say: 'retry'; readonly name: string }
  /** A reader opens a view of events, requests new ones, closes the view (shard-tail.ts). */
  | { readonly say: 'tail'; readonly id: number; readonly wish: TailWish }
  | { readonly say: 'take'; readonly id: number }
  | { readonly say: 'close'; readonly id: number };

/** A message of a turn. */
export type FromTurn =
  | { readonly say: 'confirm'; readonly id: number }
  /** `runs`: the turn has opened its part of the state and works; `moment`: its status, null: none yet. */
  | { readonly say: 'standing'; readonly runs: boolean; readonly moment: StatusMoment | null }
  /** Why the turn is about to end by itself. */
  | { readonly say: 'ends'; readonly error: SentError }
  /** The turn has ended, and nothing of the shard runs in the worker. */
  | { readonly say: 'ended'; readonly code: number }
  /** New events, or why they cannot be shown. */
  | { readonly say: 'took'; readonly id: number; readonly take: TailTake }
  | { readonly say: 'not taken'; readonly id: number; readonly error: SentError };

/** To a worker process. */
export interface ToWorker {
  readonly turn: number;
  readonly message: ToTurn;
}

/** From a worker process; without a turn: a sign that it responds. */
export type FromWorker = { readonly turn: number; readonly message: FromTurn } | { turn: null };

/** A running config as it is sent. */
export function acceptedOf({ text, upstreams }: Config): AcceptedConfig {
  const companies = Object.values(upstreams).flatMap(({ companies: ids, companiesFile }) =>
    companiesFile === undefined ? [] : [[companiesFile.path, ids] as const],
  );
  return { text: text.reveal(), companies };
}

/** An error as it is sent. */
export function sentError(error: unknown, doing: string): SentError {
  const { code, message, next } = asExportError(error, doing);
  return { code, message, next };
}

/** The same as it is thrown after arrival. */
export function receivedError({ code, message, next }: SentError): ExportError {
  return new ExportError(code, message, { next });
}
