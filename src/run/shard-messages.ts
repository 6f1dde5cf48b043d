// What a process that stands ready for several shards and those that it has started for them, one
// each, say to each other over the channel between them (node:child_process). Both are of one
// version, since one has started the other.

import { asExportError, type ErrorCode, ExportError } from '../contracts/errors.ts';
import type { StatusMoment } from '../watch/live.ts';
import type { TailTake, TailWish } from '../watch/tail.ts';

/** The variable that tells a process which shard it was started for. */
export const shardVariable = 'SLUICE_SHARD';

/** An error on its way. */
export interface SentError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
}

/** To the process of a shard. */
export type ToShard =
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
  /** Someone wants the streams and sinks of a name asked now. */
  | { readonly say: 'ask now'; readonly name: string }
  /** Someone wants to look at events; asks what has come; has seen enough (shard-tail.ts). */
  | { readonly say: 'tail'; readonly id: number; readonly wish: TailWish }
  | { readonly say: 'take'; readonly id: number }
  | { readonly say: 'let go'; readonly id: number };

/** From the process of a shard. */
export type FromShard =
  | { readonly say: 'confirm'; readonly id: number }
  /** It lives; `runs`: it has opened its part of the state and works; its status, null: it has none yet. */
  | { readonly say: 'standing'; readonly runs: boolean; readonly moment: StatusMoment | null }
  /** It ends by itself for this reason. */
  | { readonly say: 'ends'; readonly error: SentError }
  /** What has come, or why that cannot be shown. */
  | { readonly say: 'took'; readonly id: number; readonly take: TailTake }
  | { readonly say: 'not taken'; readonly id: number; readonly error: SentError };

/** An error as it is sent. */
export function sentError(error: unknown, doing: string): SentError {
  const { code, message, next } = asExportError(error, doing);
  return { code, message, next };
}

/** And as it is thrown where it arrives. */
export function receivedError({ code, message, next }: SentError): ExportError {
  return new ExportError(code, message, { next });
}
