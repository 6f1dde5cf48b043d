// How one poll of a stream ends, and how a failure in the middle of one is carried out of it.

import type { ExportError } from '../contracts/errors.ts';
import type { Fetched } from '../contracts/source.ts';

/**
 * `done`: read up to the tail, or so far that others should have their turn (`more`); `againMs`: what was seen is to be
 * looked at a second time after this wait, whatever the schedule says. `retry`: asked again after `afterMs` or the
 * back-off. `halted`: asked again after a long while (`waitMs`), since an operator has to act.
 */
export type PollResult =
  | {
      readonly outcome: 'done';
      readonly fresh: number;
      readonly more: boolean;
      readonly againMs?: number;
    }
  | { readonly outcome: 'retry'; readonly afterMs?: number; readonly cause: ExportError }
  | { readonly outcome: 'halted'; readonly waitMs: number; readonly cause: ExportError };

/** An answer that was no page, thrown out of a walk. What was committed before it stays. */
export class NoPage extends Error {
  readonly fetched: Exclude<Fetched, { outcome: 'page' }>;

  constructor(fetched: Exclude<Fetched, { outcome: 'page' }>) {
    super(fetched.cause.message, { cause: fetched.cause });
    this.name = 'NoPage';
    this.fetched = fetched;
  }
}

/** Wait after a refusal that only an operator can mend. */
export const haltedWaitMs = 3_600_000;
/** Wait after missing credentials or rights, which may be given meanwhile. */
export const deniedWaitMs = 15 * 60_000;

/** What an answer that was no page means for the stream. */
export function resultOf(fetched: Exclude<Fetched, { outcome: 'page' }>): PollResult {
  const { cause } = fetched;
  switch (fetched.outcome) {
    case 'retry':
      return fetched.afterMs === undefined
        ? { outcome: 'retry', cause }
        : { outcome: 'retry', cause, afterMs: fetched.afterMs };
    case 'denied':
      return { outcome: 'halted', waitMs: fetched.afterMs ?? deniedWaitMs, cause };
    case 'refused':
    case 'blocked':
      return { outcome: 'halted', waitMs: haltedWaitMs, cause };
  }
}
