// The syslog sink's looks at the kernel's table of connections: skipped where they could show nothing new, and never where
// they decide. The clock is the test's, so that the looks of minutes are counted in a moment.

import { expect, test, vi } from 'vitest';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import { manualClock } from '../../support/manual-clock.ts';
import { openSink, someEvents, testTools } from '../../support/sink-opening.ts';
import { startTcpReceiver, type TcpReceiver } from '../../support/tcp-receiver.ts';
import { afterThisTest, waitUntil } from '../../support/temp.ts';

const table = vi.hoisted(() => ({ looks: 0, open: 0, isEmpty: false }));

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  const readFile = async (...of: Parameters<typeof real.readFile>) => {
    if (of[0] !== '/proc/net/tcp') return await real.readFile(...of);
    table.looks += 1;
    table.open += 1;
    if (table.isEmpty)
      return await real.readFile('/dev/null', 'latin1').finally(() => table.open--);
    return await real.readFile(...of).finally(() => {
      table.open -= 1;
    });
  };
  return { ...real, readFile };
});

const never = new AbortController().signal;
const windowMs = 1_000;

async function openTo(receiver: TcpReceiver, config: object = {}) {
  const clock = manualClock();
  const address = `tcp://127.0.0.1:${receiver.port}`;
  const settings = { address, resend_window: `${windowMs}ms`, ...config };
  const { sink, batch } = await openSink(syslogSink, settings, { tools: testTools(clock) });
  // The time that the sink would wait for its receiver stands still by then.
  afterThisTest(() => receiver.close());
  const answers: Delivery[] = [];
  let sent = 0;
  const send = (count: number) => {
    const sending = sink.send(batch(someEvents(count, sent)), never);
    sent += count;
    void sending.then((answer) => answers.push(answer));
  };
  /** Moves time on until this is true; `meanwhile` runs before each step. */
  const until = (isDone: () => boolean, meanwhile = () => {}) =>
    waitUntil(
      async () => {
        if (isDone()) return true;
        if (clock.monotonic() > 300_000) throw new Error('five minutes have passed on its clock');
        meanwhile();
        await clock.advance(windowMs / 4);
        await waitUntil(() => table.open === 0, { what: 'the end of a look', everyMs: 1 });
        return isDone();
      },
      { what: 'the end of some time', everyMs: 1 },
    );
  return { clock, send, answers, until };
}

test('a stream that flows needs one look for each connection', async () => {
  const receiver = await startTcpReceiver();
  const { clock, send, answers, until } = await openTo(receiver);
  send(1);
  await until(() => answers.length === 1);
  const before = table.looks;

  for (let count = 2; count < 5; count += 1) {
    send(1);
    await receiver.waitFor(count);
    await clock.advance(windowMs / 4);
  }
  const whileOpen = table.looks - before;
  await until(() => answers.length === 4);

  expect(whileOpen).toBe(0);
  expect(table.looks - before).toBeGreaterThanOrEqual(1);
});

test('nothing is delivered by the window on what was not looked at', async () => {
  const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' } });
  const { send, answers, until } = await openTo(receiver);
  send(1);
  await receiver.waitFor(() => receiver.open > 0);
  // The receiver hangs from its first connection on, so it counts as silent, and that one batch as delivered. The
  // next connection carries more than the receiver's kernel accepts, and each look finds new bytes in ours.
  let count = 0;
  await until(
    () => answers.length > 0,
    () => {
      count += 1;
      if (count > 4) send(1);
    },
  );
  const first = answers.length;
  const early = answers.length;
  await until(() => answers.length > early);

  expect([first, early]).toEqual([1, 1]);
  expect(answers[1]).toMatchObject({
    outcome: 'retry',
    cause: { message: expect.stringContaining('nothing has moved') },
  });
});

test('with confirm: window a stream is delivered while it flows', async () => {
  const receiver = await startTcpReceiver();
  const { send, answers, until } = await openTo(receiver, { confirm: 'window' });
  let sent = 0;

  await until(
    () => answers.length > 3,
    () => {
      sent += 1;
      send(1);
    },
  );
  await until(() => answers.length === sent);

  expect(new Set(answers.map(({ outcome }) => outcome))).toEqual(new Set(['delivered']));
});

test('a connection that has left the table does not count as read', async () => {
  const receiver = await startTcpReceiver();
  const { send, answers, until } = await openTo(receiver);
  send(1);
  await until(() => answers.length === 1);

  send(1);
  await receiver.waitFor(2);
  table.isEmpty = true;
  const before = table.looks;
  await until(() => table.looks > before + 3);
  const open = receiver.open;
  table.isEmpty = false;
  await until(() => answers.length === 2);

  expect(open).toBe(1);
});

test.each(['close', 'window'] as const)(
  'with confirm: %s a receiver that hangs is left after stall_timeout',
  async (confirm) => {
    const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' } });
    const { clock, send, answers, until } = await openTo(receiver, { confirm });
    for (let i = 0; i < 8; i++) send(1000); // more than both kernels accept
    await receiver.waitFor(() => receiver.open > 0);

    await until(() => clock.monotonic() >= 25_000);
    const early = answers.length;
    await until(() => answers.length === 8);

    expect(early).toBe(0);
    for (const answer of answers)
      expect(answer).toMatchObject({
        outcome: 'retry',
        cause: { message: expect.stringContaining('nothing has moved for 30 s') },
      });
    expect(clock.monotonic()).toBeLessThan(40_000);
  },
);
