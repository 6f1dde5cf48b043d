// The sink's conclusions without any response: a receiver that hangs for many windows and is then reset has read
// nothing of the bytes in its kernel, and nothing is lost; one that never closes is settled by the window, and
// reported.

import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import { makeCa } from '../../support/certificates.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { startTcpReceiver } from '../../support/tcp-receiver.ts';
import { waitUntil } from '../../support/temp.ts';
import { listen } from './syslog-receivers.ts';
import { deliverAll, uidOf } from './syslog-resend.ts';

const never = new AbortController().signal;
const windowMs = 50;

async function openOver(way: 'tcp' | 'tls', port: number, config: object = {}) {
  const tls = way === 'tls' ? { tls: { ca_file: (await makeCa()).caFile } } : {};
  const address = `${way}://127.0.0.1:${port}`;
  return openSink(syslogSink, { address, resend_window: `${windowMs}ms`, ...tls, ...config });
}

async function receiverOver(way: 'tcp' | 'tls') {
  return startTcpReceiver(way === 'tls' ? { tls: await makeCa() } : {});
}

describe.each(['tcp', 'tls'] as const)('over %s a receiver that hangs and is then reset', (way) => {
  test.each([
    { stream: 'quiet', count: 5, batchSize: 1 },
    { stream: 'busy', count: 4000, batchSize: 50 },
  ])('loses nothing of a $stream stream', async ({ count, batchSize }) => {
    const receiver = await receiverOver(way);
    const opened = await openOver(way, receiver.port);
    const events = someEvents(count + 1);
    // One event has shown that this receiver answers.
    await deliverAll(opened, events.slice(0, 1));
    receiver.behave({ kind: 'stall' });

    const delivering = deliverAll(opened, events.slice(1), { batchSize, ahead: 20 });
    await delay(20 * windowMs);
    const readEarly = receiver.frames.length;
    receiver.resetAll();
    receiver.behave({ kind: 'read' });
    const { retries } = await delivering;

    expect(readEarly).toBe(1);
    expect(retries).toBeGreaterThan(0);
    expect(new Set(receiver.frames.map(({ text }) => uidOf(text)))).toEqual(
      new Set(events.map(({ uid }) => uid)),
    );
  });
});

test('events keep their order over many connections, each of which is confirmed', async () => {
  const receiver = await startTcpReceiver();
  const opened = await openOver('tcp', receiver.port);
  const events = someEvents(3000);
  const places = new Map(events.map(({ uid }, place) => [uid as string, place]));

  const { retries } = await deliverAll(opened, events, { batchSize: 20, ahead: 8 });

  expect(retries).toBe(0);
  expect(receiver.connections).toBeGreaterThan(3);
  expect(receiver.torn).toBe(0);
  const arrived = receiver.frames.map(({ text, connection }) => ({
    connection,
    place: places.get(uidOf(text)) ?? -1,
  }));
  for (const own of Map.groupBy(arrived, ({ connection }) => connection).values()) {
    expect(own).toEqual(own.toSorted((a, b) => a.place - b.place));
  }
  expect(arrived.map(({ place }) => place).toSorted((a, b) => a - b)).toEqual(
    events.map((_, place) => place),
  );
});

test('a quiet stream has one connection for each time that it speaks, and none between', async () => {
  const receiver = await startTcpReceiver();
  const { sink, batch } = await openOver('tcp', receiver.port);

  for (const event of someEvents(3)) {
    expect(await sink.send(batch([event]), never)).toEqual({ outcome: 'delivered' });
    await waitUntil(() => receiver.open === 0, { what: 'no connection' });
  }
  await delay(5 * windowMs);

  expect(receiver.connections).toBe(3);
});

test('a receiver that never closes is settled by the window from then on, and reported', async () => {
  const receiver = await startTcpReceiver({ behaviour: { kind: 'half_open' } });
  const { sink, batch } = await openOver('tcp', receiver.port, { stall_timeout: '300ms' });
  const before = sink.notice?.();

  const first = await sink.send(batch(someEvents(10)), never);
  const connections = receiver.connections;
  const later = await sink.send(batch(someEvents(10, 10)), never);
  const last = await sink.send(batch(someEvents(10, 20)), never);

  expect(before).toBeNull();
  expect([first, later, last].map(({ outcome }) => outcome)).toEqual(Array(3).fill('delivered'));
  expect(sink.notice?.()).toMatchObject({ next: expect.stringContaining('confirm: window') });
  expect(receiver.frames).toHaveLength(30); // none of them twice
  expect(receiver.connections).toBe(connections + 1);
});

test('a receiver that resets instead of closing is settled by the window in the end', async () => {
  const port = await listen(
    createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {});
      socket.on('end', () => socket.resetAndDestroy());
      socket.resume();
    }),
  );
  const opened = await openOver('tcp', port);

  const { retries } = await deliverAll(opened, someEvents(10), { batchSize: 10 });

  expect(retries).toBeGreaterThanOrEqual(3);
  expect(opened.sink.notice?.()).not.toBeNull();
});
