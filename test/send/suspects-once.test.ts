// Suspects of a sink that commits its position with its events, as Kafka with exactly_once does. Invariant: the
// receiver's position passes no event that is neither accepted nor a durable dead letter, whenever the process dies.

import { expect, test } from 'vitest';
import type { Event } from '../../src/contracts/event.ts';
import type { Batch, Delivery, Sink } from '../../src/contracts/sink.ts';
import { anAppend } from '../support/a-page.ts';
import { waitUntil } from '../support/temp.ts';
import { cause, delivered, drained, heldEvents, idOf, numbers, senderOn } from './a-sender.ts';

const refused: Delivery = { outcome: 'refused', scope: 'batch', cause };

/** A receiver that keeps a position with the events; the hooks run at each commit and make its answer. */
function aReceiver(isRefused: (event: Event) => boolean, { canTryOut = true } = {}) {
  const at = { position: 0 };
  const taken: string[] = [];
  const judge = ({ events }: Batch) => (events.some(isRefused) ? refused : delivered);
  const hooks = {
    committing: (_batch: Batch): void => undefined,
    answer: (): Delivery => delivered,
  };
  const sink: Sink = {
    async send(batch) {
      const verdict = judge(batch);
      if (verdict !== delivered) return verdict;
      hooks.committing(batch);
      taken.push(...batch.events.map(idOf));
      at.position = batch.end;
      return hooks.answer();
    },
    ...(canTryOut && {
      async tryOut(batch: Batch) {
        return judge(batch);
      },
    }),
    committed: async () => ({ position: at.position, ahead: false }),
    close: async () => undefined,
  };
  return { sink, at, taken, hooks };
}

/** Runs a sender until the test stops it. */
function running(sender: ReturnType<typeof senderOn>) {
  const stop = new AbortController();
  const ended = sender.run({ stop: stop.signal, kill: new AbortController().signal });
  ended.catch(() => undefined);
  return async () => {
    stop.abort(new Error('enough'));
    await ended;
  };
}

/** One event each of five streams, and a later one of the first. */
async function fiveStreams() {
  const spool = await heldEvents(0);
  for (const id of ['a', 'b', 'c', 'd', 'e', 'a2'])
    await spool.append(anAppend({ stream: id[0] ?? '', source: 's', ids: [id] }));
  return spool;
}

test.each([
  ['a probe tries events out', true],
  ['nothing can be tried out', false],
])('the position of the receiver does not pass a suspect while %s', async (_, canTryOut) => {
  const spool = await fiveStreams();
  let isFaulty = true;
  const { sink, at, taken } = aReceiver((event) => idOf(event) === 'a' || isFaulty, { canTryOut });
  const sender = senderOn(spool, sink, { eventsMax: 1 });
  const end = running(sender);
  await waitUntil(() => sender.state.suspects?.stuck ?? false, { what: 'a few probes' });
  const whileFaulty = { position: at.position, taken: [...taken] };
  isFaulty = false;
  if (!canTryOut) {
    await waitUntil(() => sender.state.retries > 20 || at.position > 0, { what: 'more probes' });
    expect([at.position, taken]).toEqual([0, []]);
    await sender.giveUp(null);
  }
  await waitUntil(() => sender.state.position === 6, { what: 'all to be settled' });
  await end();

  expect(whileFaulty).toEqual({ position: 0, taken: [] });
  expect(taken).toEqual(['b', 'c', 'd', 'e', 'a2']);
  expect(sender.state.deadLetters).toBe(1);
  await spool.close();
});

test('each commit finds every event before it accepted or a durable dead letter', async () => {
  const spool = await heldEvents(60, 10);
  const bad = new Set(['0', '1', '17', '18', '30', '58']);
  const { sink, taken, hooks } = aReceiver((event) => bad.has(idOf(event)));
  const durable = new Set<number>();
  const acknowledge = spool.acknowledge.bind(spool);
  spool.acknowledge = async (name, step) => {
    await acknowledge(name, step);
    for (const { offset } of step.deadLetters ?? []) durable.add(offset);
  };
  const passed: number[] = [];
  hooks.committing = ({ events, end }) => {
    const settled = new Set([...taken, ...events.map(idOf), ...[...durable].map(String)]);
    for (let offset = 0; offset < end; offset += 1)
      if (!settled.has(String(offset))) passed.push(offset);
  };

  await drained(spool, senderOn(spool, sink, { eventsMax: 10 }));

  expect(passed).toEqual([]);
  expect(taken).toEqual(numbers(60).filter((id) => !bad.has(id)));
  expect(durable.size).toBe(bad.size);
  await spool.close();
});

test('a suspect whose acceptance is lost on the way is not sent again', async () => {
  const spool = await fiveStreams();
  let isFaulty = true;
  let lost = 0;
  const { sink, taken, hooks } = aReceiver(() => isFaulty);
  hooks.answer = () => {
    lost += 1;
    return lost === 1 ? { outcome: 'retry', cause } : delivered;
  };
  const sender = senderOn(spool, sink, { eventsMax: 1 });
  const draining = drained(spool, sender);
  await waitUntil(() => sender.state.suspects?.stuck ?? false, { what: 'a few probes' });
  isFaulty = false;
  await draining;

  expect(taken).toEqual(['a', 'b', 'c', 'd', 'e', 'a2']);
  expect(sender.state.deadLetters).toBe(0);
  await spool.close();
});
