// A sink that writes objects, around the writer that cuts them.

import type { Sink } from '../../../src/contracts/sink.ts';
import { ObjectWriter, type ObjectWriterSettings } from './object-writer.ts';

/** Opens it; the store is closed with it. */
export function objectSink(settings: ObjectWriterSettings): Sink {
  const { store } = settings;
  const writer = new ObjectWriter(settings);
  return {
    async send(batch, signal) {
      return await untilAborted(writer.add(batch), signal, () => store.close());
    },
    ready: (signal) => untilAborted(writer.settled(), signal),
    flush: () => writer.flush(),
    dueInMs: () => writer.dueInMs,
    committed: (signal) => untilAborted(writer.reach(), signal),
    async close() {
      await writer.close();
      store.close();
    },
  };
}

/** What `work` resolves to; rejects with the signal's reason where that comes first. */
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
