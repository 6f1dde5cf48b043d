// Limits the number of streams that poll at the same time. Waiting streams are served in order.

/** Bounded concurrency. */
export interface Turns {
  /** Resolves with the function that releases the turn. */
  take(signal: AbortSignal): Promise<() => void>;
}

/** At most `max` turns at a time. */
export function turnsOf(max: number): Turns {
  let free = max;
  const waiting: (() => void)[] = [];
  const release = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return release;
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const abort = () => {
        const place = waiting.indexOf(resolve);
        // Absent if its turn has just come: then the turn is taken, and its owner releases it.
        if (place >= 0) waiting.splice(place, 1);
        reject(signal.reason);
      };
      waiting.push(resolve);
      signal.addEventListener('abort', abort, { once: true });
      await promise;
      signal.removeEventListener('abort', abort);
      return release;
    },
  };
}
