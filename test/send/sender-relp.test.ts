// A real sender with a RELP receiver that refuses messages: the common rule for suspects (rules R2). No event becomes a
// dead letter unless the receiver accepts another one and refuses this one again, and nothing that it accepted is repeated.

import { expect, test } from 'vitest';
import { syslogSink } from '../../connectors/sinks/syslog.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { type PlannedSink, Senders } from '../../src/send/sending.ts';
import { makeFormat } from '../formats/make-format.ts';
import { anAppend } from '../support/a-page.ts';
import { type RelpBehaviour, startRelpReceiver } from '../support/relp-receiver.ts';
import { parseSettings, testTools } from '../support/sink-opening.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const idIn = (message: string) => /"id":"(\w+)"/.exec(message)?.[1] ?? '';
const numbers = (count: number) => Array.from({ length: count }, (_, n) => `e${n}`);

function relpAt(port: number, eventsMax: number): PlannedSink {
  const settings = parseSettings(syslogSink, { address: `relp://127.0.0.1:${port}` });
  const format = makeFormat('syslog', { message: 'original' });
  return {
    name: 'relp',
    definition: syslogSink,
    settings,
    format,
    formatKey: 'syslog',
    bounds: { eventsMax, bytesMax: 1e6 },
    waitMs: 0,
    retry: { minMs: 1, maxMs: 1 },
  };
}

/** Sends what is held to a receiver; it counts each message that it reads, also a refused one. */
async function sendingTo(answer: (id: string) => string, ids: readonly string[], eventsMax = 10) {
  const read: string[] = [];
  const behaviour: RelpBehaviour = {
    answer: (message) => {
      const id = idIn(message);
      read.push(id);
      return answer(id);
    },
  };
  const receiver = await startRelpReceiver(behaviour);
  const spool = await openSpool({
    ...{ dir: tempDir(), sync: 'normal', keepMs: 0, bytesMax: 1e9, eager: true },
    sinks: ['relp'],
  });
  for (let n = 0; n < ids.length; n += eventsMax)
    await spool.append(anAppend({ ids: ids.slice(n, n + eventsMax) }));
  const sending = new Senders(
    { spool, tools: testTools(), random: () => 0 },
    { sources: [{ name: 'audit', reading: { id: 'id', time: ['timestamp'] } }], routes: [] },
  );
  sending.start(await sending.open([relpAt(receiver.port, eventsMax)]));
  const state = () => sending.state[0];
  return {
    ...{ spool, read, state },
    accepted: () => receiver.messages.map(idIn),
    until: (position: number) =>
      waitUntil(() => state()?.position === position, {
        what: () => `the position ${position}: ${JSON.stringify(state())}`,
      }),
    async end() {
      await sending.stop(1_000);
      await spool.close();
    },
  };
}

test('a receiver that answers 500 to all for a while makes no dead letter and gets nothing twice', async () => {
  let isFull = false;
  let isRepaired = false;
  const ids = numbers(60);
  const { until, state, accepted, end } = await sendingTo((id) => {
    if (id === 'e20' && !isRepaired) isFull = true;
    return isFull ? '500 the disk is full' : '200 OK';
  }, ids);
  await waitUntil(() => state()?.suspects?.stuck ?? false, {
    what: () => `several probes: ${JSON.stringify(state())}`,
  });
  const during = state();
  const before = accepted();

  isRepaired = true;
  isFull = false;
  await until(60);
  const after = state();
  await end();

  expect(during).toMatchObject({ position: 20, deadLetters: 0 });
  expect(during?.error?.message).toContain('500 the disk is full');
  expect(before).toEqual(numbers(20));
  expect(after).toMatchObject({ delivered: 60, deadLetters: 0, suspects: null });
  expect(accepted().toSorted()).toEqual(ids.toSorted());
});

test('bad messages among good ones become dead letters, and each good one arrives once', async () => {
  const ids = numbers(1_000);
  const bad = ids.filter((_, n) => n % 100 === 37);
  const { until, state, accepted, read, end } = await sendingTo(
    (id) => (bad.includes(id) ? '500 not this one' : '200 OK'),
    ids,
    250,
  );
  await until(1_000);
  const after = state();
  await end();

  expect(after).toMatchObject({ delivered: 990, deadLetters: 10, suspects: null });
  const good = ids.filter((id) => !bad.includes(id));
  expect(accepted().toSorted()).toEqual(good.toSorted());
  // In its batch, and once more.
  expect(read).toHaveLength(990 + 10 * 2);
});

test('messages that a receiver refuses for a moment are not to blame', async () => {
  const ids = numbers(40);
  const refusedOnce = new Set<string>();
  const { until, state, accepted, end } = await sendingTo((id) => {
    const isFirst = Number(id.slice(1)) % 10 < 5 && !refusedOnce.has(id);
    refusedOnce.add(id);
    return isFirst ? '500 the queue is full' : '200 OK';
  }, ids);
  await until(40);
  const after = state();
  await end();

  expect(after).toMatchObject({ delivered: 40, deadLetters: 0, suspects: null });
  expect(accepted().toSorted()).toEqual(ids.toSorted());
});

test('a bad message is a suspect while nothing else waits', async () => {
  const { until, state, accepted, spool, end } = await sendingTo(
    (id) => (id === 'e0' ? '500 not this one' : '200 OK'),
    ['e0'],
  );
  await waitUntil(() => state()?.suspects?.stuck ?? false, {
    what: () => `several probes: ${JSON.stringify(state())}`,
  });
  const alone = state();
  await spool.append(anAppend({ ids: ['e1'] }));
  await until(2);
  const after = state();
  await end();

  expect(alone).toMatchObject({ position: 0, deadLetters: 0, suspects: { events: 1 } });
  expect(after).toMatchObject({ delivered: 1, deadLetters: 1, suspects: null });
  expect(accepted()).toEqual(['e1']);
});

test('a message over which sessions end is a dead letter only once the receiver accepts another one', async () => {
  let isAway = true;
  const { until, state, accepted, spool, end } = await sendingTo(
    (id) => (isAway || id === 'e1' ? 'cut' : '200 OK'),
    numbers(3),
  );
  await waitUntil(() => (state()?.retries ?? 0) > 20, {
    what: () => `many sessions to end: ${JSON.stringify(state())}`,
  });
  const during = state();
  isAway = false;
  // If both others are accepted before a probe begins, only a later message can show the fault of this one.
  await waitUntil(() => accepted().length === 2, { what: () => `two messages: ${accepted()}` });
  await spool.append(anAppend({ ids: ['e3'] }));
  await until(4);
  const after = state();
  await end();

  expect(during).toMatchObject({ position: 0, deadLetters: 0 });
  expect(after).toMatchObject({ delivered: 3, deadLetters: 1, suspects: null });
  expect(accepted().toSorted()).toEqual(['e0', 'e2', 'e3']);
});
