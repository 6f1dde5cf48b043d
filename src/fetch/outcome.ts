// How one poll of a stream ends, and how a failure in the middle of one is carried out of it.

import type { ExportError } from '../contracts/errors.ts';
import type { Fetched } from '../contracts/source.ts';
import type { Wait } from '../contracts/wait.ts';

/**
 * `done`: read up to the tail, or so far that others should have their turn (`more`); `againMs`: what was seen is to be
 * looked at a second time after this wait, whatever the schedule says; `doubt`: it may be no more than a part. `retry`: nothing is known. `refused`: an operator may
 * have to act, unless it passes by itself. Both are asked again after `wait`, or one that grows; `advanced`: it came further
 * than before, so that the wait begins anew.
 */
export type PollResult =
  | {
      readonly outcome: 'done';
      readonly fresh: number;
      readonly more: boolean;
      readonly againMs?: number;
      readonly doubt?: ExportError;
    }
  | {
      readonly outcome: 'retry';
      readonly wait?: Wait;
      readonly advanced?: boolean;
      readonly cause: ExportError;
    }
  | Refusal;

/** A poll that upstream, or what is known of the stream, keeps from being made. */
export interface Refusal {
  readonly outcome: 'refused';
  readonly cause: ExportError;
  readonly wait?: Wait;
  readonly advanced?: boolean;
  /** It is no answer of something that stands before the upstream for a moment: the stream is halted at once. */
  readonly isDefinite: boolean;
  /** To which its waits grow. */
  readonly waitMsMax: number;
}

/** An answer that was no page, thrown out of a walk. What was committed before it stays. */
export class NoPage extends Error {
  readonly fetched: Exclude<Fetched, { outcome: 'page' }>;

  constructor(fetched: Exclude<Fetched, { outcome: 'page' }>) {
    super(fetched.cause.message, { cause: fetched.cause });
    this.name = 'NoPage';
    this.fetched = fetched;
  }
}

/** Longest wait after a refusal that only an operator can mend. */
const refusedWaitMsMax = 3_600_000;
/** Longest wait where the part that can be read may still show something new. */
const partWaitMsMax = 5 * 60_000;
/** Longest wait after missing credentials or rights, which may be given meanwhile. */
const deniedWaitMsMax = 15 * 60_000;
/**
 * A refusal that has lasted for so long is taken for one. A gateway answers 404 or a redirect in the upstream's place while
 * that is deployed, and what is shorter is nobody's business.
 */
export const passingMsMax = 5_000;

/** What an answer that was no page means for the stream. */
export function resultOf(fetched: Exclude<Fetched, { outcome: 'page' }>): PollResult {
  const { cause } = fetched;
  switch (fetched.outcome) {
    case 'retry':
      return fetched;
    case 'denied':
      return denied(fetched);
    case 'refused':
      // Upstream has answered the request: it is the config that does not fit.
      return fetched.status === 200 ? mismatch(cause) : refused(cause);
    case 'blocked':
      return refused(cause);
  }
}

/** Upstream refuses what is asked for. */
function refused(cause: ExportError): Refusal {
  return { outcome: 'refused', isDefinite: false, waitMsMax: refusedWaitMsMax, cause };
}

/** What is asked for does not fit, and does not become so by asking. */
export function mismatch(cause: ExportError): Refusal {
  return { outcome: 'refused', isDefinite: true, waitMsMax: refusedWaitMsMax, cause };
}

/** No more than a part can be read, which is looked at again. */
export function partOnly(cause: ExportError): Refusal {
  return { outcome: 'refused', isDefinite: true, waitMsMax: partWaitMsMax, cause };
}

/** Upstream refuses the credential, which has its own wait, or what it may read. */
export function denied({
  cause,
  wait,
}: {
  readonly cause: ExportError;
  readonly wait?: Wait;
}): Refusal {
  const refusal = { outcome: 'refused', waitMsMax: deniedWaitMsMax, cause } as const;
  return wait === undefined
    ? { ...refusal, isDefinite: false }
    : { ...refusal, isDefinite: true, wait };
}
