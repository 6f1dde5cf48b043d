// What stands on this machine: a file, and the reader of a process's standard output.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { stdoutSink } from '../../../connectors/sinks/stdout.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Delivery, Sink } from '../../../src/contracts/sink.ts';
import type { SinkChildAnswer } from '../../support/sink-child.ts';
import { openSink } from '../../support/sink-opening.ts';
import { startSinkProcess } from '../../support/sink-process.ts';
import { tempDir } from '../../support/temp.ts';
import { type Receiver, type ReceiverKind, uidsIn } from './receiver.ts';

const refusesNothing = 'it refuses no record';

/** A directory as the receiver of the file sink. */
export const fileKind: ReceiverKind = {
  type: 'file',
  name: 'file',
  unable: {
    shaky: 'a disk does not fail by dice; a full one and crashes are in file.test.ts',
    picky: refusesNothing,
    mixed: refusesNothing,
    mute: 'a disk answers',
    away: 'a directory that is missing is made',
  },
  async start(): Promise<Receiver> {
    const dir = join(tempDir(), 'out');
    const path = join(dir, 'events.ndjson');
    const textOf = (name: string) => {
      const bytes = readFileSync(join(dir, name));
      return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
    };
    return {
      failures: () => 0,
      config: { path, rotate: { bytes: '20KiB' }, compress: 'gzip' },
      arrived: () => {
        const finished = readdirSync(dir).filter((name) => /^events\.\d/.test(name));
        const active = existsSync(path) ? ['events.ndjson'] : [];
        return [...finished.sort(), ...active].flatMap((name) => uidsIn(textOf(name)));
      },
    };
  },
};

/** The reader of the stdout sink, which runs in a process of its own. */
export const stdoutKind: ReceiverKind = {
  type: 'stdout',
  name: 'stdout',
  unable: {
    shaky: 'a pipe works or is gone for good',
    picky: refusesNothing,
    mixed: refusesNothing,
    mute: 'a reader that stands still is in stdout.test.ts',
    away: 'a reader that has gone is in stdout.test.ts',
  },
  async start(): Promise<Receiver> {
    const child = await startSinkProcess('stdout', {});
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    const sink: Sink = {
      async send({ events }) {
        const first = events[0]?.offset ?? 0;
        return deliveryOf(await child.ask({ ask: 'send', first, count: events.length }));
      },
      close: async () => undefined,
    };
    return {
      failures: () => 0,
      config: {},
      arrived: () => uidsIn(text),
      open: async () => ({ ...(await openSink(stdoutSink, {})), sink }),
    };
  },
};

function deliveryOf({ outcome, message = '' }: SinkChildAnswer): Delivery {
  if (outcome === 'delivered') return { outcome };
  const cause = new ExportError('sink_refused', message, { next: 'Nothing.' });
  return { outcome: 'refused', scope: 'sink', cause };
}
