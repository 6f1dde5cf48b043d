// The result of one upstream request: one union type from the HTTP client up to the stream's loop.
// Invariant: the layer that sees the cause decides the outcome and the wait; every other layer
// passes them on unchanged.

import type { ExportError } from './errors.ts';

/** The result of a request, a closed union: the requested value, or the reason for its absence. */
export type Answer<T> = ({ readonly outcome: 'ok' } & T) | Failure;

/**
 * The reason for a missing value. `retry`: the result is unknown (429, 5xx, no response, malformed
 * response). `denied`: credential or rights, 401 and 403. `blocked`: HTTP 451. `refused`: any other
 * status that rejects the request.
 */
export interface Failure {
  readonly outcome: 'retry' | 'denied' | 'blocked' | 'refused';
  /** Status of the HTTP response, if there was one. */
  readonly status?: number;
  /** The parameter that upstream names as rejected. */
  readonly field?: string;
  /** The part of the page request that upstream rejects, if known. */
  readonly about?: 'cursor' | 'limit' | 'sort';
  /** Upstream has named the rejected part; otherwise `about` is a guess. */
  readonly isNamed?: boolean;
  /** Default: no wait is decided; the back-off grows from failure to failure. */
  readonly wait?: Wait;
  /** The response comes from upstream itself and not from an intermediary (proxy, gateway). */
  readonly isDefinite?: boolean;
  readonly cause: ExportError;
}

/** A wait that is already decided. */
export interface Wait {
  /** Milliseconds, counted from the response. */
  readonly ms: number;
  /**
   * Lets one request through early, on an operator's `retry`. Default: upstream requested the wait,
   * so it is not cut short.
   */
  readonly cut?: () => void;
  /** Resolves when the rejected setting is repaired. Rejects with the signal's reason. */
  readonly repaired?: (signal: AbortSignal) => Promise<void>;
}
