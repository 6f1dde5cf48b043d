// The machine's time for all other packages. Every wait between fetch, hold and send uses this
// file, which avoids three traps: a timer above 2^31-1 ms fires at once (waits are sliced), a wall
// clock may jump (waits are measured on the monotonic one), and a listener left on a long-lived
// signal is a leak (each is removed).

import { type Clock, invariant } from '../contracts/index.ts';

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
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        invariant(!Number.isNaN(ms), 'a wait is a number of milliseconds');
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const until = performance.now() + ms;
        const wake = () => {
          const leftMs = until - performance.now();
          if (leftMs > 0) {
            timer = setTimeout(wake, sliceOf(leftMs));
            return;
          }
          signal?.removeEventListener('abort', stop);
          resolve();
        };
        let timer = setTimeout(wake, sliceOf(ms));
        const stop = () => {
          clearTimeout(timer);
          reject(signal?.reason);
        };
        signal?.addEventListener('abort', stop, { once: true });
      });
    },
  };
}

function sliceOf(ms: number): number {
  return Math.ceil(Math.min(Math.max(ms, 0), sliceMsMax));
}
