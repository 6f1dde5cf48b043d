// A log that writes nothing, for tests of actions and not of messages.

import type { Log } from '../../src/contracts/tools.ts';

/** Says nothing. */
export const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => silent,
};
