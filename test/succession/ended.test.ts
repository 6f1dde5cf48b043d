// An API that has ended: no fault where its successor delivers, and one where it does not.

import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { freePort, waitUntil } from '../support/temp.ts';
import { aMove } from './a-move.ts';

test('the end of the old API makes nothing red once its successor delivers, and does before', async () => {
  const succeeds = { patience: '1s', overlap: '2h' };
  const move = await aMove({ succeeds });
  const { pair, config } = move;
  const port = await freePort();
  move.write({ succeeds, top: { status: { listen: `127.0.0.1:${port}` } } });
  const status = async () => (await fetch(`http://127.0.0.1:${port}/status.json`)).json();
  const streamOf = async () => {
    const { streams } = (await status()) as {
      streams: { name: string; state: string; error: unknown }[];
    };
    return streams.find(({ name }) => name === 'old_audit');
  };
  pair.addMany(20);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  await pair.die('old', 410);
  await waitUntil(async () => (await streamOf())?.error, { what: 'the end to show' });
  const before = await streamOf();

  await runHere(['succession', 'cutover', '-c', config, 'new_audit', '--force']);
  const after = await streamOf();
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const told = sluice.stderr.filter((line) => line.includes('its successor delivers'));
  await sluice.kill();

  expect(before?.error).not.toBeNull();
  expect([after?.state === 'polling' || after?.state === 'waiting', after?.error]).toEqual([
    true,
    null,
  ]);
  expect(metrics).toMatch(/sluice_stream_failing\{source="old_audit",stream="old_audit"\} 0/);
  expect(told).toHaveLength(1);
});
