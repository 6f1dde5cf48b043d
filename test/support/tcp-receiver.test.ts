// The TCP receiver splits frames correctly however they arrive, and fails as scripted.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { makeCa, makeUntrustedCa } from './certificates.ts';
import { FrameSplitter } from './syslog-frames.ts';
import { startTcpReceiver } from './tcp-receiver.ts';
import { waitUntil } from './temp.ts';

const counted = (text: string) => `${Buffer.byteLength(text)} ${text}`;

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.resume();
  await once(socket, 'connect');
  return socket;
}

async function rejection(socket: Socket): Promise<unknown> {
  const [error] = await once(socket, 'error');
  return error;
}

describe('FrameSplitter', () => {
  test('gives the same frames however the stream is cut', () => {
    const frame = fc.record({
      text: fc.string({ unit: 'grapheme', minLength: 1 }),
      isCounted: fc.boolean(),
    });
    const property = fc.property(fc.array(frame), fc.integer({ min: 1, max: 20 }), (all, step) => {
      const frames = all.map((it) => ({ ...it, text: `<1>${it.text}` }));
      const line = (text: string) => text.replaceAll('\n', ' ');
      const stream = Buffer.from(
        frames.map((it) => (it.isCounted ? counted(it.text) : `${line(it.text)}\n`)).join(''),
      );
      const splitter = new FrameSplitter();
      const split: string[] = [];

      for (let at = 0; at < stream.length; at += step) {
        for (const { bytes } of splitter.push(stream.subarray(at, at + step))) {
          split.push(bytes.toString());
        }
      }

      expect(split).toEqual(frames.map((it) => (it.isCounted ? it.text : line(it.text))));
      expect(splitter.pending).toBe(0);
    });
    fc.assert(property);
  });

  test.for(['0 a', '012 a', '12a', '99999999999 a'])('takes %j for no frame', (stream) => {
    const splitter = new FrameSplitter();

    expect(splitter.push(Buffer.from(stream))).toEqual([]);
    expect(splitter.fault).toContain('as its length');
  });
});

describe('startTcpReceiver', () => {
  test('counts whole frames and torn ones, over TCP and TLS', async () => {
    const tls = await makeCa();
    const plain = await startTcpReceiver();
    const secure = await startTcpReceiver({ tls });

    (await open(plain.port)).end(`${counted('<1>a\nb')}<1>c\n20 <1>torn`);
    connectTls({ port: secure.port, host: '127.0.0.1', ca: tls.ca }).end(counted('<1>secret'));

    await plain.waitFor(2);
    await waitUntil(() => plain.open === 0, { what: 'the connection to end' });
    const seen = plain.frames.map(({ framing, text }) => `${framing} ${text}`);
    expect(seen).toEqual(['octet_counting <1>a\nb', 'lf <1>c']);
    expect(plain.torn).toBe(1);
    expect((await secure.waitFor(1))[0]?.text).toBe('<1>secret');
  });

  test('shows another certificate, resets over TLS too, and closes although a handshake has failed', async () => {
    const tls = await makeCa();
    const receiver = await startTcpReceiver({ tls: await makeUntrustedCa() });
    receiver.show(tls);
    const trusting = connectTls({ port: receiver.port, host: '127.0.0.1', ca: tls.ca });
    const refusing = connectTls({ port: receiver.port, host: '127.0.0.1' });
    await Promise.all([once(trusting, 'secureConnect'), rejection(refusing)]);
    const silent = await open(receiver.port);
    await waitUntil(() => receiver.connections === 3, { what: 'all three' });

    const [reset] = await Promise.all([rejection(trusting), receiver.close()]);

    expect(reset).toMatchObject({ code: 'ECONNRESET' });
    expect(receiver.open).toBe(0);
    silent.destroy();
  });

  test('resets connections at random, the same way for the same seed', async () => {
    const survivors = async (seed: number) => {
      const receiver = await startTcpReceiver({
        behaviour: { kind: 'reset', probability: 0.5, seed },
      });
      for (let n = 0; n < 20; n += 1) {
        const socket = await open(receiver.port);
        socket.end(counted(`<1>${n}`));
        await waitUntil(() => socket.closed, { what: 'the connection to end' });
      }
      expect(receiver.resets + receiver.frames.length).toBe(20);
      return receiver.frames.map((frame) => frame.text).join();
    };

    const first = await survivors(7);
    const again = await survivors(7);
    const other = await survivors(8);

    expect(first).not.toBe('');
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });

  test('stalls until it is to read: the sender is not drained before', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' } });
    const socket = await open(receiver.port);
    const frame = counted(`<1>${'x'.repeat(10_000_000)}`);

    socket.write(frame);
    await waitUntil(() => receiver.open === 1, { what: 'the connection' });
    const waiting = socket.writableLength;
    receiver.behave({ kind: 'read' });
    await receiver.waitFor(1);

    expect(waiting).toBeGreaterThan(0);
    expect(receiver.frames[0]?.bytes.length).toBe(10_000_003);
    socket.destroy();
  });

  test('reads slowly, and everything in the end', async () => {
    const receiver = await startTcpReceiver({
      behaviour: { kind: 'slow', bytesPerSecond: 2_000_000 },
    });
    const socket = await open(receiver.port);

    socket.end(counted(`<1>${'x'.repeat(200_000)}`));

    await receiver.waitFor(1);
    expect(receiver.frames).toHaveLength(1);
  });

  test('does not answer the close of the peer when half open', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'half_open' } });
    const socket = await open(receiver.port);
    let isClosed = false;
    socket.once('close', () => {
      isClosed = true;
    });

    socket.end(counted('<1>a'));
    await receiver.waitFor(1);
    await waitUntil(() => socket.writableFinished, { what: 'the close to be sent' });
    const isClosedWhileHalfOpen = isClosed;
    receiver.resetAll();
    await waitUntil(() => isClosed, { what: 'the reset to arrive' });

    expect(isClosedWhileHalfOpen).toBe(false);
  });

  test('closes in order after so many frames, and refuses while closed', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'close', afterFrames: 2 } });
    const socket = await open(receiver.port);

    socket.write(counted('<1>a') + counted('<1>b'));
    await once(socket, 'end');
    await receiver.close();
    const refused = connect(receiver.port, '127.0.0.1');
    const [error] = await once(refused, 'error');
    await receiver.reopen();
    (await open(receiver.port)).end(counted('<1>c'));

    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    expect((await receiver.waitFor(3)).map((frame) => frame.text)).toEqual([
      '<1>a',
      '<1>b',
      '<1>c',
    ]);
  });
});
