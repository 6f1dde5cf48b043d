// The syslog sink over UDP, against plain sockets: one message a datagram, unchanged by the library that sends it, and
// only rejections by this machine's kernel are reported. A real rsyslog is in syslog-rsyslog.test.ts.

import { createSocket, type SocketType } from 'node:dgram';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import { anEvent } from '../../support/an-event.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { afterThisTest, waitUntil } from '../../support/temp.ts';
import { uidOf } from './syslog-resend.ts';

const never = new AbortController().signal;

async function udpReceiver(type: SocketType = 'udp4', host = '127.0.0.1') {
  const received: Buffer[] = [];
  const socket = createSocket({ type, recvBufferSize: 1024 * 1024 });
  socket.on('message', (bytes) => received.push(bytes));
  socket.bind(0, host);
  await once(socket, 'listening');
  afterThisTest(() => socket.close());
  return { received, port: socket.address().port };
}

test('send puts each message into one datagram, byte for byte as formatted', async () => {
  const { received, port } = await udpReceiver();
  const { sink, batch } = await openSink(syslogSink, { address: `udp://127.0.0.1:${port}` });
  const events = [
    ...someEvents(200),
    anEvent({ offset: 200, ocsf: { message: 'é 日本 🛡\n<0>1 - - - - - - forged' } }),
  ];
  const { lines } = batch(events);
  const messages = events.map((_, i) => lines.bytes.slice(lines.starts[i], lines.ends[i]));

  const answer = await sink.send(batch(events), never);

  expect(answer).toEqual({ outcome: 'delivered' });
  await waitUntil(() => received.length >= events.length, { what: 'all datagrams' });
  expect(received.map((bytes) => bytes.toString())).toEqual(
    messages.map((bytes) => Buffer.from(bytes).toString()),
  );
});

test('send resolves a name, and reaches IPv6', async () => {
  const { received, port } = await udpReceiver('udp6', '::1');
  const { sink, batch } = await openSink(syslogSink, { address: `udp://[::1]:${port}` });

  expect(await sink.send(batch(someEvents(1)), never)).toEqual({ outcome: 'delivered' });
  await waitUntil(() => received.length === 1, { what: 'the datagram' });
});

test('a message too large for a datagram is refused by its uid, the others go', async () => {
  const { received, port } = await udpReceiver();
  const { sink, batch } = await openSink(syslogSink, { address: `udp://127.0.0.1:${port}` });
  const events = someEvents(3);
  const whole = batch(events);
  // As a format without a bound would have made it.
  const bytes = new Uint8Array(whole.lines.bytes.length + 70_000).fill(0x61);
  bytes.set(whole.lines.bytes);
  const ends = whole.lines.ends.map((end, i) => (i === 2 ? end + 70_000 : end));

  const answer = await sink.send({ ...whole, lines: { ...whole.lines, bytes, ends } }, never);

  expect(answer).toEqual({
    outcome: 'partly',
    refused: [
      {
        uid: events[2]?.uid,
        by: 'sink',
        reason: expect.stringMatching(/too large for a datagram.*tcp:/),
      },
    ],
    again: [],
  });
  await waitUntil(() => received.length === 2, { what: 'the others' });
  expect(received.map((datagram) => uidOf(datagram.toString()))).toEqual(
    events.slice(0, 2).map(({ uid }) => uid),
  );
});

test('a receiver that cannot be reached at all is retry', async () => {
  // TEST-NET addresses of the wrong family: no socket of this machine reaches a multicast scope that does not exist.
  const { sink, batch } = await openSink(syslogSink, { address: 'udp://no-such-host.invalid:514' });

  const answer = await sink.send(batch(someEvents(2)), never);

  expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
});

test('sends do not overlap, so that one wave of datagrams bounds them all', async () => {
  const { received, port } = await udpReceiver();
  const { sink, batch } = await openSink(syslogSink, { address: `udp://127.0.0.1:${port}` });
  const events = someEvents(300);

  await Promise.all([0, 100, 200].map((i) => sink.send(batch(events.slice(i, i + 100)), never)));

  await waitUntil(() => received.length === 300, { what: 'all datagrams' });
  expect(received.map((datagram) => uidOf(datagram.toString()))).toEqual(
    events.map(({ uid }) => uid),
  );
});

test('close waits for a send under way, and send rejects once aborted', async () => {
  const { received, port } = await udpReceiver();
  const { sink, batch } = await openSink(syslogSink, { address: `udp://127.0.0.1:${port}` });

  const sending = sink.send(batch(someEvents(100)), never);
  await sink.close();
  await sending;

  await waitUntil(() => received.length === 100, { what: 'all datagrams' });
  await expect(sink.send(batch(someEvents(1)), AbortSignal.abort(new Error('no')))).rejects.toThrow(
    'no',
  );
});

test('probe resolves the name and sends nothing', async () => {
  const { received, port } = await udpReceiver();
  const probe = (address: string) =>
    syslogSink.probe(parseSettings(syslogSink, { address }), testTools(), never);

  await probe(`udp://127.0.0.1:${port}`);

  expect(received).toEqual([]);
  await expect(probe('udp://no-such-host.invalid:514')).rejects.toMatchObject({
    code: 'sink_unreachable',
  });
});
