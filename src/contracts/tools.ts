// What connectors may use of the world: the clock, the log and the HTTP client. All are handed in,
// so that a test can replace time and nothing else. Waiting is done by the engine, through the
// clock, and always takes an AbortSignal.

import type { ErrorDetails } from './errors.ts';
import type { EventAt, FieldsOf } from './log-events.ts';

/** Time. Only the real program's clock reads the machine's. */
export interface Clock {
  /** Epoch milliseconds, for stamping. May jump. */
  now(): number;
  /** Milliseconds from an arbitrary start; never goes back. For deadlines and waits. */
  monotonic(): number;
  /** Resolves after `ms`, however many; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/**
 * Log lines. `event` is declared in contracts/log-events, with its level and fields. `text` is constant;
 * variable parts go into `fields`. Never a line per record.
 */
export interface Log {
  debug<E extends EventAt<'debug'>>(event: E, text: string, fields?: FieldsOf<E>): void;
  info<E extends EventAt<'info'>>(event: E, text: string, fields?: FieldsOf<E>): void;
  warn<E extends EventAt<'warn'>>(event: E, text: string, fields?: FieldsOf<E>): void;
  error<E extends EventAt<'error'>>(event: E, text: string, fields?: FieldsOf<E>): void;
  /** The same log with fields added to every line. */
  with(fields: ErrorDetails): Log;
}

/** The three tools. */
export interface Tools {
  readonly clock: Clock;
  readonly log: Log;
  readonly http: HttpClient;
  /**
   * Resolves where this process still is the one that is to work with its state, and rejects where
   * another one has gone on with it; left out: there can be no other.
   */
  readonly confirm?: ((signal?: AbortSignal) => Promise<void>) | undefined;
  /**
   * Locks an output file for one writer, by whatever path. Throws `sink_unreachable` while another
   * process has it. Left out: nothing is locked.
   */
  readonly lockFile?: ((path: string, writer: FileWriter) => FileLock) | undefined;
  /** Whether this process may send now; left out: it always may. */
  readonly sendTurn?: SendTurn | undefined;
}

/** Who wants to write to an output file. */
export interface FileWriter {
  /** The state whose events go there. */
  readonly spool: string;
  /** Several processes share this state, of which one works at a time. */
  readonly sharesState: boolean;
}

/** A lock on an output file, held until it is released or the process ends. */
export interface FileLock {
  release(): void;
}

/** The right to send, of one of several processes that share a state. */
export interface SendTurn {
  /** False while another process may have begun to send the same. */
  isGiven(): boolean;
  /** Resolves once it is given; rejects with the signal's reason, or with `state_locked` where it is another's. */
  wait(signal: AbortSignal): Promise<void>;
}

/** TLS settings as in the config; paths are read at each new connection pool. */
export interface TlsSettings {
  readonly ca_file?: string | undefined;
  readonly cert_file?: string | undefined;
  readonly key_file?: string | undefined;
  readonly min_version?: 'TLSv1.2' | 'TLSv1.3' | undefined;
  readonly server_name?: string | undefined;
}

/** One request. Bodies and headers are the caller's; redirects are never followed. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly tls?: TlsSettings;
  /** Address of the proxy to go through, with its user and password where it wants them. */
  readonly proxy?: string;
  /** Bound on the whole exchange, body included. */
  readonly timeoutMs: number;
  /** Bound on the decoded body; a longer one is an error, never cut. */
  readonly bodyBytesMax: number;
}

/** A whole answer: any status; the body decoded from gzip, deflate, br or zstd. */
export interface HttpResponse {
  readonly status: number;
  /** Lower-case names; repeated headers joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * Sends a request and reads the whole answer. Throws HttpFailure when there is no whole answer
 * (refused, reset, cut, timed out, too large, TLS); never for a status.
 */
export interface HttpClient {
  /** The bound on bodies that are read and worked on at the same time; left out: there is none. */
  readonly inFlight?: InFlight;
  request(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>;
  close(): Promise<void>;
}

/** Bodies in flight, counted over all streams. */
export interface InFlight {
  /** Bodies of answers asked for within `work` count until they have landed, or it ends. */
  during<T>(work: () => Promise<T>): Promise<T>;
  /** What was read so far is about to be held: it counts until the function is called. */
  landing(): () => void;
}

/** Why no whole answer came. `tls` and `too_large` do not mend by themselves. */
export class HttpFailure extends Error {
  readonly reason: 'unreachable' | 'cut' | 'timeout' | 'too_large' | 'tls' | 'encoding';

  constructor(reason: HttpFailure['reason'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'HttpFailure';
    this.reason = reason;
  }
}
