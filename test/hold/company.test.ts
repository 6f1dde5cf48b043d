// Positions that wait for other data on their way to the spool's thread, since no caller waits for them. They are sent
// with the next append, in one message and one commit, or by themselves soon after; and pages that every sink has
// passed make room for new ones.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { MessagePort } from 'node:worker_threads';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openSpool, type SpoolSettings } from '../../src/hold/spool.ts';
import { anAppend, aPage } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

function settings(dir: string): SpoolSettings {
  return { dir, sync: 'normal', keepMs: 0, sinks: ['a'], bytesMax: 1e9 };
}

/** A spool that holds three events, and the questions of each message that it posts from then on. */
async function spoolSeen() {
  const dir = tempDir();
  const spool = await openSpool(settings(dir));
  await spool.append(anAppend({ ids: ['1', '2', '3'] }));
  const posted: string[][] = [];
  const post = MessagePort.prototype.postMessage as (...of: unknown[]) => void;
  const spy = vi.spyOn(MessagePort.prototype, 'postMessage');
  onTestFinished(() => spy.mockRestore());
  spy.mockImplementation(function (this: MessagePort, ...of: unknown[]) {
    post.apply(this, of);
    // Node's own messages to a thread pass here as well.
    if (Array.isArray(of[0])) posted.push(of[0].map(({ op }: { op: string }) => op));
  });
  return { spool, dir, posted };
}

test('spool posts a position and a note with the append that comes next', async () => {
  const { spool, posted } = await spoolSeen();

  spool.note('stream', 'audit', { polls: 1 });
  const earlier = spool.acknowledge('a', { position: 1 });
  const later = spool.acknowledge('a', { position: 2 });
  const before = [...posted];
  await spool.append(anAppend({ ids: ['4'] }));
  await Promise.all([earlier, later]);

  expect(before).toEqual([]);
  expect(posted[0]).toEqual(['note', 'acknowledge', 'acknowledge', 'append']);
  expect(await spool.progress('a')).toEqual({ position: 2, mark: null });
  await spool.close();
});

test('spool writes a position soon where no append comes', async () => {
  const { spool, posted } = await spoolSeen();

  await spool.acknowledge('a', { position: 2 });

  expect(posted.flat().filter((op) => op !== 'tick')).toEqual(['acknowledge']);
  await spool.close();
});

test('spool posts a position with a mark or with dead letters at once', async () => {
  const { spool, posted } = await spoolSeen();
  const { context } = aPage({ ids: [] });
  const deadLetter = { uid: 'f'.repeat(64), offset: 1, reason: 'no', context, record: Buffer.of() };

  const steps = [
    spool.acknowledge('a', { position: 1, mark: { at: 1 } }),
    spool.acknowledge('a', { position: 2, deadLetters: [deadLetter] }),
  ];
  const before = [...posted];
  await Promise.all(steps);

  expect(before).toEqual([['acknowledge'], ['acknowledge']]);
  await spool.close();
});

test('spool fails only the append that cannot be posted, not those that waited to go with it', async () => {
  const { spool } = await spoolSeen();
  const bad = { ...anAppend({ ids: ['4'] }), checkpoint: (() => null) as never };

  const position = spool.acknowledge('a', { position: 2 });
  const settled = await Promise.allSettled([spool.append(bad), position]);

  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  expect(spool.gauge.end).toBe(3);
  expect((await spool.progress('a')).position).toBe(2);
  await spool.close();
});

test('spool writes waiting data before it is closed', async () => {
  const { spool, dir } = await spoolSeen();

  const position = spool.acknowledge('a', { position: 3 });
  await spool.close();
  await position;

  const again = await openSpool(settings(dir));
  expect((await again.progress('a')).position).toBe(3);
  await again.close();
});

test('spool’s file stays as small as its content while its sinks keep up', async () => {
  const dir = tempDir();
  const spool = await openSpool(settings(dir));
  const pages = 20;
  const pageBytes = 500_000;
  const positions: Promise<void>[] = [];

  for (let n = 0; n < pages; n += 1) {
    await spool.append(anAppend({ ids: [String(n)], pad: pageBytes }));
    positions.push(spool.acknowledge('a', { position: n + 1 }));
  }
  await spool.close();
  await Promise.all(positions);

  expect(statSync(join(dir, 'sluice.db')).size).toBeLessThan((pages * pageBytes) / 4);
});
