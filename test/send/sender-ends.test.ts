// How a sender ends: promptly, also with a full window of unanswered batches or with a disk that takes no position; and
// what it keeps meanwhile.

import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import type { Delivery, Sink } from '../../src/contracts/sink.ts';
import type { Acknowledgement, Spool } from '../../src/contracts/spool.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { Outlet } from '../../src/send/outlet.ts';
import { PageEncoder } from '../../src/send/page-encoder.ts';
import { Sender, type SenderSettings } from '../../src/send/sender.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { aPage } from '../support/a-page.ts';
import { silent } from '../support/silent-log.ts';
import { waitUntil } from '../support/temp.ts';
import { pageSpool } from './page-spool.ts';

const full = new ExportError('disk_full', 'testing: no room', { next: 'nothing' });
const refused: Delivery = { outcome: 'refused', scope: 'batch', cause: full, by: 'sink' };

const nothingArrives: Spool['arrival'] = (_, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });

/** A sender of eight pages of one event each, to a sink and a disk as the test wants them. */
function senderTo(
  sink: Sink,
  acknowledge: (step: Acknowledgement) => Promise<void>,
  more: Partial<SenderSettings> = {},
  arrival = nothingArrives,
): Sender {
  const pages = Array.from({ length: 8 }, (_, n) => aPage({ ids: [String(n)], pad: 5_000 }));
  const spool: Spool = {
    ...pageSpool(pages).spool,
    arrival,
    reached: () => undefined,
    settledFrom: async () => [],
    acknowledge: (_, step) => acknowledge(step),
  };
  const outlet = new Outlet({
    sink: 's',
    spool,
    encoder: new PageEncoder(new PageDecoder(() => (record) => record as unknown as OcsfEvent)),
    format: { name: 'test', contentType: 'x', encode: ({ uid }) => uid },
    formatKey: 'test',
    documents: false,
    takesPages: false,
    selectionFor: () => ({ key: '', select: (event) => event }),
    bounds: { eventsMax: 1, bytesMax: 1e6 },
  });
  return new Sender({
    name: 's',
    sink,
    outlet,
    spool,
    clock: systemClock(),
    log: silent,
    position: 0,
    inFlightMax: 1,
    waitMs: 0,
    backOff: { next: () => 1, reset: () => undefined },
    fingerprint: () => '',
    refusedWaitMs: 1,
    retryMinMs: 1,
    ...more,
  });
}

test('pipelined sender closes its sink at once when stopped with a full window', async () => {
  const answers: PromiseWithResolvers<Delivery>[] = [];
  const steps: Acknowledgement[] = [];
  // As a sink does that settles: closing answers what is open.
  const sink: Sink = {
    send: () => {
      const answer = Promise.withResolvers<Delivery>();
      answers.push(answer);
      return answer.promise;
    },
    close: async () => {
      for (const { resolve } of answers) resolve({ outcome: 'delivered' });
    },
  };
  const sender = senderTo(sink, async (step) => void steps.push(step), { inFlightMax: 3 });
  const stop = new AbortController();
  const running = sender.run({ stop: stop.signal, kill: new AbortController().signal });
  await waitUntil(() => answers.length === 3, { what: 'a full window' });

  stop.abort(new Error('enough'));
  await running;

  expect(answers).toHaveLength(3);
  expect(steps.at(-1)).toEqual({ position: 3 });
});

test('sender ends when it is given up, also where the disk takes no position', async () => {
  let tried = 0;
  const sink: Sink = {
    send: async () => ({ outcome: 'delivered' }),
    close: async () => undefined,
  };
  const sender = senderTo(sink, async () => {
    tried += 1;
    throw full;
  });
  const stop = new AbortController();
  const kill = new AbortController();
  const running = sender.run({ stop: stop.signal, kill: kill.signal });
  await waitUntil(() => sender.state.position === 8, { what: 'all to be delivered' });

  stop.abort(new Error('enough'));
  kill.abort(new Error('giving up'));
  await running;

  expect(tried).toBeGreaterThan(0);
  expect(sender.state.state).toBe('stopped');
});

test('sender ends when it is given up, also while a dead letter cannot be written', async () => {
  const sink: Sink = { send: async () => refused, close: async () => undefined };
  const sender = senderTo(sink, () => Promise.reject(full));
  const stop = new AbortController();
  const kill = new AbortController();
  const running = sender.run({ stop: stop.signal, kill: kill.signal });
  await waitUntil(() => sender.state.deadLetters === 1, { what: 'a refusal' });

  stop.abort(new Error('enough'));
  kill.abort(new Error('giving up'));
  await running;

  expect(sender.state.deadLetters).toBe(1);
});

test('sender puts no more than the record itself into a dead letter', async () => {
  const steps: Acknowledgement[] = [];
  const sink: Sink = { send: async () => refused, close: async () => undefined };
  const sender = senderTo(sink, async (step) => void steps.push(step));
  const stop = new AbortController();
  const running = sender.run({ stop: stop.signal, kill: stop.signal });
  await waitUntil(() => sender.state.deadLetters > 0, { what: 'a refusal' });
  stop.abort(new Error('enough'));
  await running;

  const [deadLetter] = steps.flatMap(({ deadLetters = [] }) => deadLetters);

  expect(JSON.parse(Buffer.from(deadLetter?.record ?? []).toString()).id).toBe('0');
  expect(deadLetter?.record.buffer.byteLength).toBe(deadLetter?.record.byteLength);
});

test('sender saves its position also where its sink does not close in order', async () => {
  const steps: Acknowledgement[] = [];
  const sink: Sink = {
    send: async () => ({ outcome: 'delivered' }),
    close: () => Promise.reject(new Error('no')),
  };
  const sender = senderTo(sink, async (step) => void steps.push(step));
  const stop = new AbortController();
  const running = sender.run({ stop: stop.signal, kill: new AbortController().signal });
  await waitUntil(() => sender.state.position === 8, { what: 'all to be delivered' });

  stop.abort(new Error('enough'));

  await expect(running).rejects.toThrow('no');
  expect(steps.at(-1)).toEqual({ position: 8 });
});

test('sender ends where the spool has failed, though its position is not saved', async () => {
  const gone = new ExportError('state_locked', 'testing: another process has the state', {
    next: 'nothing',
  });
  const sink: Sink = { send: async () => ({ outcome: 'delivered' }), close: async () => undefined };
  const failed = () => Promise.reject(gone);
  const sender = senderTo(sink, failed, {}, failed);
  const signals = { stop: new AbortController().signal, kill: new AbortController().signal };
  await expect(sender.run(signals)).rejects.toBe(gone);
});
