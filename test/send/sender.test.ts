// A sender on a real spool, with a sink of scripted results. Whatever the results, each event is delivered or becomes
// a dead letter, and the position on disk never passes one that is neither.

import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anAppend } from '../support/a-page.ts';
import { silent } from '../support/silent-log.ts';
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

test('sender delivers everything held, in order, and keeps its position', async () => {
  const spool = await heldEvents(10);
  const { sink, taken, batches } = scripted(() => delivered);

  const position = await drained(spool, senderOn(spool, sink));

  expect(taken).toEqual(numbers(10));
  expect(position).toBe(10);
  expect(batches.map(({ events }) => events.length)).toEqual([6, 4]);
  await spool.close();
});

test('sender sends the same batch again after a retry', async () => {
  const spool = await heldEvents(4);
  const { sink, taken, batches } = scripted((_, attempt) =>
    attempt < 3 ? { outcome: 'retry', cause } : delivered,
  );

  await drained(spool, senderOn(spool, sink));

  expect(new Set(batches.map(({ id }) => id)).size).toBe(1);
  expect(batches).toHaveLength(3);
  expect(taken).toEqual(numbers(4));
  await spool.close();
});

test('sender makes a dead letter of the one event that is refused and delivers the rest in order', async () => {
  const spool = await heldEvents(8);
  const { sink, taken } = scripted(({ events }) =>
    events.some((event) => idOf(event) === '5')
      ? { outcome: 'refused', scope: 'batch', cause }
      : delivered,
  );
  const sender = senderOn(spool, sink);

  const position = await drained(spool, sender);

  expect(taken).toEqual(numbers(8).filter((id) => id !== '5'));
  expect(sender.state.deadLetters).toBe(1);
  expect(position).toBe(8);
  await spool.close();
});

test('sender believes a receiver that is ahead within its limit, and reports once that the state is older', async () => {
  const spool = await heldEvents(8);
  const { sink, taken } = scripted((_, attempt) =>
    attempt === 1 ? { outcome: 'retry', cause } : delivered,
  );
  const reported: unknown[] = [];
  const log = {
    ...silent,
    error: (_event: string, _text: string, fields?: object) => reported.push(fields),
  };
  const committed = async () => ({ position: 2, ahead: true });
  const sender = senderOn(spool, { ...sink, committed }, { log });

  await drained(spool, sender);

  expect(taken).toEqual(numbers(8).slice(2));
  expect(reported).toEqual([expect.objectContaining({ code: 'state_older' })]);
  expect(sender.state.notice?.what).toContain('state_older');
  await spool.close();
});

test('sender adopts the receiver’s committed position instead of sending again', async () => {
  const spool = await heldEvents(8);
  const { sink, taken } = scripted((_, attempt) =>
    attempt === 1 ? { outcome: 'retry', cause } : delivered,
  );
  let asked = 0;
  const committed = async () => (asked++ === 0 ? null : { position: 6, ahead: false });

  await drained(spool, senderOn(spool, { ...sink, committed }));

  expect(taken).toEqual(['6', '7']);
  await spool.close();
});

test('sender sends the rest of a batch whose beginning the receiver has', async () => {
  const spool = await heldEvents(8);
  const { sink, taken } = scripted((_, attempt) =>
    attempt === 1 ? { outcome: 'retry', cause } : delivered,
  );
  let asked = 0;
  const committed = async () => (asked++ === 0 ? null : { position: 4, ahead: false });

  await drained(spool, senderOn(spool, { ...sink, committed }));

  expect(taken).toEqual(numbers(8).slice(4));
  await spool.close();
});

test('sender holds its position before a sink that refuses everything', async () => {
  const spool = await heldEvents(4);
  let repaired = false;
  const { sink, taken } = scripted(() =>
    repaired ? delivered : { outcome: 'refused', scope: 'sink', cause },
  );
  const sender = senderOn(spool, sink);
  const draining = drained(spool, sender);
  await waitUntil(() => sender.state.state === 'refused', { what: 'the refusal' });

  const position = sender.state.position;
  repaired = true;
  await draining;

  expect(position).toBe(0);
  expect(taken).toEqual(numbers(4));
  await spool.close();
});

test('pipelined sender goes back to the oldest unsettled event when the connection breaks', async () => {
  const spool = await heldEvents(24);
  const { sink, taken } = scripted((_, attempt) =>
    attempt === 3 ? { outcome: 'retry', cause } : delivered,
  );

  const position = await drained(spool, senderOn(spool, sink, { inFlightMax: 8, eventsMax: 4 }));

  expect(position).toBe(24);
  // Later events that the receiver accepted meanwhile are not sent again.
  expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(numbers(24));
  expect(taken.slice(0, 8)).toEqual(numbers(8));
  await spool.close();
});

test.each([
  [undefined, 0],
  [30, 30],
])(
  'pipelined sender sends failed events again after the requested wait: %s',
  async (afterMs, waitMs) => {
    const spool = await heldEvents(12);
    const { sink } = scripted((_, attempt) =>
      attempt === 2
        ? { outcome: 'retry', cause, ...(afterMs !== undefined && { afterMs }) }
        : delivered,
    );
    const reported: unknown[] = [];
    const log = {
      ...silent,
      warn: (_event: string, _text: string, fields?: object) => reported.push(fields),
    };

    await drained(spool, senderOn(spool, sink, { inFlightMax: 8, eventsMax: 4, log }));

    expect(reported).toEqual([expect.objectContaining({ wait_ms: waitMs })]);
    await spool.close();
  },
);

test('pipelined sender sends again only events that were not accepted, though more could fill its batches by then', async () => {
  const spool = await heldEvents(2);
  const first = Promise.withResolvers<void>();
  const { sink, taken, batches } = scripted(async (_, attempt) => {
    if (attempt === 1) await first.promise;
    return attempt === 1 || attempt === 3 ? { outcome: 'retry', cause } : delivered;
  });
  const sender = senderOn(spool, sink, { inFlightMax: 8 });
  const stop = new AbortController();
  const running = sender.run({ stop: stop.signal, kill: stop.signal });
  for (let sent = 1; sent <= 4; sent += 1) {
    await waitUntil(() => batches.length === sent, { what: `batch ${sent}` });
    if (sent < 4) await spool.append(anAppend({ ids: [String(2 * sent), String(2 * sent + 1)] }));
  }

  first.resolve();
  await waitUntil(() => sender.state.position === 8, { what: 'all to be delivered' });
  stop.abort(new Error('enough'));
  await running;

  const places = batches.map(({ start, end }) => `${start}-${end}`);
  expect(places).toEqual(['0-2', '2-4', '4-6', '6-8', '0-2', '4-6']);
  expect(batches[4]?.id).toBe(batches[0]?.id);
  expect(taken.toSorted()).toEqual(numbers(8));
  expect(sender.state).toMatchObject({ delivered: 8, retries: 1 });
  await spool.close();
});

test('sender settles every event exactly as the answers say, whatever they are', async () => {
  const answers = fc.array(fc.constantFrom('delivered', 'retry', 'partly', 'refused'), {
    minLength: 1,
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(
      answers,
      fc.constantFrom(1, 4),
      fc.integer({ min: 1, max: 7 }),
      async (kinds, inFlightMax, eventsMax) => {
        const spool = await heldEvents(20, 3);
        const lost: string[] = [];
        const acknowledge = spool.acknowledge.bind(spool);
        spool.acknowledge = (sink, step) => {
          for (const { record } of step.deadLetters ?? [])
            lost.push(JSON.parse(Buffer.from(record).toString()).id);
          return acknowledge(sink, step);
        };
        let turn = 0;
        const { sink, taken } = scripted(async ({ events }) => {
          const kind = kinds[turn++] ?? 'delivered';
          for (let late = (turn * 5) % 7; late > 0; late -= 1) await setImmediate();
          if (kind === 'retry') return { outcome: 'retry', cause };
          if (kind === 'refused') return { outcome: 'refused', scope: 'batch', cause };
          if (kind === 'delivered') return delivered;
          const [first, ...rest] = events.map(({ uid }) => uid);
          return {
            outcome: 'partly',
            refused: [{ uid: first ?? '', reason: 'scripted' }],
            again: rest.slice(0, 2),
          };
        });

        const sender = senderOn(spool, sink, { inFlightMax, eventsMax });
        const position = await drained(spool, sender);
        await spool.close();

        expect(position).toBe(20);
        const settled = new Set([...taken, ...lost]);
        expect([...settled].sort((a, b) => Number(a) - Number(b))).toEqual(numbers(20));
        expect(new Set(taken).size).toBe(taken.length);
        expect(sender.state.deadLetters).toBe(lost.length);
        if (inFlightMax === 1) expect(taken.length + lost.length).toBe(20);
      },
    ),
    { numRuns: 25 },
  );
});
