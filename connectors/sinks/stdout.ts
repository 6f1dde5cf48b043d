// Writes events as lines to standard output, for a look at what flows and for pipes into other
// programs. A batch is one write, so lines of several sinks never mix within a line, and it counts
// as delivered once the system has taken it. Log lines go to stderr, so stdout holds events only. A
// reader that has gone away stops this sink, and no other. What must stay true: no event steers a
// terminal. Characters that could are written as JSON escapes, on a terminal whatever the format;
// and wherever the format is JSON, which means the same with them, since `sluice run | grep` ends
// on a terminal too.

import { isAscii } from 'node:buffer';
import { defineSink } from '../../src/contracts/definition.ts';
import { ExportError, errorCodeOf } from '../../src/contracts/errors.ts';
import type { Format } from '../../src/contracts/format.ts';
import type { Delivery } from '../../src/contracts/sink.ts';
import { visibleLines } from '../../src/contracts/text.ts';
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
    // A closed pipe is also told by an event, which without a listener would end the process.
    const received = () => {};
    process.stdout.on('error', received);
    return {
      async send(batch, signal) {
        const lines = linesOf(batch.lines, { from: 0, to: batch.events.length });
        return await written(shownLines(lines, format), `sending to ${name}`, signal);
      },
      close: async () => {
        process.stdout.off('error', received);
      },
    };
  },

  async probe() {
    // Standard output is there; whether anyone reads it shows only when something is written.
  },
});

/** Encoded lines as they are written to standard output. */
export function shownLines(lines: Uint8Array, { contentType, verbatim }: Format): Uint8Array {
  if (isAscii(lines)) return lines;
  const isJson = contentType === 'application/json' && verbatim !== true;
  return isJson || process.stdout.isTTY ? visibleLines(lines) : lines;
}

// A reader that stands still keeps the write waiting without holding up the process, as Node's
// pipes do not block; an abort then leaves the bytes with the stream, which may yet write them: at
// least once.
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
