// How many streams poll at the same time. Whoever waits is served in the order of asking.

/** Bounded concurrency. */
export interface Turns {
  /** Resolves with the function that gives the turn back. */
  take(signal: AbortSignal): Promise<() => void>;
}

/** At most `max` at a time. */
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
        // Not there when its turn has just come: then it is taken, and given back by who took it.
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
