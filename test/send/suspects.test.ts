// A receiver that refuses everything for a while, and events that are bad for good: no event becomes a dead letter unless
// the same receiver accepts another one at that time (rules R2), and one bad event holds no other.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type PartAnswer, sendInHalves } from '../../connectors/shared/halves.ts';
import type { Event } from '../../src/contracts/event.ts';
import type { Delivery, Sink } from '../../src/contracts/sink.ts';
import { anAppend } from '../support/a-page.ts';
import { waitUntil } from '../support/temp.ts';
import {
  cause,
  delivered,
  drained,
  heldEvents,
  idOf,
  numbers,
  scripted,
  senderOn,
} from './a-sender.ts';

const refused: Delivery = { outcome: 'refused', scope: 'batch', cause };

/** Refuses every batch with one of these. */
const refusing =
  (...bad: readonly string[]) =>
  ({ events }: { readonly events: readonly Event[] }): Delivery =>
    events.some((event) => bad.includes(idOf(event))) ? refused : delivered;

/** Runs a sender until a condition holds; it is stopped after the test's last step. */
function running(sender: ReturnType<typeof senderOn>) {
  const stop = new AbortController();
  const kill = new AbortController();
  const ended = sender.run({ stop: stop.signal, kill: kill.signal });
  ended.catch(() => undefined);
  return async () => {
    stop.abort(new Error('enough'));
    await ended;
  };
}

test('a receiver that refuses everything after a first delivery makes no dead letter; delivery resumes in order', async () => {
  const spool = await heldEvents(40);
  let isFaulty = false;
  const { sink, taken, batches } = scripted(() => {
    if (batches.length === 2) isFaulty = true;
    return isFaulty ? refused : delivered;
  });
  const sender = senderOn(spool, sink, { eventsMax: 10 });
  const draining = drained(spool, sender);
  await waitUntil(() => (sender.state.suspects?.stuck ?? false) && batches.length > 40, {
    what: () => `several probes: ${JSON.stringify(sender.state)}`,
  });

  const { position, deadLetters, error, suspects } = sender.state;
  isFaulty = false;
  await draining;

  expect([position, deadLetters]).toEqual([10, 0]);
  expect(error?.code).toBe('sink_refused');
  expect(error?.next).toContain('dead-letters add --sink s');
  expect(suspects?.events).toBeGreaterThanOrEqual(10);
  expect(taken.slice(0, 10)).toEqual(numbers(10));
  // The receiver may recover between the suspect and the event that the probe sends after it.
  const [first, ...others] = taken.slice(10);
  const rest = first === '10' ? [first, ...others] : others;
  expect(rest).toEqual(rest.toSorted((a, b) => Number(a) - Number(b)));
  expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(numbers(40));
  expect(sender.state).toMatchObject({
    delivered: 40,
    deadLetters: 0,
    suspects: null,
    error: null,
  });
  await spool.close();
});

test.each([1, 2, 3, 4, 5, 8, 100, 128])(
  'a batch of %i that is refused whole takes at most log2(events) + 1 requests before the first wait',
  async (count) => {
    const spool = await heldEvents(count, count);
    const waits: number[] = [];
    const { sink, batches } = scripted(() => refused);
    const sender = senderOn(spool, sink, {
      eventsMax: count,
      onWait: () => waits.push(batches.length),
    });
    const end = running(sender);
    await waitUntil(() => waits.length > 0, { what: 'the first wait' });
    await end();

    expect(waits[0]).toBeLessThanOrEqual(Math.log2(count) + 1);
    await spool.close();
  },
);

test('an event that is bad alone, with nothing else waiting, is a suspect until another event is accepted', async () => {
  const spool = await heldEvents(1);
  const { sink, taken } = scripted(refusing('0'));
  const sender = senderOn(spool, sink);
  const draining = running(sender);
  await waitUntil(() => sender.state.suspects?.stuck ?? false, { what: 'a few probes' });
  const { deadLetters, error, suspects } = sender.state;

  await spool.append(anAppend({ ids: ['1'] }));
  await waitUntil(() => sender.state.position === 2, { what: 'both to be settled' });
  await draining();

  expect(deadLetters).toBe(0);
  expect(error?.code).toBe('record_refused');
  expect(suspects).toMatchObject({ events: 1, refused: 1, first: [{ stream: 'audit' }] });
  expect(taken).toEqual(['1']);
  expect(sender.state).toMatchObject({ deadLetters: 1, delivered: 1, suspects: null });
  await spool.close();
});

test('bad events at the head of the only stream do not hide a receiver that works', async () => {
  const spool = await heldEvents(12);
  const { sink, taken } = scripted(refusing('0', '1', '2', '3', '4'));
  const sender = senderOn(spool, sink);

  await drained(spool, sender);

  expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(numbers(12).slice(5));
  expect(new Set(taken).size).toBe(7);
  expect(sender.state.deadLetters).toBe(5);
  await spool.close();
});

test('a stream that is refused whole holds no other, and the order of each stream stays', async () => {
  const spool = await heldEvents(0);
  for (let n = 0; n < 6; n += 1)
    for (const stream of ['a', 'b', 'c'])
      await spool.append(anAppend({ stream, source: stream, ids: [`${stream}${n}`] }));
  const { sink, taken } = scripted(({ events }) =>
    events.some((event) => event.stream === 'a') ? refused : delivered,
  );
  const sender = senderOn(spool, sink, { eventsMax: 18 });

  await drained(spool, sender);

  const of = (stream: string) => taken.filter((id) => id.startsWith(stream));
  expect(of('b')).toEqual(numbers(6).map((n) => `b${n}`));
  expect(of('c')).toEqual(numbers(6).map((n) => `c${n}`));
  expect(sender.state.deadLetters).toBe(6);
  await spool.close();
});

test('a fault that starts in the middle of a batch with a bad event buries no good event', async () => {
  const spool = await heldEvents(64, 64);
  let isFaulty = false;
  let good = 0;
  const { sink, taken } = scripted(({ events }) => {
    if (isFaulty || events.some((event) => idOf(event) === '20')) return refused;
    good += 1;
    isFaulty = good === 1;
    return delivered;
  });
  const sender = senderOn(spool, sink, { eventsMax: 64 });
  const draining = drained(spool, sender);
  await waitUntil(() => sender.state.suspects?.stuck ?? false, { what: 'the fault to be seen' });
  const { deadLetters } = sender.state;
  good = 2;
  isFaulty = false;
  await draining;

  expect(deadLetters).toBeLessThanOrEqual(1);
  expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(
    numbers(64).filter((id) => id !== '20'),
  );
  expect(sender.state.deadLetters).toBe(1);
  await spool.close();
});

test('suspects move to the dead letters on an operator’s order, and nothing else does', async () => {
  const spool = await heldEvents(4, 1);
  const { sink, taken } = scripted(() => refused);
  const sender = senderOn(spool, sink, { eventsMax: 4 });
  const end = running(sender);
  await waitUntil(() => sender.state.suspects?.stuck ?? false, { what: 'a few probes' });
  const [first] = sender.state.suspects?.first ?? [];

  const moved = await sender.giveUp([first?.uid ?? '']);
  await waitUntil(() => sender.state.position > 0 && sender.state.suspects !== null, {
    what: 'the next suspect',
  });
  const { position } = sender.state;
  const others = await sender.giveUp(null);
  await waitUntil(() => sender.state.position === 4, { what: 'all to be settled' });
  await end();

  expect(moved).toBe(1);
  expect(position).toBe(1);
  expect(others).toBe(3);
  expect(taken).toEqual([]);
  expect(sender.state.deadLetters).toBe(4);
  await spool.close();
});

test('when an operator has an answer, the suspects are durable dead letters, also those that no probe sends', async () => {
  const spool = await heldEvents(4, 1);
  const letters: number[] = [];
  const acknowledge = spool.acknowledge.bind(spool);
  spool.acknowledge = async (name, step) => {
    await acknowledge(name, step);
    letters.push(...(step.deadLetters ?? []).map(({ offset }) => offset));
  };
  let answered = 0;
  const { sink } = scripted(() => {
    answered += 1;
    return refused;
  });
  const sender = senderOn(spool, sink, { eventsMax: 4 });
  const end = running(sender);
  await waitUntil(() => sender.state.suspects?.stuck ?? false, { what: 'a few probes' });
  const [last] = (await spool.read(3, 1)).map(({ uids }) => Buffer.from(uids).toString('hex'));

  const moved = await sender.giveUp([last ?? '']);
  const durable = [...letters];
  const { position, suspects } = sender.state;
  const others = await sender.giveUp(null);
  const all = [...letters];
  const before = answered;
  await waitUntil(() => sender.state.position === 4, { what: 'all to be settled' });
  await end();

  expect([moved, durable, position, suspects?.events]).toEqual([1, [3], 0, 3]);
  expect([others, all.toSorted()]).toEqual([3, [0, 1, 2, 3]]);
  expect([letters.length, answered]).toEqual([4, before]);
  await spool.close();
});

test('a suspect that the receiver accepts while an operator moves it is no dead letter', async () => {
  const spool = await heldEvents(2, 1);
  const under = Promise.withResolvers<typeof delivered>();
  let asked = 0;
  const { sink } = scripted((_, attempt) => {
    asked = attempt;
    return attempt === 8 ? under.promise : attempt < 8 ? refused : delivered;
  });
  const sender = senderOn(spool, sink, { eventsMax: 2 });
  const end = running(sender);
  await waitUntil(() => asked === 8 && sender.state.suspects !== null, { what: 'a request' });

  const moving = sender.giveUp(null);
  under.resolve(delivered);
  const moved = await moving;
  await waitUntil(() => sender.state.position === 2, { what: 'all to be settled' });
  await end();

  expect(moved + sender.state.delivered).toBe(2);
  expect(sender.state.deadLetters).toBe(moved);
  await spool.close();
});

test('one bad event in a hundred costs no more requests than cutting in halves', async () => {
  const bad = new Set(['7', '100', '200', '333', '480', '555', '640', '777', '850', '901']);
  const spool = await heldEvents(1_000, 100);
  const { sink, taken, batches } = scripted(refusing(...bad));
  const sender = senderOn(spool, sink, { eventsMax: 100 });

  await drained(spool, sender);

  expect(taken).toHaveLength(990);
  expect(sender.state.deadLetters).toBe(10);
  expect(batches.length).toBeLessThanOrEqual(requestsOfHalving(numbers(1_000), bad, 100));
  await spool.close();
});

test('any bad events among good ones: all good ones delivered once in order, all bad ones dead letters, no more requests than halving', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.integer({ min: 0, max: 199 }), { minLength: 1, maxLength: 6 }),
      fc.constantFrom(1, 4),
      async (chosen, inFlightMax) => {
        const bad = new Set(chosen.map(String));
        const spool = await heldEvents(201, 67);
        const { sink, taken, batches } = scripted(refusing(...bad));
        const sender = senderOn(spool, sink, { eventsMax: 67, inFlightMax });

        await drained(spool, sender);
        await spool.close();

        expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(
          numbers(201).filter((id) => !bad.has(id)),
        );
        expect(sender.state.deadLetters).toBe(bad.size);
        // Bad events side by side may need other events’ acceptance, a request each: for two, up to five of them.
        const most = requestsOfHalving(numbers(201), bad, 67) + 3 * bad.size;
        if (inFlightMax === 1) expect(batches.length).toBeLessThanOrEqual(most);
      },
    ),
    { numRuns: 20 },
  );
});

/** Requests of the rule before: each refused batch in halves, down to single events. */
function requestsOfHalving(ids: readonly string[], bad: ReadonlySet<string>, size: number): number {
  const requests = (part: readonly string[]): number => {
    if (part.length <= 1 || !part.some((id) => bad.has(id))) return 1;
    const middle = part.length >> 1;
    return 1 + requests(part.slice(0, middle)) + requests(part.slice(middle));
  };
  let total = 0;
  for (let at = 0; at < ids.length; at += size) total += requests(ids.slice(at, at + size));
  return total;
}

test.each([1, 4])(
  'an event that is to be sent again is sent before later ones, also if a batch goes in parts (%i in flight)',
  async (inFlightMax) => {
    const spool = await heldEvents(24, 12);
    const accepted: string[] = [];
    const waits = new Set<string>();
    const sink: Sink = {
      send: (batch) =>
        sendInHalves(batch, async ({ from, to }): Promise<PartAnswer> => {
          if (to - from > 3) return { outcome: 'too_large', cause };
          const events = batch.events.slice(from, to);
          // The receiver is busy for every seventh event once.
          const again = events.filter((event) => {
            const isFirst = Number(idOf(event)) % 7 === 1 && !waits.has(idOf(event));
            return isFirst && waits.add(idOf(event));
          });
          accepted.push(...events.filter((event) => !again.includes(event)).map(idOf));
          return { outcome: 'partly', refused: [], again: again.map(({ uid }) => uid) };
        }),
      close: async () => undefined,
    };
    const sender = senderOn(spool, sink, { eventsMax: 12, inFlightMax });

    await drained(spool, sender);

    expect(accepted.toSorted((a, b) => Number(a) - Number(b))).toEqual(numbers(24));
    expect([...waits].toSorted()).toEqual(['1', '15', '22', '8']);
    for (const id of inFlightMax === 1 ? waits : []) {
      const later = accepted
        .slice(0, accepted.indexOf(id))
        .filter((one) => Number(one) > Number(id));
      // Only those of the same request were accepted before it.
      expect([id, later.every((one) => Number(one) - Number(id) <= 2)]).toEqual([id, true]);
    }
    await spool.close();
  },
);

test('one accepted event is evidence against each bad one before it, also where none follows', async () => {
  const spool = await heldEvents(4);
  const { sink } = scripted((batch) => {
    const isBad = batch.events.some(({ offset }) => offset < 3);
    return isBad ? refused : delivered;
  });
  const sender = senderOn(spool, sink, { eventsMax: 10 });

  await drained(spool, sender);

  expect(sender.state).toMatchObject({ delivered: 1, deadLetters: 3, suspects: null });
  await spool.close();
});
