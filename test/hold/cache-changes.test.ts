// What the spool of a state in Kafka gives to the log: no reply without its changes, and notes without news with the next change,
// after ten minutes, or at the end. The server of a spool, without its thread, by a clock that stands still.

import { MessageChannel } from 'node:worker_threads';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openDatabase } from '../../src/hold/database.ts';
import { addOutbox } from '../../src/hold/outbox.ts';
import type { WorkerReplies } from '../../src/hold/spool-messages.ts';
import { SpoolServer } from '../../src/hold/spool-server.ts';
import { Statements } from '../../src/hold/statements.ts';
import { Store } from '../../src/hold/store.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const minuteMs = 60_000;

/** A new state directory, whose changes are noted for the log. */
function aCache(): string {
  const dir = tempDir();
  const sync = 'none';
  new Store({ dir, sync, keepMs: 0 }).close();
  const database = openDatabase({ dir, sync });
  const statements = new Statements(database);
  addOutbox(statements);
  statements.clear();
  database.close();
  return dir;
}

/** A server of a new spool. `ask` resolves to the message that has the reply. */
function aServer() {
  const clock = { nowMs: 1_000_000 };
  vi.spyOn(performance, 'now').mockImplementation(() => clock.nowMs);
  onTestFinished(() => void vi.restoreAllMocks());
  const { port1: port, port2 } = new MessageChannel();
  const said: WorkerReplies[] = [];
  port.on('message', (message: WorkerReplies) => said.push(message));
  SpoolServer.open(
    { dir: aCache(), sync: 'none', keepMs: 0, sinks: ['a'], isCache: true, eager: true },
    port2,
  );
  let last = 0;
  const post = (op: string, ...args: readonly unknown[]) => {
    last += 1;
    port.postMessage([{ id: last, op, args }]);
    return last;
  };
  const replyTo = async (id: number) => {
    const found = () => said.find(({ answers }) => answers.some((answer) => answer.id === id));
    await waitUntil(() => found() !== undefined, { what: `the reply to ${id}` });
    return found() as WorkerReplies;
  };
  const ask = async (op: string, ...args: readonly unknown[]) => await replyTo(post(op, ...args));
  const note = async (polls: number) => {
    const facts = { state: 'waiting', caught_up_at: polls, next_poll_at: polls, polls };
    return tablesIn(await ask('note', 'stream', 'x', JSON.stringify(facts)));
  };
  return { clock, said, post, replyTo, ask, note };
}

const tablesIn = ({ changed }: WorkerReplies) => changed?.map(({ table }) => table);

test('a note without news goes to the log with the next change, after ten minutes, or at the end', async () => {
  const { clock, ask, note } = aServer();
  await ask('append', anAppend({ ids: ['1'] }));

  expect(await note(1)).toEqual(['note']);
  expect(await note(2)).toEqual([]);
  expect(tablesIn(await ask('append', anAppend({ ids: ['2'] })))).toContain('note');

  expect(await note(3)).toEqual([]);
  clock.nowMs += 10 * minuteMs;
  expect(tablesIn(await ask('trail', 'audit'))).toEqual([]);
  clock.nowMs += 1;
  expect(tablesIn(await ask('trail', 'audit'))).toEqual(['note']);

  expect(await note(4)).toEqual([]);
  expect(tablesIn(await ask('close'))).toContain('note');
});

test('a reply waits until its changes can be read', async () => {
  const { said, post, replyTo, ask } = aServer();
  await ask('trail', 'audit');
  const before = said.length;
  const drain = vi.spyOn(Store.prototype, 'drain').mockImplementation(() => {
    throw new Error('the changes cannot be read');
  });
  const id = post('append', anAppend({ ids: ['1'] }));
  await waitUntil(() => drain.mock.calls.length > 2, { what: 'several attempts' });
  expect(said).toHaveLength(before);

  drain.mockRestore();

  expect(tablesIn(await replyTo(id))).toContain('page');
  await ask('close');
});

test('a spool whose work took more than a second is reported as slow from then on', async () => {
  const { clock, ask } = aServer();
  let takesMs = 1_000;
  const { append } = Store.prototype;
  vi.spyOn(Store.prototype, 'append').mockImplementation(function (this: Store, ...of) {
    clock.nowMs += takesMs;
    return append.apply(this, of);
  });

  const first = await ask('append', anAppend({ ids: ['1'] }));
  takesMs += 1;
  const second = await ask('append', anAppend({ ids: ['2'] }));
  const third = await ask('trail', 'audit');

  expect([first, second, third].map(({ isSlow }) => isSlow)).toEqual([undefined, true, true]);
  await ask('close');
});
