// A disk that is really full (a small tmpfs that only a child process sees): polling pauses and says so, what is held
// goes out to the sink and is noted as delivered, and once there is room everything else follows. Nothing is lost.

import { expect, test } from 'vitest';
import { endChild, spawnChild } from '../support/children.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';
import { canMountTmpfs } from '../support/tmpfs.ts';
import type { FullDiskAsk, FullDiskState } from './full-disk-child.ts';

const pages = 80;
const childFile = new URL('./full-disk-child.ts', import.meta.url).pathname;

const canMount = canMountTmpfs('spool on a full disk');

/** A pipeline in a process of its own, with its state on a disk of so many megabytes. */
async function pipelineOn(megabytes: number, ...words: readonly string[]) {
  const dir = tempDir();
  const mount = `mount -t tmpfs -o size=${megabytes}m tmpfs ${dir}; exec "$@"`;
  const child = spawnChild(
    'unshare',
    ['-rm', 'sh', '-c', mount, 'sh', process.execPath, childFile, dir, ...words],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env: { PATH: process.env.PATH } },
  );
  afterThisTest(() => endChild(child, 'SIGKILL'));
  const waiting = new Map<number, PromiseWithResolvers<FullDiskState>>();
  const answerTo = (number: number) => {
    const answer = waiting.get(number) ?? Promise.withResolvers<FullDiskState>();
    waiting.set(number, answer);
    return answer;
  };
  child.on('message', ({ number, said }: { number: number; said: FullDiskState }) =>
    answerTo(number).resolve(said),
  );
  child.once('exit', () => {
    for (const { reject } of waiting.values())
      reject(new Error('the pipeline’s process has ended'));
  });
  await answerTo(0).promise;
  let last = 0;
  const ask = (asked: FullDiskAsk) => {
    last += 1;
    child.send({ number: last, asked });
    return answerTo(last).promise;
  };
  const until = (holds: (state: FullDiskState) => boolean, what: string) =>
    waitUntil(
      async () => {
        const state = await ask('state');
        return holds(state) ? state : null;
      },
      { what },
    );
  return { ask, until };
}

const ids = Array.from({ length: pages }, (_, n) => String(n));

test.skipIf(!canMount)(
  'spool on a disk too small for a backlog gets through it without help',
  async () => {
    const { ask, until } = await pipelineOn(6);
    const full = await until(({ stream }) => stream.error === 'disk_full', 'the disk to be full');

    await ask('deliver');
    const drained = await until(
      ({ stored, stream }) => stored === pages && stream.caughtUp,
      'all of it',
    );
    const last = await ask('stop');

    expect(full.end).toBeGreaterThan(10);
    expect(full.end).toBeLessThan(pages);
    expect(full.stored).toBe(0);
    expect(drained.stream).toEqual({ error: null, caughtUp: true });
    expect(last.taken).toEqual(ids);
  },
);

test.skipIf(!canMount)(
  'spool on a disk that other programs have filled delivers its events, and resumes when there is space',
  async () => {
    const { ask, until } = await pipelineOn(6);
    await until(({ end }) => end >= 3, 'three pages');
    await ask('fill');
    const full = await until(({ stream }) => stream.error === 'disk_full', 'the disk to be full');

    await ask('deliver');
    const held = await until(({ stored }) => stored === full.end, 'the position of what is held');
    await ask('empty');
    await until(({ stored, stream }) => stored === pages && stream.caughtUp, 'the rest');
    const last = await ask('stop');

    expect(held.end).toBe(full.end);
    expect(held.stream.error).toBe('disk_full');
    expect(last.taken).toEqual(ids);
  },
);

test.skipIf(!canMount)(
  'spool that is started on a full disk delivers its events, and resumes when there is space',
  async () => {
    const { ask, until } = await pipelineOn(6);
    await until(({ end }) => end >= 3, 'three pages');
    const started = await ask('fill and restart');
    await until(({ stream }) => stream.error === 'disk_full', 'the disk to be full');

    await ask('deliver');
    const held = await until(
      ({ stored }) => stored === started.end,
      'the position of what is held',
    );
    await ask('empty');
    await until(({ stored, stream }) => stored === pages && stream.caughtUp, 'the rest');
    const last = await ask('stop');

    expect(started.end).toBeGreaterThanOrEqual(3);
    expect(held.end).toBe(started.end);
    expect(last.taken).toEqual(ids);
  },
);

test.skipIf(!canMount)(
  'spool on a disk full of pages for a removed sink releases the oldest, and polling resumes',
  async () => {
    const { ask, until } = await pipelineOn(6, 'removed');

    const done = await until(
      ({ stored, stream }) => stored === pages && stream.caughtUp,
      'all of it',
    );
    const last = await ask('stop');

    expect(done.stream.error).toBeNull();
    expect(last.taken).toEqual(ids);
  },
);
