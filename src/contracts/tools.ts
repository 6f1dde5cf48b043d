// The access of connectors to the environment: the clock, the log and the HTTP client. All are
// passed in, so that a test replaces time and nothing else. The engine does all waiting, through
// the clock, and always with an AbortSignal.

import type { ErrorDetails } from './errors.ts';
import type { EventAt, FieldsOf } from './log-events.ts';

/** Time. Only the program's real clock reads the machine's. */
export interface Clock {
  /** Epoch milliseconds, for timestamps. May jump. */
  now(): number;
  /** Milliseconds from an arbitrary start; never goes back. For deadlines and waits. */
  monotonic(): number;
  /** Resolves after `ms` of any length; rejects with the signal's reason when aborted. */
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

/** The clock, the log and the HTTP client, with optional locks of the process. */
export interface Tools {
  readonly clock: Clock;
  readonly log: Log;
  readonly http: HttpClient;
  /**
   * Resolves if this process still owns its state; rejects if another process has taken it over.
   * Default: no other process is possible.
   */
  readonly confirm?: ((signal?: AbortSignal) => Promise<void>) | undefined;
  /**
   * Locks an output file for one writer, whatever path leads to it. Throws `sink_unreachable` while
   * another process holds it. Default: no lock.
   */
  readonly lockFile?: ((path: string, writer: FileWriter) => FileLock) | undefined;
  /** Whether this process may send now. Default: always. */
  readonly sendTurn?: SendTurn | undefined;
}

/** A process that writes to an output file. */
export interface FileWriter {
  /** Id of the spool whose events it writes. */
  readonly spool: string;
  /** Several processes share this state; one works at a time. */
  readonly sharesState: boolean;
}

/** A lock on an output file, held until it is released or the process ends. */
export interface FileLock {
  release(): void;
}

/** The right to send, for one of several processes that share a state. */
export interface SendTurn {
  /** False while another process may still send the same events. */
  isGiven(): boolean;
  /**
   * Resolves once granted; rejects with the signal's reason, or with `state_locked` if another
   * process owns the state.
   */
  wait(signal: AbortSignal): Promise<void>;
}

/** TLS settings as in the config; the files are read for each new connection pool. */
export interface TlsSettings {
  readonly ca_file?: string | undefined;
  readonly cert_file?: string | undefined;
  readonly key_file?: string | undefined;
  readonly min_version?: 'TLSv1.2' | 'TLSv1.3' | undefined;
  readonly server_name?: string | undefined;
}

/** One request. The caller provides bodies and headers; redirects are never followed. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly tls?: TlsSettings;
  /** Address of the proxy, with user and password if it needs them. */
  readonly proxy?: string;
  /** Bound on the whole exchange, body included. */
  readonly timeoutMs: number;
  /** Bound on the decoded body; a longer one is an error, never cut. */
  readonly bodyBytesMax: number;
}

/** A complete response: any status; the body decoded from gzip, deflate, br or zstd. */
export interface HttpResponse {
  readonly status: number;
  /** Lower-case names; repeated headers joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * Sends a request and reads the complete response. Throws HttpFailure if there is none (refused,
 * reset, cut, timed out, too large, TLS); never for a status.
 */
export interface HttpClient {
  /** The bound on bodies that are read and processed at the same time. Default: none. */
  readonly inFlight?: InFlight;
  request(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>;
  close(): Promise<void>;
}

/** Bodies in flight, counted over all streams. */
export interface InFlight {
  /** Bodies requested within `work` count until they are stored or `work` ends. */
  during<T>(work: () => Promise<T>): Promise<T>;
  /**
   * The bodies read so far are about to be stored: they count until the returned function is
   * called.
   */
  landing(): () => void;
}

/** The reason for a missing response. `tls` and `too_large` persist until something is changed. */
export class HttpFailure extends Error {
  readonly reason: 'unreachable' | 'cut' | 'timeout' | 'too_large' | 'tls' | 'encoding';

  constructor(reason: HttpFailure['reason'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'HttpFailure';
    this.reason = reason;
  }
}
