// Waits of a sink that end when the engine gives up on them.

/**
 * What `work` resolves to; rejects with the signal's reason where that comes first, having called
 * `giveUp`.
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
