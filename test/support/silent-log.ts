// A log that says nothing, for tests of what is done and not of what is told.

import type { Log } from '../../src/contracts/tools.ts';

/** Says nothing. */
export const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => silent,
};
