// Requests whose command is gone: an answer that no command reads is deleted, a request that its command has withdrawn is not
// carried out any more, and a process that ends before it answers is no reason to say that nothing was done.

import { expect, test } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import type { Spool } from '../../src/contracts/index.ts';
import type { OperatorRequest, Request } from '../../src/hold/requests.ts';
import { changeState, lookInto } from '../../src/hold/store.ts';
import { RunningProcess } from '../../src/operator/running-process.ts';
import { type RequestDeps, serveRequests } from '../../src/run/requests.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir } from '../support/temp.ts';

const config = (dir: string) =>
  ({
    state: { dir, sync: 'none', keepMs: 0, kafka: null },
    sinks: {},
    routes: [],
  }) as unknown as Config;

/** A process with the requests of a state directory. `still` runs while a stream is stopped for a change. */
function process(dir: string, still: () => void = () => undefined) {
  const clock = manualClock();
  const asked: string[] = [];
  const requests = async () =>
    lookInto(dir, [] as readonly Request[], (store) => store.requests.all());
  const spool = {
    requests,
    settle: async (id: number, answer: object) =>
      changed(dir, (store) => store.requests.answer(id, { ...answer })),
    withdraw: async (id: number) => changed(dir, (store) => store.requests.withdraw(id)),
    moved: async () => void asked.push('moved'),
  } as unknown as Spool;
  const pipeline = {
    giveUp: async () => asked.push('given up'),
    retryNow: (name: string) => {
      asked.push(name);
      return [];
    },
    whileStill: async (_: string, work: () => Promise<unknown>) => {
      still();
      return await work();
    },
  };
  const deps = {
    spool,
    pipeline,
    tools: { clock, log: silent },
    made: () => ({ config: config(dir) }),
  };
  const stop = new AbortController();
  const serving = serveRequests(
    { ...deps, reads: () => false } as unknown as RequestDeps,
    stop.signal,
  );
  const end = async () => {
    stop.abort(new Error('enough'));
    await serving;
  };
  return { clock, asked, requests, end };
}

function changed<T>(dir: string, change: Parameters<typeof changeState<T>>[1]): T {
  return changeState({ dir, sync: 'none', keepMs: 0 }, change);
}

function ask(dir: string, name: string, wish: OperatorRequest, command?: string): number {
  return changed(dir, ({ requests }) => requests.ask(name, wish, 1, command));
}

test('an answer that no command reads is deleted after a minute', async () => {
  const dir = tempDir();
  const [local, remote] = [ask(dir, 'a', { what: 'retry' }), ask(dir, 'a', { what: 'retry' }, 'c')];
  const running = process(dir);
  await running.clock.settle();

  await running.clock.advance(59_000);
  const before = await running.requests();
  await running.clock.advance(2_000);
  const after = await running.requests();
  await running.end();

  expect(running.asked).toEqual(['a', 'a']);
  expect(before.map(({ id }) => id)).toEqual([local, remote]);
  // The control topic still needs the answer.
  expect(after.map(({ id }) => id)).toEqual([remote]);
});

test('a request is not carried out after its command has withdrawn it', async () => {
  const dir = tempDir();
  const row = ask(dir, 'audit', { what: 'reset', forget: false });
  changed(dir, (store) => store.streams.saveCheckpoint('audit', { n: 1 }, 1));
  const running = process(dir, () => changed(dir, ({ requests }) => requests.withdraw(row)));

  await running.clock.advance(1_000);
  await running.end();

  expect(lookInto(dir, null, (store) => store.recall('audit').checkpoint)).toEqual({ n: 1 });
  expect(running.asked).toEqual([]);
});

test('a request that was withdrawn while another one took long is not carried out', async () => {
  const dir = tempDir();
  changed(dir, (store) => store.streams.saveCheckpoint('audit', { n: 1 }, 1));
  ask(dir, 'audit', { what: 'reset', forget: false });
  const row = ask(dir, 'a', { what: 'retry' });
  const running = process(dir, () => changed(dir, ({ requests }) => requests.withdraw(row)));

  await running.clock.advance(1_000);
  await running.end();

  expect(lookInto(dir, 1, (store) => store.recall('audit').checkpoint)).toBe(null);
  expect(running.asked).toEqual(['moved']);
});

test('an earlier process may have moved suspects for another machine: its successor does not say that none was', async () => {
  const dir = tempDir();
  ask(dir, 'disk', { what: 'give_up', uids: null }, 'command');
  const running = process(dir);

  await running.clock.advance(1_000);
  const [request] = await running.requests();
  await running.end();

  expect(request?.answer).toMatchObject({
    error: {
      code: 'state_locked',
      message: 'request about disk: the process ended before it answered',
      next: expect.stringContaining('`sluice dead-letters list` shows them'),
    },
  });
  expect(running.asked).toEqual([]);
});

test('a process that ends before it answers may have moved the suspects', async () => {
  const dir = tempDir();
  changed(dir, () => undefined);
  // No process has the directory any more.
  const ended = new RunningProcess(config(dir), 'process 1');

  const moving = ended.carryOut('disk', { what: 'give_up', uids: null });

  await expect(moving).rejects.toMatchObject({
    message: expect.stringContaining('the process ended before it answered'),
    next: expect.stringContaining('`sluice dead-letters list` shows them'),
  });
  // The command makes this change itself.
  expect(await ended.carryOut('audit', { what: 'reset', forget: false })).toBe(null);
  expect(lookInto(dir, 1, ({ requests }) => requests.all().length)).toBe(0);
});
