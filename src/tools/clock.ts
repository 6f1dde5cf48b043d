// The machine's time, as the rest of sluice sees it. Every wait between fetch, hold and send goes
// through here, so three traps are closed once: a timer above 2^31-1 ms fires at once (waits are
// sliced), a wall clock may jump (waits are measured on the monotonic one), and a listener left on
// a long-lived signal is a leak (each is removed).

import { invariant } from '../contracts/errors.ts';
import type { Clock } from '../contracts/tools.ts';

/** Below the 2^31-1 ms at which timers overflow; drift is noticed within the hour. */
const sliceMsMax = 3_600_000;

/**
 * The real clock. `sleep` keeps the process alive while it waits, always yields to I/O at least
 * once (also for 0 ms), and rejects with the signal's reason as soon as the signal is aborted.
 */
export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    async sleep(ms, signal) {
      invariant(!Number.isNaN(ms), 'a wait is a number of milliseconds');
      const until = performance.now() + ms;
      let left = ms;
      do {
        await slice(Math.min(Math.max(left, 0), sliceMsMax), signal);
        left = until - performance.now();
      } while (left > 0);
    },
  };
}

function slice(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const wake = () => {
      signal?.removeEventListener('abort', stop);
      resolve();
    };
    const timer = setTimeout(wake, Math.ceil(ms));
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', stop, { once: true });
  });
}
