// The result of one poll of a stream.

import { ExportError, type Failure } from '../contracts/index.ts';

/**
 * `done`: read to the tail, or until other streams have their turn (`more`). `againMs`: poll again after this wait, or
 * take a second look then, whatever the schedule says. `doubt`: the list read may be only a part. Otherwise the reason
 * why the stream could not be read; `advanced`: the poll got further than before, so waits start small again.
 */
export type PollResult =
  | {
      readonly outcome: 'done';
      readonly fresh: number;
      readonly more: boolean;
      readonly againMs?: number;
      readonly doubt?: ExportError;
    }
  | FailedPoll;

/** A failed poll. */
export type FailedPoll = Failure & { readonly advanced?: boolean };

/**
 * A rejection must last this long before it is reported. A gateway answers 404 or a redirect in place of an upstream
 * that is being deployed; a shorter failure needs no report.
 */
export const passingMsMax = 5_000;

/** The usual wait; waits after a denial grow up to it. */
export const deniedWaitMsMax = 15 * 60_000;

/** True for a 403 with a wait: the rate limit of some servers, until it lasts. */
export function isPatience({ status, wait }: Pick<Failure, 'status' | 'wait'>): boolean {
  return status === 403 && wait !== undefined;
}

/** How long a failure is not yet a rejection, milliseconds. */
export function passingMs(failure: Pick<Failure, 'status' | 'wait'>): number {
  return isPatience(failure) ? deniedWaitMsMax : passingMsMax;
}

/** A checkpoint that does not belong to this stream as configured; retries cannot repair it. */
export function mismatch(cause: ExportError): Failure {
  return { outcome: 'refused', isDefinite: true, cause };
}

/** The error that halts a stream with a foreign checkpoint. */
export function checkpointMismatch(stream: string, why: string): ExportError {
  return new ExportError(
    'checkpoint_mismatch',
    `resuming ${stream}: its checkpoint does not fit: ${why}`,
    {
      next: `Look with 'npx sluice checkpoint show -c FILE --stream ${stream}', then correct it with 'npx sluice checkpoint reset -c FILE --stream ${stream}'; held events are not touched.`,
      details: { stream },
    },
  );
}
