// How one poll of a stream ends.

import type { Failure } from '../contracts/answer.ts';
import { ExportError } from '../contracts/errors.ts';

/**
 * `done`: read up to the tail, or so far that others should have their turn (`more`); `againMs`:
 * it goes on after this wait, or what was seen is to be looked at a second time, whatever the
 * schedule says; `doubt`: it may be no more than a part. Else why it could not be read; `advanced`: it came
 * further than before, so that the wait begins anew.
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

/** A poll that came to no end, in the Answer's words. */
export type FailedPoll = Failure & { readonly advanced?: boolean };

/**
 * A refusal that has lasted for so long is taken for one. A gateway answers 404 or a redirect in
 * the upstream's place while that is deployed, and what is shorter is nobody's business.
 */
export const passingMsMax = 5_000;

/** The usual wait, to which the waits after a denial grow. */
export const deniedWaitMsMax = 15 * 60_000;

/** True for a 403 that asks to wait: a rate limit of some servers, until it lasts. */
export function isPatience({ status, wait }: Pick<Failure, 'status' | 'wait'>): boolean {
  return status === 403 && wait !== undefined;
}

/** For how long a failure is not yet a refusal. */
export function passingMs(failure: Pick<Failure, 'status' | 'wait'>): number {
  return isPatience(failure) ? deniedWaitMsMax : passingMsMax;
}

/** A checkpoint that is not of this stream as configured, which does not mend by asking. */
export function mismatch(cause: ExportError): Failure {
  return { outcome: 'refused', isDefinite: true, cause };
}

/** The error that halts a stream whose checkpoint is not its own. */
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
