// The syslog sink with RELP receivers that behave unlike rsyslogd: responses in any order, rejections, sessions that
// end at the worst moment, and servers of another protocol. The real one is in syslog-relp-rsyslog.test.ts.

import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import {
  FrameMemory,
  FrameReader,
  stepsBetween,
} from '../../../connectors/sinks/syslog/relp-frames.ts';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import { deliver } from '../../contracts/deliver.ts';
import { uidsIn } from '../../contracts/receivers/receiver.ts';
import { anEvent } from '../../support/an-event.ts';
import { type RelpBehaviour, startRelpReceiver } from '../../support/relp-receiver.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { listen } from './syslog-receivers.ts';

const never = new AbortController().signal;

async function withReceiver(behaviour: RelpBehaviour, config: object = {}) {
  const receiver = await startRelpReceiver(behaviour);
  const address = `relp://127.0.0.1:${receiver.port}`;
  const opened = await openSink(syslogSink, { address, ...config });
  const arrived = () => receiver.messages.flatMap((message) => uidsIn(message).slice(0, 1));
  return { receiver, opened, arrived };
}

test.each([1, 10, 1000])(
  'keeps to a window of %i and takes answers in any order',
  async (window) => {
    const { receiver, opened, arrived } = await withReceiver({ together: 7 }, { window });
    const events = someEvents(600);

    const { attempts } = await deliver(opened, events, 200);
    await opened.sink.close();

    expect(arrived()).toEqual(events.map(({ uid }) => uid));
    expect(attempts).toBe(3);
    expect(receiver.unansweredMost).toBeLessThanOrEqual(window);
    expect([receiver.sessions, receiver.faults]).toEqual([1, []]);
  },
);

test('keeps to a mebibyte without an answer, however wide the window', async () => {
  const settings = { window: 1000, max_message: 200_000, stall_timeout: '1s' };
  const { receiver, opened } = await withReceiver({ answer: () => 'nothing' }, settings);
  const message = 'm'.repeat(100_000);
  const events = Array.from({ length: 64 }, (_, offset) => anEvent({ offset, ocsf: { message } }));

  const answer = await opened.sink.send(opened.batch(events), never);

  expect(answer.outcome).toBe('retry');
  expect(receiver.unansweredMost).toBeGreaterThan(5);
  expect(receiver.unansweredMost).toBeLessThanOrEqual(10);
});

test('repeats only messages without a response when a session ends', async () => {
  const taken: string[] = [];
  const { receiver, opened, arrived } = await withReceiver({
    answer: (message) => (taken.push(message) === 50 ? 'take and cut' : '200 OK'),
  });
  const events = someEvents(100);

  const first = await opened.sink.send(opened.batch(events), never);
  const rest = events.filter(({ uid }) => first.outcome === 'partly' && first.again.includes(uid));
  const second = await opened.sink.send(opened.batch(rest), never);

  expect([first.outcome, second.outcome]).toEqual(['partly', 'delivered']);
  expect(arrived().length - 100).toBeLessThanOrEqual(49);
  expect(new Set(arrived())).toEqual(new Set(events.map(({ uid }) => uid)));
  expect(receiver.faults).toEqual([]);
});

test('a receiver that refuses everything is reported to the engine, and gets nothing twice', async () => {
  const { receiver, opened, arrived } = await withReceiver({});
  const [before, while_, after] = [someEvents(5), someEvents(20, 5), someEvents(20, 5)];
  const send = (events: typeof before) => opened.sink.send(opened.batch(events), never);
  await send(before);

  receiver.behave({ answer: () => '500 the disk is full' });
  const answers = [await send(while_), await send(while_), await send(while_.slice(0, 1))];
  receiver.behave({});

  for (const answer of answers) {
    expect(answer).toMatchObject({
      outcome: 'refused',
      scope: 'batch',
      cause: { message: expect.stringContaining('500 the disk is full') },
    });
  }
  expect(await send(after)).toEqual({ outcome: 'delivered' });
  expect(arrived()).toEqual([...before, ...after].map(({ uid }) => uid));
});

test('a receiver that ends session after session makes no dead letters of short messages', async () => {
  const { receiver, opened } = await withReceiver({});
  const events = someEvents(4);
  await opened.sink.send(opened.batch(someEvents(1, 9)), never);

  receiver.behave({ answer: () => 'cut' });
  const outcomes: string[] = [];
  for (let i = 0; i < 4; i++) {
    outcomes.push((await opened.sink.send(opened.batch(events), never)).outcome);
  }

  expect(outcomes).toEqual(['retry', 'retry', 'retry', 'retry']);
});

test.each(['0 serverclose 0\n', '0 newhint 3 abc\n'])(
  'takes the hint %j between batches',
  async (hint) => {
    const { receiver, opened } = await withReceiver({});
    await opened.sink.send(opened.batch(someEvents(3)), never);

    receiver.say(hint);
    const answer = await opened.sink.send(opened.batch(someEvents(3, 3)), never);

    expect(['delivered', 'retry']).toContain(answer.outcome);
    expect(receiver.messages.length).toBeGreaterThanOrEqual(answer.outcome === 'delivered' ? 6 : 3);
  },
);

test.each([
  ['7 rsp 6 200 OK\n', 'sent a response without a request'],
  ['1 rsp 6 200 OK\n', 'sent a response without a request'],
  ['2 syslog 2 hi\n', 'sent a response without a request'],
  ['HTTP/1.1 400 Bad Request\r\n\r\n', 'does not speak RELP'],
  ['99999999999999 rsp 0\n', 'does not speak RELP'],
  ['2 rsp 99999999 200', 'does not speak RELP'],
])('believes nothing to a receiver that says %j', async (said, reported) => {
  const { receiver, opened } = await withReceiver({ answer: () => 'nothing' });
  const answering = opened.sink.send(opened.batch(someEvents(3)), never);
  await expect.poll(() => receiver.unansweredMost).toBe(3);

  receiver.say(said);

  expect(await answering).toMatchObject({
    outcome: 'retry',
    cause: { code: 'sink_refused', message: expect.stringContaining(reported) },
  });
});

test.each([
  [{ open: '500 not from this machine' }, 'not from this machine'],
  [{ open: '200 OK\ncommands=eventlog' }, 'accepts no syslog'],
  [{ open: null }, 'no answer to open within 2 s'],
])('cannot open a session where the receiver says %j', async (behaviour, reported) => {
  const { opened } = await withReceiver(behaviour, { connect_timeout: '2s' });

  const answer = await opened.sink.send(opened.batch(someEvents(3)), never);

  expect(answer).toMatchObject({
    outcome: 'retry',
    cause: { message: expect.stringContaining(reported) },
  });
});

test('a web server is no RELP receiver, and check says so', async () => {
  const port = await listen(createServer((_, response) => response.end('<html>Sign in</html>')));
  const settings = parseSettings(syslogSink, { address: `relp://127.0.0.1:${port}` });

  await expect(syslogSink.probe(settings, testTools(), never)).rejects.toMatchObject({
    code: 'sink_refused',
    message: expect.stringContaining('does not speak RELP'),
  });
});

test('reads answers in whatever pieces they come', () => {
  const opened = '200 OK\nrelp_version=0\nrelp_software=librelp,1.11.0\ncommands=syslog';
  const bytes = Buffer.from(
    `1 rsp ${opened.length} ${opened}\n2 rsp 0\n3 rsp 7 500 \u20ac\n0 serverclose 0 \n999999999 rsp 6 200 OK\n`,
  );
  const whole = new FrameReader().push(bytes);

  for (let size = 1; size < 40; size++) {
    const reader = new FrameReader();
    const frames = [];
    for (let at = 0; at < bytes.length; at += size) {
      frames.push(...(reader.push(bytes.subarray(at, at + size)) ?? ['nonsense']));
    }
    expect(frames).toEqual(whole);
  }
  expect(whole?.map(({ txnr }) => txnr)).toEqual([1, 2, 3, 0, 999_999_999]);
});

test('numbers transactions from 999999999 on from 1', () => {
  const bytes = Buffer.from('abcé\n');
  const one = { bytes, starts: Uint32Array.of(0, 0), ends: Uint32Array.of(3, 5), length: 2 };

  const { bytes: framed, ends } = new FrameMemory().frame(one, { from: 0, to: 2 }, 999_999_999);

  expect(Buffer.from(framed.subarray(0, ends[1])).toString()).toBe(
    '999999999 syslog 3 abc\n1 syslog 5 abcé\n',
  );
  expect(stepsBetween(999_999_999, 1)).toBe(1);
});
