// A sink that writes objects with an ObjectWriter.

import { type Sink, untilAborted } from '../../../src/contracts/index.ts';
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
