// The operating system's own name for a failure, which decides what a sink makes of it and is safe
// to log.

/** The system's code of an error (`ENOSPC`), or an empty text where it has none. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}
