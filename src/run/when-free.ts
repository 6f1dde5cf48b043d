// Waits for a state directory that a command holds for one change, such as `succession cutover`: the command releases
// it soon. Invariant: the wait is bounded, and a directory that a running process holds is refused without a wait.

import { type Clock, ExportError, type Log } from '../contracts/index.ts';
import { holderOf, isBrieflyHeld } from '../hold/index.ts';

/** A cutover reads two sources to their tails (10 s) and delivers the stored events (`shutdown.timeout`). */
const waitMsMax = 60_000;
const lookEveryMs = 100;

interface FreeDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the wait; opening then rejects with its reason. */
  readonly stop?: AbortSignal | undefined;
}

/** Opens something in a state directory, as soon as no command holds the directory. Throws the errors of `open`. */
export async function whenFree<T>(
  dir: string,
  { clock, log, stop }: FreeDeps,
  open: () => Promise<T> | T,
): Promise<T> {
  const since = clock.monotonic();
  let isWaiting = false;
  for (;;) {
    try {
      return await open();
    } catch (error) {
      const waited = clock.monotonic() - since;
      const isLocked = error instanceof ExportError && error.code === 'state_locked';
      // One try takes a second; within it a holder has written its name.
      if (!isLocked || waited > waitMsMax || !isBrief(dir)) throw error;
      if (!isWaiting) log.info('state_waited_for', `${error.message}; waiting for its end`);
      isWaiting = true;
      await clock.sleep(lookEveryMs, stop);
    }
  }
}

/** True also if it has been released since: the next try shows the holder then. */
function isBrief(dir: string): boolean {
  return holderOf(dir) === null || isBrieflyHeld(dir);
}
