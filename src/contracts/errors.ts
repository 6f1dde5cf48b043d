// Every failure that a user can meet is an ExportError with a code from one closed table. The
// code's `fault` decides the exit code and who is asked to act; `next` is the one sentence an
// operator needs at three in the morning. Whether to try again is never a property of an error: it
// is an outcome (see source.ts and sink.ts). Messages hold no secret, no token, no cursor value and
// no body.

/** Who has to act: the config's author, upstream, the far side, this machine's disk, or we. */
export type Fault = 'config' | 'upstream' | 'downstream' | 'disk' | 'bug';

/** The closed table of error codes. A code never changes its meaning; users alert on it. */
export const errorCodes = {
  config_invalid: 'config',
  upstream_unreachable: 'upstream',
  upstream_refused: 'upstream',
  upstream_throttled: 'upstream',
  upstream_nonsense: 'upstream',
  token_refused: 'upstream',
  cursor_refused: 'upstream',
  pagination_loop: 'upstream',
  scope_lost: 'upstream',
  sink_unreachable: 'downstream',
  sink_refused: 'downstream',
  sink_throttled: 'downstream',
  record_refused: 'downstream',
  state_locked: 'disk',
  state_damaged: 'disk',
  state_unwritable: 'disk',
  state_older: 'disk',
  disk_full: 'disk',
  checkpoint_mismatch: 'config',
  paging_suspected: 'config',
  signature_refused: 'config',
  broken_invariant: 'bug',
} as const satisfies Record<string, Fault>;

/** One of the codes in `errorCodes`. */
export type ErrorCode = keyof typeof errorCodes;

/** Facts about a failure, safe to log: few values, no secrets, no bodies. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** What an ExportError is made of, besides its message. */
export interface ErrorParts {
  /** One sentence: what the operator can do, and that nothing was lost where that is so. */
  readonly next: string;
  readonly details?: ErrorDetails;
  readonly cause?: unknown;
}

/** A failure, told as `what was being done: what happened`, with what to do next. */
export class ExportError extends Error {
  readonly code: ErrorCode;
  readonly next: string;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, parts: ErrorParts) {
    super(message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.name = 'ExportError';
    this.code = code;
    this.next = parts.next;
    this.details = parts.details ?? {};
  }

  /** Who has to act. */
  get fault(): Fault {
    return errorCodes[this.code];
  }
}

/** The failure as an ExportError: itself, or a `broken_invariant`, since no other escapes. */
export function asExportError(error: unknown, doing: string): ExportError {
  if (error instanceof ExportError) return error;
  return new ExportError('broken_invariant', `${doing}: ${errorText(error)}`, {
    next: 'This is a fault in sluice; please report it with this message. Nothing held was lost.',
    cause: error,
  });
}

/** What an error of any kind says. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The system's code of an error (`ENOSPC`), safe to log; an empty text where it has none. */
export function errorCodeOf(error: unknown): string {
  const { code } = error instanceof Error && 'code' in error ? error : {};
  return typeof code === 'string' ? code : '';
}

/** Stops when what must be true is not; at the borders of stages, both sides of the disk. */
export function invariant(condition: boolean, what: string): asserts condition {
  if (!condition) {
    throw new ExportError('broken_invariant', `an invariant does not hold: ${what}`, {
      next: 'This is a fault in sluice; please report it with this message. Nothing held was lost.',
    });
  }
}

/** The command line itself is wrong: exit code 64. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
