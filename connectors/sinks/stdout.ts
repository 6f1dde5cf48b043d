// Writes events as lines to standard output, for inspection and for pipes into other programs. A
// batch is one write, so lines of several sinks never mix within a line, and it counts as delivered
// once the system has accepted it. Log lines go to stderr, so stdout has only events. A closed
// reader stops this sink, and no other. Invariant: no event controls a terminal. Characters that
// could are written as JSON escapes: on a terminal in any format; and elsewhere if the format is
// JSON, where the escapes have the same meaning, because `sluice run | grep` ends on a terminal
// too.

import { defineSink } from '../../src/contracts/config.ts';
import { type Delivery, ExportError, errorCodeOf, shownLines } from '../../src/contracts/index.ts';
import { linesOf } from '../shared/lines.ts';

/** `type: stdout`. */
export const stdoutSink = defineSink({
  type: 'stdout',
  summary: 'Writes events as lines to standard output.',
  fields: {},
  carries: ['lines', 'json', 'gelf'],
  usualFormat: 'json',
  sample: { name: 'screen', to: null, lines: () => ['format: json'] },
  inFlightMax: 1,
  batch: { events: 1000, bytes: 256 * 1024, waitMs: 0 },
  assurance: () => 'answered',

  async open(_settings, { name, format }) {
    // A closed pipe is also reported by an event, which without a listener would end the process.
    const received = () => {};
    process.stdout.on('error', received);
    return {
      async send(batch, signal) {
        const lines = linesOf(batch.lines, { from: 0, to: batch.events.length });
        return await written(
          shownLines(lines, format, process.stdout.isTTY),
          `sending to ${name}`,
          signal,
        );
      },
      close: async () => {
        process.stdout.off('error', received);
      },
    };
  },

  async probe() {
    // Standard output always exists; a missing reader shows only on writing.
  },
});

// A reader that does not read delays the write without blocking the process, because Node's pipes
// do not block; an abort then leaves the bytes in the stream, which may still write them: at least
// once.
function written(lines: Uint8Array, doing: string, signal: AbortSignal): Promise<Delivery> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) {
      stop();
      return;
    }
    signal.addEventListener('abort', stop, { once: true });
    process.stdout.write(lines, (error) => {
      signal.removeEventListener('abort', stop);
      resolve(error ? goneMeaning(error, doing) : { outcome: 'delivered' });
    });
  });
}

function goneMeaning(error: Error, doing: string): Delivery {
  const code = errorCodeOf(error);
  const what =
    code === 'EPIPE' ? 'the reader of standard output closed the pipe' : code || error.message;
  const next = 'Start sluice again with a reader that stays; nothing held was lost.';
  const cause = new ExportError('sink_refused', `${doing}: ${what}`, { next, cause: error });
  return { outcome: 'refused', scope: 'sink', cause };
}
