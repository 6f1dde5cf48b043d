// What one request upstream came to: the same union from the HTTP client to whoever waits for the
// stream's next turn. What must stay true: what an answer means, and how long to wait after it, is
// decided where that is known, and every layer hands it on as it is.

import type { ExportError } from './errors.ts';

/** The answer to a request, a closed union: what was asked for, or why there is none. */
export type Answer<T> = ({ readonly outcome: 'ok' } & T) | Failure;

/**
 * Why there is nothing of what was asked for. `retry`: nothing is known (429, 5xx, no answer,
 * nonsense). `denied`: credential or rights, 401 and 403. `blocked`: HTTP 451. `refused`: any other
 * status by which upstream does not take the request.
 */
export interface Failure {
  readonly outcome: 'retry' | 'denied' | 'blocked' | 'refused';
  /** Of the HTTP answer, where there was one. */
  readonly status?: number;
  /** The parameter that upstream names as the one it does not take. */
  readonly field?: string;
  /** What of a page's request is refused, as far as that can be told. */
  readonly about?: 'cursor' | 'limit' | 'sort';
  /** Upstream has named what it is about; else that is a guess. */
  readonly isNamed?: boolean;
  /** Left out: nobody has decided how long to wait, and it grows from failure to failure. */
  readonly wait?: Wait;
  /** It is no answer of something that stands before the upstream for a moment. */
  readonly isDefinite?: boolean;
  readonly cause: ExportError;
}

/** A wait that was decided. */
export interface Wait {
  /** Milliseconds from the answer that it came with. */
  readonly ms: number;
  /** Lets one request through, for an operator who asks. Left out: upstream asks for it. */
  readonly cut?: () => void;
  /** Resolves where what was refused is mended. Rejects with the signal's reason. */
  readonly repaired?: (signal: AbortSignal) => Promise<void>;
}
