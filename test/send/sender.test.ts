// A sender on a real spool, with a sink that answers as told. Whatever the answers, each event is delivered, or a dead
// letter, and the position on disk never passes one that is neither.

import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Event, OcsfEvent } from '../../src/contracts/event.ts';
import type { Batch, Delivery, Sink } from '../../src/contracts/sink.ts';
import type { Spool } from '../../src/contracts/spool.ts';
import type { Log } from '../../src/contracts/tools.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { Outlet } from '../../src/send/outlet.ts';
import { PageEncoder } from '../../src/send/page-encoder.ts';
import { Sender } from '../../src/send/sender.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { anAppend } from '../support/a-page.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const cause = new ExportError('sink_unreachable', 'testing: told to', { next: 'nothing' });
const delivered: Delivery = { outcome: 'delivered' };

type Answerer = (batch: Batch, attempt: number) => Delivery | Promise<Delivery>;

/** A sink that answers as told and keeps what it took. */
function scripted(answer: Answerer) {
  const taken: string[] = [];
  const batches: Batch[] = [];
  const sink: Sink = {
    async send(batch) {
      batches.push(batch);
      const answered = await answer(batch, batches.length);
      if (answered.outcome === 'delivered') taken.push(...batch.events.map(idOf));
      if (answered.outcome === 'partly') {
        const not = new Set([...answered.refused.map(({ uid }) => uid), ...answered.again]);
        taken.push(...batch.events.filter(({ uid }) => !not.has(uid)).map(idOf));
      }
      return answered;
    },
    close: async () => undefined,
  };
  return { sink, taken, batches };
}

function idOf(event: Event): string {
  return JSON.parse(Buffer.from(event.raw).toString()).id;
}

async function heldEvents(count: number, perPage = 4): Promise<Spool> {
  const spool = await openSpool({
    dir: tempDir(),
    sync: 'normal',
    keepMs: 0,
    sinks: ['s'],
    bytesMax: 1e9,
    eager: true,
    reserveBytesMax: 2 ** 20,
  });
  for (let n = 0; n < count; n += perPage) {
    const ids = Array.from({ length: Math.min(perPage, count - n) }, (_, i) => String(n + i));
    await spool.append(anAppend({ ids }));
  }
  return spool;
}

function senderOn(
  spool: Spool,
  sink: Sink,
  more: { inFlightMax?: number; eventsMax?: number; position?: number; log?: Log } = {},
) {
  const outlet = new Outlet({
    sink: 's',
    spool,
    encoder: new PageEncoder(new PageDecoder(() => (record) => record as unknown as OcsfEvent)),
    format: { name: 'json', contentType: 'text/plain', encode: ({ ocsf }) => JSON.stringify(ocsf) },
    formatKey: 'json',
    documents: false,
    takesPages: false,
    selectionFor: () => ({ key: '', select: (event) => event }),
    bounds: { eventsMax: more.eventsMax ?? 6, bytesMax: 1e6 },
  });
  return new Sender({
    name: 's',
    sink,
    outlet,
    spool,
    clock: systemClock(),
    log: more.log ?? silent,
    position: more.position ?? 0,
    inFlightMax: more.inFlightMax ?? 1,
    waitMs: 0,
    backOff: { next: () => 1, reset: () => undefined },
    fingerprint: () => '',
    refusedWaitMs: 1,
  });
}

/** Runs a sender until its position is at the spool's end, and returns what is on disk then. */
async function drained(spool: Spool, sender: Sender): Promise<number> {
  const stop = new AbortController();
  const running = sender.run({ stop: stop.signal, kill: new AbortController().signal });
  await waitUntil(() => sender.state.position >= spool.gauge.end, {
    what: () => `the position to reach ${spool.gauge.end}; it is ${JSON.stringify(sender.state)}`,
  });
  stop.abort(new Error('enough'));
  await running;
  return (await spool.progress('s')).position;
}

function numbers(count: number): string[] {
  return Array.from({ length: count }, (_, i) => String(i));
}

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

test('sender believes a far side that is ahead as far as it may, and says once that the state is older', async () => {
  const spool = await heldEvents(8);
  const { sink, taken } = scripted((_, attempt) =>
    attempt === 1 ? { outcome: 'retry', cause } : delivered,
  );
  const told: unknown[] = [];
  const log = { ...silent, error: (_: string, fields?: object) => told.push(fields) };
  const committed = async () => ({ position: 2, ahead: true });
  const sender = senderOn(spool, { ...sink, committed }, { log });

  await drained(spool, sender);

  expect(taken).toEqual(numbers(8).slice(2));
  expect(told).toEqual([expect.objectContaining({ code: 'state_older' })]);
  expect(sender.state.notice?.what).toContain('state_older');
  await spool.close();
});

test('sender takes up what the far side says it has committed instead of sending it again', async () => {
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

test('sender sends the rest of a batch of which the far side has the beginning', async () => {
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
  let mended = false;
  const { sink, taken } = scripted(() =>
    mended ? delivered : { outcome: 'refused', scope: 'sink', cause },
  );
  const sender = senderOn(spool, sink);
  const draining = drained(spool, sender);
  await waitUntil(() => sender.state.state === 'refused', { what: 'the refusal' });

  const position = sender.state.position;
  mended = true;
  await draining;

  expect(position).toBe(0);
  expect(taken).toEqual(numbers(4));
  await spool.close();
});

test('sender says of a sink that refuses event after event that it takes nothing, and holds the rest', async () => {
  const spool = await heldEvents(12);
  const said = new ExportError('record_refused', 'it answered 400', { next: 'the rest is there' });
  let mended = false;
  const { sink, taken } = scripted(() =>
    mended ? delivered : { outcome: 'refused', scope: 'batch', cause: said },
  );
  const sender = senderOn(spool, sink);
  const draining = drained(spool, sender);
  await waitUntil(() => sender.state.state === 'refused', { what: 'the refusal' });

  const { error, position, deadLetters } = sender.state;
  mended = true;
  await draining;

  expect(error).toMatchObject({ code: 'sink_refused', message: 'it answered 400' });
  expect(error?.next).toMatch(/taken no event.*tried again by itself.*10 that it refused/);
  expect([position, deadLetters]).toEqual([10, 10]);
  expect(taken).toEqual(['10', '11']);
  await spool.close();
});

test('pipelined sender goes back to the oldest unsettled event when the connection breaks', async () => {
  const spool = await heldEvents(24);
  const { sink, taken } = scripted((_, attempt) =>
    attempt === 3 ? { outcome: 'retry', cause } : delivered,
  );

  const position = await drained(spool, senderOn(spool, sink, { inFlightMax: 8, eventsMax: 4 }));

  expect(position).toBe(24);
  // What the far side took meanwhile of those behind is not sent again.
  expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(numbers(24));
  expect(taken.slice(0, 8)).toEqual(numbers(8));
  await spool.close();
});

test.each([
  [undefined, 0],
  [30, 30],
])(
  'pipelined sender sends again what failed after the wait that it is asked for: %s',
  async (afterMs, waitMs) => {
    const spool = await heldEvents(12);
    const { sink } = scripted((_, attempt) =>
      attempt === 2
        ? { outcome: 'retry', cause, ...(afterMs !== undefined && { afterMs }) }
        : delivered,
    );
    const told: unknown[] = [];
    const log = { ...silent, warn: (_: string, fields?: object) => told.push(fields) };

    await drained(spool, senderOn(spool, sink, { inFlightMax: 8, eventsMax: 4, log }));

    expect(told).toEqual([expect.objectContaining({ wait_ms: waitMs })]);
    await spool.close();
  },
);

test('pipelined sender sends again only what was not taken, though more is there by then to fill its batches', async () => {
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
        const lost = new Set<string>();
        let turn = 0;
        const { sink, taken } = scripted(async ({ events }) => {
          const kind = kinds[turn++] ?? 'delivered';
          for (let late = (turn * 5) % 7; late > 0; late -= 1) await setImmediate();
          if (kind === 'retry') return { outcome: 'retry', cause };
          if (kind === 'refused') {
            if (events.length === 1) lost.add(idOf(events[0] as Event));
            return { outcome: 'refused', scope: 'batch', cause };
          }
          if (kind === 'delivered') return delivered;
          const [first, ...rest] = events.map(({ uid }) => uid);
          if (first !== undefined) lost.add(idOf(events[0] as Event));
          return {
            outcome: 'partly',
            refused: [{ uid: first ?? '', reason: 'told to' }],
            again: rest.slice(0, 2),
          };
        });

        const position = await drained(spool, senderOn(spool, sink, { inFlightMax, eventsMax }));
        await spool.close();

        expect(position).toBe(20);
        const settled = new Set([...taken, ...lost]);
        expect([...settled].sort((a, b) => Number(a) - Number(b))).toEqual(numbers(20));
        expect(new Set(taken).size).toBe(taken.length);
        if (inFlightMax === 1) expect(taken.length + lost.size).toBe(20);
      },
    ),
    { numRuns: 25 },
  );
});
