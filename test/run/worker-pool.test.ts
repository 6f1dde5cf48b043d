// In which worker process a shard starts, and what becomes of the others when one ends.

import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { beforeEach, expect, test, vi } from 'vitest';
import type { ToWorker } from '../../src/run/shard-messages.ts';
import { WorkerPool } from '../../src/run/worker-pool.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { silent } from '../support/silent-log.ts';

class Child extends EventEmitter {
  connected = true;
  readonly sent: ToWorker[] = [];
  send(message: ToWorker): void {
    this.sent.push(message);
  }
  disconnect(): void {
    this.connected = false;
    this.emit('exit', 0, null);
  }
  get shards(): readonly number[] {
    return this.sent.flatMap(({ message }) => (message.say === 'start' ? [message.shard] : []));
  }
}

const started: Child[] = [];

vi.mock('../../src/run/shard-child.ts', () => ({
  startChild: () => {
    const child = new Child();
    started.push(child);
    return child as unknown as ChildProcess;
  },
  uptimeMs: () => 0,
}));

beforeEach(() => {
  started.length = 0;
});

const clock = systemClock();
const aPool = (size: number) =>
  new WorkerPool({ size, args: [], env: {}, version: '1', sessionMs: 60_000, clock, log: silent });
const at = { monotonic: 0, now: 0 };
const ownership = { contact: { last: at }, givenUp: 0, confirm: async () => 0 };
const aShard = (shard: number) =>
  ({ shard, once: false, ownership, clock }) as unknown as Parameters<WorkerPool['start']>[0];

const begin = async (pool: WorkerPool, shard: number, stop = new AbortController().signal) => {
  const turn = await pool.start(aShard(shard), stop);
  if (turn === null) throw new Error(`shard ${shard} has not started`);
  return turn;
};

test('eight shards of a worker start at the same time, and one that waits does not start once it is stopped', async () => {
  const pool = aPool(1);
  for (const shard of [1, 2, 3, 4, 5, 6, 7, 8]) await begin(pool, shard);
  const moved = new AbortController();
  const stopped = pool.start(aShard(9), moved.signal);
  const waiting = begin(pool, 10);

  moved.abort(new Error('it moves'));
  expect(await stopped).toBeNull();
  expect(started[0]?.shards).toHaveLength(8);
  started[0]?.emit('message', { turn: 1, message: { say: 'standing', runs: true, moment: null } });
  expect((await waiting).shard).toBe(10);
  await pool.close();
});

test('shards share the workers that run from the start', async () => {
  const pool = aPool(2);
  expect(started).toHaveLength(2);

  for (const shard of [1, 2, 3, 4]) await begin(pool, shard);

  expect(started.map(({ shards }) => shards)).toEqual([
    [1, 3],
    [2, 4],
  ]);
  await pool.close();
});

test('a worker that ends takes its own shards with it, and no others', async () => {
  const pool = aPool(2);
  const turns = await Promise.all([1, 2, 3].map((shard) => begin(pool, shard)));
  const ended: number[] = [];
  for (const turn of turns) void turn.ended.then(() => ended.push(turn.shard));

  started[0]?.emit('exit', null, 'SIGKILL');
  expect(await Promise.all([turns[0]?.ended, turns[2]?.ended])).toEqual([1, 1]);

  expect(ended).toEqual([1, 3]);
  await begin(pool, 1);
  expect(started.map(({ shards }) => shards)).toEqual([[1, 3], [2], [1]]);
  await pool.close();
});

test('a shard whose worker ended three times gets a worker of its own', async () => {
  const pool = aPool(1);
  for (const end of [1, 2, 3]) {
    const turn = await begin(pool, 7);
    started.at(-1)?.emit('exit', 1, null);
    expect(await turn.ended, `end ${end}`).toBe(1);
  }

  const alone = await begin(pool, 7);
  const own = started.at(-1);
  await begin(pool, 8);
  await begin(pool, 9);

  expect(own?.shards).toEqual([7]);
  expect(started.at(-1)?.shards).toEqual([8, 9]);
  // It ends with its shard.
  own?.emit('message', { turn: 1, message: { say: 'ended', code: 0 } });
  expect(await alone.ended).toBe(0);
  expect(own?.connected).toBe(false);
  await pool.close();
});
