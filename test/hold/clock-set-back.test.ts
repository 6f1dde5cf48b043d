// The wall clock is set back while the spool is open, by NTP or an operator: nothing waits until it is as late again.

import { MessageChannel } from 'node:worker_threads';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { WorkerReplies } from '../../src/hold/spool-operations.ts';
import { SpoolServer } from '../../src/hold/spool-server.ts';
import { Store } from '../../src/hold/store.ts';
import { anAppend, aPage } from '../support/a-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const dayMs = 86_400_000;

test('the status of a stream is stored although the clock was set back by a day', async () => {
  const clock = { wallMs: Date.now(), elapsedMs: 1_000 };
  vi.spyOn(Date, 'now').mockImplementation(() => clock.wallMs);
  vi.spyOn(performance, 'now').mockImplementation(() => clock.elapsedMs);
  onTestFinished(() => void vi.restoreAllMocks());
  const dir = tempDir();
  const { port1: port, port2 } = new MessageChannel();
  const answered: number[] = [];
  port.on('message', ({ answers }: WorkerReplies) => answered.push(...answers.map(({ id }) => id)));
  SpoolServer.open({ dir, sync: 'full', keepMs: 0, sinks: ['a'], reserveBytesMax: 2 ** 16 }, port2);
  const pollsAfter = async (polls: number) => {
    const facts = { state: 'waiting', caught_up_at: 1, next_poll_at: 1, polls };
    const note = { id: 0, op: 'note', args: ['stream', 'audit', JSON.stringify(facts)] };
    const append = { id: polls, op: 'append', args: [anAppend({ ids: [`${polls}`] })] };
    port.postMessage([note, append]);
    await waitUntil(() => answered.includes(polls), { what: `the reply to ${polls}` });
    using store = new Store({ dir, sync: 'full', keepMs: 0 });
    return store.noted('stream').get('audit')?.polls;
  };
  await pollsAfter(1);
  clock.elapsedMs += 2_000;
  clock.wallMs -= dayMs;

  const polls = await pollsAfter(2);

  port.postMessage([{ id: 3, op: 'close', args: [] }]);
  await waitUntil(() => answered.includes(3), { what: 'the end' });
  expect(polls).toBe(2);
});

test.for([
  ['as soon as every sink has it', 0, true],
  ['if keep is set, after the pages before it', 1_000, false],
] as const)('a page of a clock that was ahead is deleted %s', ([, keepMs, isGone]) => {
  using store = new Store({ dir: tempDir(), sync: 'full', keepMs });
  const hold = (now: number) =>
    store.transaction(() => store.hold(aPage({ ids: [`${now}`] }), now));
  hold(10_000);
  hold(10 * dayMs);
  store.retainFor(['a']);
  store.transaction(() => store.acknowledge('a', { position: 2 }, 10_100));

  store.transaction(() => store.prune(10_500));
  const soon = store.held().events;
  store.transaction(() => store.prune(11_000));

  expect(soon === 0).toBe(isGone);
  expect(store.held().events).toBe(0);
});

test('a clock that is ahead for a moment deletes no page that is kept', () => {
  const keepMs = 7 * dayMs;
  using store = new Store({ dir: tempDir(), sync: 'full', keepMs });
  store.transaction(() => store.hold(aPage({ ids: ['1'] }), 10_000));
  store.retainFor(['a']);
  store.transaction(() => store.acknowledge('a', { position: 1 }, 10_000));
  const prune = (now: number) => store.transaction(() => store.prune(now));

  prune(10_000);
  prune(4_000 * dayMs);
  prune(10_000 + 60_000);
  const held = store.held().events;
  // A process that ran seldom.
  prune(10_000 + keepMs);
  prune(10_000 + keepMs + dayMs);

  expect(held).toBe(1);
  expect(store.held().events).toBe(0);
});
