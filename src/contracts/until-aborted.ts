// A wait that ends when its signal aborts, even if the work continues.

/**
 * Resolves as `work`; if the signal aborts first, calls `giveUp` and rejects with the signal's
 * reason.
 */
export async function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  giveUp: () => void = () => undefined,
): Promise<T> {
  work.catch(() => undefined);
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const stop = () => {
    giveUp();
    aborted.reject(signal.reason);
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
