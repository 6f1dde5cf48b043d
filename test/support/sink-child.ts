// A sink in a process of its own, for cases that the tests' process does not allow: its standard output, and a disk of
// its own that is full. The test says by message what to send; the answer comes back by message. Started by
// `startSinkChild`, never imported.

import { sinks } from '../../connectors/index.ts';
import type { Delivery } from '../../src/contracts/sink.ts';
import { openSink, someEvents } from './sink-opening.ts';

/** A test's request: send a number of events from that offset on. Or `probe`, or `close`. */
export type SinkChildAsk =
  | { readonly ask: 'send'; readonly count: number; readonly first: number }
  | { readonly ask: 'probe' }
  | { readonly ask: 'close' };

/** The answer: a Delivery with its cause as text, or what was thrown. */
export interface SinkChildAnswer {
  readonly outcome: Delivery['outcome'] | 'done' | 'threw';
  readonly scope?: 'batch' | 'sink';
  readonly code?: string;
  readonly message?: string;
}

function answerOf(delivery: Delivery): SinkChildAnswer {
  if (delivery.outcome === 'delivered' || delivery.outcome === 'partly') {
    return { outcome: delivery.outcome };
  }
  const { code, message } = delivery.cause;
  const scope = delivery.outcome === 'refused' ? { scope: delivery.scope } : {};
  return { outcome: delivery.outcome, ...scope, code, message };
}

const [type, config] = process.argv.slice(2);
const definition = sinks.find((sink) => sink.type === type);
if (definition === undefined) throw new Error(`there is no sink ${type}`);
const settings: { readonly [setting: string]: unknown } = JSON.parse(config ?? '{}');
const { sink, batch, tools } = await openSink(definition, settings);

async function answer(asked: SinkChildAsk): Promise<SinkChildAnswer> {
  switch (asked.ask) {
    case 'send': {
      const events = someEvents(asked.count, asked.first);
      return answerOf(await sink.send(batch(events), new AbortController().signal));
    }
    case 'probe':
      await definition?.probe(
        { type: type ?? '', ...settings },
        tools,
        new AbortController().signal,
      );
      return { outcome: 'done' };
    case 'close':
      await sink.close();
      return { outcome: 'done' };
  }
}

process.on('message', ({ number, asked }: { number: number; asked: SinkChildAsk }) => {
  void answer(asked)
    .catch((error: unknown): SinkChildAnswer => ({ outcome: 'threw', message: String(error) }))
    .then((said) => process.send?.({ number, said }));
});
process.send?.({ number: 0, said: { outcome: 'done' } });
