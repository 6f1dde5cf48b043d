// Whether the files beside a state database are flushed: a cache of a log is built again after a power cut, so it does not
// wait for the disk.

import { once } from 'node:events';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { expect, test, vi } from 'vitest';
import { deliveredName } from '../../src/hold/delivered.ts';
import { SpoolServer } from '../../src/hold/spool-server.ts';
import { tempDir } from '../support/temp.ts';

const flushed = vi.hoisted(() => new Map<string, boolean>());

vi.mock('node:fs', async (original) => {
  const real = await original<typeof import('node:fs')>();
  const writeFileSync: typeof real.writeFileSync = (path, text, how) => {
    flushed.set(String(path), typeof how === 'object' && how?.flush === true);
    real.writeFileSync(path, text, how);
  };
  return { ...real, writeFileSync };
});

test.each([
  ['full', true],
  ['normal', true],
  ['none', false],
] as const)('with sync %s, the copy of the positions is flushed: %s', async (sync, isFlushed) => {
  const dir = tempDir();
  const { port1, port2 } = new MessageChannel();

  SpoolServer.open({ dir, sync, keepMs: 0, sinks: ['a'], reserveBytesMax: 2 ** 16 }, port2);
  port1.postMessage([{ id: 1, op: 'close', args: [] }]);
  const closed = once(port1, 'close');
  port1.start();
  await closed;

  expect(flushed.get(join(dir, `${deliveredName}.next`))).toBe(isFlushed);
});
