// Every failure that a user can see is an ExportError with a code from one closed table. The code's
// `fault` decides the exit code and the responsible party; `next` is the operator's next step in
// one sentence. Whether to retry is never a property of an error: it is an outcome (see source.ts
// and sink.ts). Messages contain no secret, token, cursor value or body.

import { constants } from 'node:os';

/**
 * The responsible party: the config's author, upstream, the destination, this machine's disk, or
 * sluice itself (a bug).
 */
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

/** Parts of an ExportError in addition to its message. */
export interface ErrorParts {
  /** One sentence: the operator's next step, and that nothing was lost if so. */
  readonly next: string;
  readonly details?: ErrorDetails;
  readonly cause?: unknown;
}

/** A failure with a message of the form `operation: result`, and the operator's next step. */
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

  /** The responsible party. */
  get fault(): Fault {
    return errorCodes[this.code];
  }
}

/**
 * The failure as an ExportError: itself, or a `broken_invariant`, because no other error may
 * escape.
 */
export function asExportError(error: unknown, doing: string): ExportError {
  if (error instanceof ExportError) return error;
  return new ExportError('broken_invariant', `${doing}: ${errorText(error)}`, {
    next: `${nextOf(error)} Nothing held was lost.`,
    cause: error,
  });
}

function nextOf(error: unknown): string {
  if (isFileLimit(error))
    return 'Raise the limit of open files: ulimit -n, or LimitNOFILE of systemd.';
  // A part that is only now needed is loaded from the files of today.
  if (errorCodeOf(error) === 'ERR_MODULE_NOT_FOUND')
    return 'The files of sluice were removed or replaced after its start. Install it again if needed, and restart it.';
  return 'This is a fault in sluice; please report it with this message.';
}

/**
 * True if no more file can be opened. The loader of modules and a thread that cannot start have codes of their own, and report
 * it in their message only.
 */
export function isFileLimit(error: unknown): boolean {
  return /\b(EMFILE|ENFILE)\b|too many open files/.test(
    `${errorCodeOf(error)} ${errorText(error)}`,
  );
}

/** The message of an error of any kind. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The system's code of an error (`ENOSPC`), safe to log; empty if it has none. */
export function errorCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const { code, errno }: NodeJS.ErrnoException = error;
  // libuv has no name for some, such as EDQUOT of a used up quota.
  const named = code === 'UNKNOWN' && nameOf(errno);
  return named || (typeof code === 'string' ? code : '');
}

function nameOf(errno: number | undefined): string | undefined {
  return Object.entries(constants.errno).find(([, number]) => number === -(errno ?? 0))?.[0];
}

/**
 * Throws a `broken_invariant` if the condition is false; used at stage borders and on both sides of
 * the disk.
 */
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
