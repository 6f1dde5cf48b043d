// Settled delivery over TCP against receivers that misbehave: nothing is lost, and what is repeated has the same uid. The
// receiver counts what its program has read; what only its kernel took does not count, since that is what a reset
// takes away. TLS is tested in syslog-tls.test.ts, a real rsyslog in syslog-rsyslog.test.ts.

import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import { anEvent } from '../../support/an-event.ts';
import { manualClock } from '../../support/manual-clock.ts';
import { openSink, someEvents, testTools } from '../../support/sink-opening.ts';
import { startTcpReceiver, type TcpReceiver } from '../../support/tcp-receiver.ts';
import { freePort, waitUntil } from '../../support/temp.ts';
import { faultyNetwork, listen } from './syslog-receivers.ts';
import { deliverAll, uidOf } from './syslog-resend.ts';

const never = new AbortController().signal;

function openTo(receiver: { readonly port: number }, config: object = {}) {
  return openSink(syslogSink, {
    address: `tcp://127.0.0.1:${receiver.port}`,
    resend_window: '200ms',
    ...config,
  });
}

function uidsOf(receiver: TcpReceiver): readonly string[] {
  return receiver.frames.map(({ text }) => uidOf(text));
}

test.each(['octet_counting', 'newline'] as const)(
  'send delivers in order, each event once, with %s framing',
  async (framing) => {
    const receiver = await startTcpReceiver();
    const opened = await openTo(receiver, { framing });
    const events = someEvents(2000);

    const { retries } = await deliverAll(opened, events);

    expect(retries).toBe(0);
    expect(uidsOf(receiver)).toEqual(events.map(({ uid }) => uid));
    expect(new Set(receiver.frames.map((frame) => frame.framing))).toEqual(
      new Set([framing === 'newline' ? 'lf' : framing]),
    );
    expect(receiver.faults).toEqual([]);
  },
);

test('send reports delivered only when the connection was healthy for the window', async () => {
  const receiver = await startTcpReceiver();
  const { sink, batch } = await openTo(receiver, { resend_window: '1h' });
  let answer: Delivery | null = null;

  const sending = sink.send(batch(someEvents(10)), never);
  void sending.then((delivery) => {
    answer = delivery;
  });
  await receiver.waitFor(10);
  expect(answer).toBeNull();
  receiver.resetAll();

  expect(await sending).toMatchObject({
    outcome: 'retry',
    cause: { code: 'sink_unreachable', message: expect.stringContaining('ECONNRESET') },
  });
});

test.each([{ confirm: 'window' }, { confirm: 'close' }] as const)(
  'a receiver that resets a fifth of its reads loses nothing, with confirm: $confirm',
  async ({ confirm }) => {
    const receiver = await startTcpReceiver({
      behaviour: { kind: 'reset', probability: 0.2, seed: 20_260_301 },
    });
    const opened = await openTo(receiver, { confirm, resend_window: '100ms' });
    const events = someEvents(1000);

    const { retries, handed } = await deliverAll(opened, events, { batchSize: 25, ahead: 8 });

    const uids = uidsOf(receiver);
    expect(new Set(uids)).toEqual(new Set(events.map(({ uid }) => uid)));
    expect(receiver.resets).toBeGreaterThan(3);
    expect(retries).toBeGreaterThan(3);
    expect(uids.length).toBeLessThanOrEqual(handed);
    expect(receiver.faults).toEqual([]);
  },
);

test.each([{ confirm: 'window' }, { confirm: 'close' }] as const)(
  'a slow network that resets a fifth of the connections loses nothing, with confirm: $confirm',
  async ({ confirm }) => {
    const receiver = await startTcpReceiver();
    const network = await faultyNetwork(receiver, { resetProbability: 0.2, delayMs: 30 });
    const opened = await openTo(network, { confirm, resend_window: '150ms' });
    const events = someEvents(1000);

    await deliverAll(opened, events, { batchSize: 50, ahead: 4 });

    expect(new Set(uidsOf(receiver))).toEqual(new Set(events.map(({ uid }) => uid)));
    expect(network.resets()).toBeGreaterThan(1);
    expect(receiver.faults).toEqual([]);
  },
);

test('a receiver that closes in order now and then loses nothing', async () => {
  const receiver = await startTcpReceiver({ behaviour: { kind: 'close', afterFrames: 300 } });
  const opened = await openTo(receiver, { resend_window: '50ms' });
  const events = someEvents(1000);
  const healing = waitUntil(() => receiver.connections >= 3, { what: 'three connections' });

  const delivered = deliverAll(opened, events, { ahead: 8 });
  await healing;
  receiver.behave({ kind: 'read' });
  const { causes } = await delivered;

  expect(new Set(uidsOf(receiver))).toEqual(new Set(events.map(({ uid }) => uid)));
  expect([...causes].join()).toContain('the receiver closed the connection');
});

test('a receiver that is away and comes back loses nothing', async () => {
  const receiver = await startTcpReceiver();
  const opened = await openTo(receiver);
  const events = someEvents(1500);

  const delivered = deliverAll(opened, events, { ahead: 8 });
  await receiver.waitFor(300);
  await receiver.close();
  await delay(50); // refused meanwhile
  await receiver.reopen();
  const { causes } = await delivered;

  expect(new Set(uidsOf(receiver))).toEqual(new Set(events.map(({ uid }) => uid)));
  expect([...causes].join()).toContain('ECONNREFUSED');
});

describe('a receiver that stops reading', () => {
  test('nothing that the receiver’s kernel has not acknowledged is reported delivered, however long it takes', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' } });
    const { sink, batch } = await openTo(receiver, { resend_window: '20ms' });
    const answers: (Delivery | null)[] = [];
    const events = someEvents(3000); // about 4 MB: more than a receiver's buffer, less than the two kernels' together

    for (let i = 0; i < 30; i++) {
      answers.push(null);
      const sending = sink.send(batch(events.slice(i * 100, i * 100 + 100)), never);
      void sending.then((delivery) => {
        answers[i] = delivery;
      });
    }
    await delay(500); // 25 windows
    receiver.resetAll();
    await waitUntil(() => answers.every((answer) => answer !== null), { what: 'all answers' });

    const settled = answers.filter((answer) => answer?.outcome === 'delivered').length;
    expect(settled).toBeLessThan(10);
    expect(answers.at(-1)).toMatchObject({ outcome: 'retry' });
  });

  test('nothing is reported delivered while nothing moves, even bytes that the receiver’s kernel has acknowledged', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' } });
    const opened = await openTo(receiver, { resend_window: '400ms' });
    const events = someEvents(8000); // more than the kernels take: the first batches are acknowledged, the last wait
    let answers = 0;

    const sends = Array.from({ length: 80 }, (_, i) => {
      const part = opened.batch(events.slice(i * 100, i * 100 + 100));
      return opened.sink.send(part, never).finally(() => {
        answers += 1;
      });
    });
    await delay(1200); // three windows
    const early = answers;
    receiver.behave({ kind: 'read' });
    const outcomes = (await Promise.all(sends)).map(({ outcome }) => outcome);

    expect(early).toBe(0);
    expect(new Set(outcomes)).toEqual(new Set(['delivered']));
    expect(uidsOf(receiver)).toEqual(events.map(({ uid }) => uid));
  });

  test('is left after stall_timeout, and nothing is lost', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' } });
    const config = { confirm: 'window', resend_window: '600ms', stall_timeout: '300ms' };
    const opened = await openTo(receiver, config);
    const events = someEvents(3000);

    const delivered = deliverAll(opened, events, { batchSize: 100, ahead: 30 });
    await waitUntil(() => receiver.connections === 2, { what: 'a second connection' });
    receiver.behave({ kind: 'read' });
    const { causes } = await delivered;

    expect(new Set(uidsOf(receiver))).toEqual(new Set(events.map(({ uid }) => uid)));
    expect([...causes].join()).toContain('nothing has moved for 0.3 s');
  });

  test('with confirm: close nothing is reported delivered that the receiver’s program has not read', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' } });
    const opened = await openTo(receiver, { confirm: 'close', resend_window: '20ms' });
    const events = someEvents(100); // fits into the receiver's kernel whole

    const sending = opened.sink.send(opened.batch(events), never);
    await delay(300); // 15 windows
    receiver.resetAll();

    expect(await sending).toMatchObject({ outcome: 'retry' });
    expect(receiver.frames).toEqual([]);
  });

  test('keeps no more than a batch in memory beyond the bytes that the kernel accepts', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' } });
    const { sink, batch } = await openTo(receiver, { resend_window: '1h' });
    const part = batch(someEvents(700)); // about 1 MB, the same for each send
    const abort = new AbortController();
    const before = process.memoryUsage().arrayBuffers;

    const sends = Array.from({ length: 200 }, () => sink.send(part, abort.signal));
    await delay(200);
    const grown = process.memoryUsage().arrayBuffers - before;
    abort.abort(new Error('enough'));

    const answers = await Promise.allSettled(sends);
    expect(answers.map(({ status }) => status)).not.toContain('fulfilled');
    expect(grown).toBeLessThan(16 * 1024 * 1024);
  });
});

test('send to a port where nothing listens is retry, and names the setting to check', async () => {
  const { sink, batch } = await openTo({ port: await freePort() });

  const answer = await sink.send(batch(someEvents(1)), never);

  expect(answer).toMatchObject({
    outcome: 'retry',
    cause: {
      code: 'sink_unreachable',
      message: expect.stringMatching(/connecting to tcp:.*connection refused/),
      next: expect.stringContaining('Nothing was lost'),
    },
  });
});

test('sends that come while connecting share one connection, in order', async () => {
  const receiver = await startTcpReceiver();
  const { sink, batch } = await openTo(receiver);
  const events = someEvents(20);

  await Promise.all(events.map((event) => sink.send(batch([event]), never)));

  expect(receiver.connections).toBe(1);
  expect(uidsOf(receiver)).toEqual(events.map(({ uid }) => uid));
});

test('send rejects when its signal aborts, and unwritten events are never sent', async () => {
  const receiver = await startTcpReceiver();
  const { sink, batch } = await openTo(receiver);
  const abort = new AbortController();
  const [first, second] = someEvents(2);
  if (!first || !second) throw new Error('two events');

  const sending = sink.send(batch([first]), abort.signal);
  abort.abort(new Error('no longer wanted'));

  await expect(sending).rejects.toThrow('no longer wanted');
  expect(await sink.send(batch([second]), never)).toEqual({ outcome: 'delivered' });
  expect(uidsOf(receiver)).toEqual([second.uid]);
});

describe('close', () => {
  test('settles everything at once when the receiver answers with its own close', async () => {
    const receiver = await startTcpReceiver();
    const { sink, batch } = await openTo(receiver, { resend_window: '1h' });
    const events = someEvents(3000);

    const sends = events.flatMap((_, i) =>
      i % 100 === 0 ? [sink.send(batch(events.slice(i, i + 100)), never)] : [],
    );
    await receiver.waitFor(2000);
    await Promise.all([sink.close(), sink.close()]);
    const answers = await Promise.all(sends);

    const delivered = answers.filter(({ outcome }) => outcome === 'delivered').length;
    expect(delivered).toBeGreaterThanOrEqual(20);
    expect(uidsOf(receiver).slice(0, delivered * 100)).toEqual(
      events.slice(0, delivered * 100).map(({ uid }) => uid),
    );
    expect(receiver.open).toBe(0);
  });

  test('returns retry when the receiver resets instead of reading', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' } });
    const { sink, batch } = await openTo(receiver, { resend_window: '1h' });

    const sending = sink.send(batch(someEvents(100)), never);
    await waitUntil(() => receiver.open === 1, { what: 'the connection' });
    const closing = sink.close();
    receiver.resetAll();

    await closing;
    expect(await sending).toMatchObject({ outcome: 'retry' });
  });

  test('does not wait for ever when the receiver never closes', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'half_open' } });
    const clock = manualClock();
    const address = `tcp://127.0.0.1:${receiver.port}`;
    const { sink, batch } = await openSink(syslogSink, { address }, { tools: testTools(clock) });

    const sending = sink.send(batch(someEvents(100)), never);
    await receiver.waitFor(100);
    const closing = sink.close();
    await clock.advance(1_999);
    expect(receiver.open).toBe(1);
    await clock.advance(3_001);
    await closing;

    expect(await sending).toMatchObject({ outcome: 'retry' });
  });

  test('still settles by the window when the receiver never closes', async () => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'half_open' } });
    const { sink, batch } = await openTo(receiver, { confirm: 'window', resend_window: '100ms' });

    const sending = sink.send(batch(someEvents(100)), never);
    await receiver.waitFor(100);
    await sink.close();

    expect(await sending).toEqual({ outcome: 'delivered' });
  });

  test('a receiver that closed by itself has not read the later bytes', async () => {
    // Reads the first batch, closes in order, and is gone by the time that the second batch and our close come.
    let gone = () => {};
    const port = await listen(
      createServer({ allowHalfOpen: true }, (socket) => {
        socket.once('data', () => socket.end(() => socket.destroy()));
        socket.once('close', () => gone());
      }),
    );
    const { sink, batch } = await openTo({ port }, { resend_window: '1h' });
    const [first, second] = [batch(someEvents(1)), batch(someEvents(1, 1))];

    const answers = await new Promise<readonly Delivery[]>((resolve) => {
      const sending = sink.send(first, never);
      gone = () => {
        resolve(Promise.all([sending, sink.send(second, never)]));
        void sink.close();
      };
    });

    expect(answers.map(({ outcome }) => outcome)).toEqual(['retry', 'retry']);
  });

  test('while connecting returns retry and leaves nothing open', async () => {
    const receiver = await startTcpReceiver();
    const { sink, batch } = await openTo(receiver);

    const sending = sink.send(batch(someEvents(1)), never);
    await sink.close();

    expect(await sending).toMatchObject({ outcome: 'retry' });
    await waitUntil(() => receiver.open === 0, { what: 'no connection' });
  });
});

test('confirm: close uses a connection per window and answers when the receiver has read it', async () => {
  const receiver = await startTcpReceiver();
  const opened = await openTo(receiver, { confirm: 'close', resend_window: '30ms' });
  const events = someEvents(5000);

  const { retries } = await deliverAll(opened, events, { batchSize: 10, ahead: 16 });

  expect(retries).toBe(0);
  expect(uidsOf(receiver)).toEqual(events.map(({ uid }) => uid));
  expect(receiver.connections).toBeGreaterThan(1);
});

test('hostile content arrives as one message each, in either framing', async () => {
  const hostile = [
    'a\nb',
    '\r\n<0>1 - - - - - - forged',
    '12 <0>1 - - - - - - forged',
    '\u0000nul',
    '\u2028\u2029\u0085',
    ']"\\',
    '\ud800 lone',
    '日本語 🛡 é',
    '\u001b[31mred',
    '|=\\n',
    '{"__proto__":1}',
    ' 7 ',
    '\t',
  ];
  const events = hostile.map((message, offset) =>
    anEvent({ offset, stream: message, ocsf: { message, actor: { user: { name: message } } } }),
  );
  for (const framing of ['octet_counting', 'newline']) {
    for (const format of ['json', 'cef', 'syslog']) {
      const receiver = await startTcpReceiver();
      const address = `tcp://127.0.0.1:${receiver.port}`;
      const wishes = { format };
      const config = { address, framing, resend_window: '20ms' };

      await deliverAll(await openSink(syslogSink, config, wishes), events);

      expect(uidsOf(receiver)).toEqual(events.map(({ uid }) => uid));
      expect(receiver.faults).toEqual([]);
    }
  }
});

test('with confirm: close a receiver that never closes is reported, and nothing counts as delivered', async () => {
  const receiver = await startTcpReceiver({ behaviour: { kind: 'half_open' } });
  const config = { confirm: 'close', resend_window: '20ms', stall_timeout: '200ms' };
  const { sink, batch } = await openTo(receiver, config);

  const answer = await sink.send(batch(someEvents(10)), never);

  expect(receiver.frames).toHaveLength(10);
  expect(answer).toMatchObject({
    outcome: 'retry',
    cause: { next: expect.stringContaining('use confirm: window') },
  });
});

test('a batch without events is delivered', async () => {
  const receiver = await startTcpReceiver();
  const { sink, batch } = await openTo(receiver, { resend_window: '20ms' });

  expect(await sink.send(batch([]), never)).toEqual({ outcome: 'delivered' });
});

test('a message with a line feed is refused for newline framing, so that it cannot forge another', async () => {
  const receiver = await startTcpReceiver();
  const { sink, batch } = await openTo(receiver, { framing: 'newline' });
  const whole = batch(someEvents(2));
  const torn = { ...whole.lines, bytes: whole.lines.bytes.slice() };
  torn.bytes[(torn.starts[1] ?? 0) + 20] = 0x0a;

  const answer = await sink.send({ ...whole, lines: torn }, never);

  expect(answer).toMatchObject({
    outcome: 'refused',
    scope: 'batch',
    cause: { code: 'record_refused', next: expect.stringContaining('octet_counting') },
  });
  expect(receiver.frames).toEqual([]);
});

describe('probe', () => {
  test('connects and sends nothing', async () => {
    const receiver = await startTcpReceiver();
    const settings = settingsFor(`tcp://127.0.0.1:${receiver.port}`);

    await syslogSink.probe(settings, testTools(), never);

    await waitUntil(() => receiver.connections === 1 && receiver.open === 0, { what: 'a visit' });
    expect(receiver.frames).toEqual([]);
  });

  test('says when nothing listens', async () => {
    const settings = settingsFor(`tcp://127.0.0.1:${await freePort()}`);

    await expect(syslogSink.probe(settings, testTools(), never)).rejects.toMatchObject({
      code: 'sink_unreachable',
    });
  });
});

function settingsFor(address: string) {
  return {
    type: 'syslog',
    address: {
      transport: 'tcp',
      host: '127.0.0.1',
      port: Number(address.split(':').at(-1)),
      text: address,
    },
    connect_timeout: 5000,
    stall_timeout: 5000,
  };
}
