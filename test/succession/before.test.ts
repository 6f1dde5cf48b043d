// A source that has delivered for a while before its successor is added, and a successor whose predecessor dies.

import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { aMove, type Move } from './a-move.ts';

async function phaseOf(move: Move) {
  const { stdout } = await runHere(['succession', '-c', move.config, '--json']);
  return JSON.parse(stdout).sources[0];
}

test('events delivered before the pairing are known, in any form of their ids', async () => {
  const move = await aMove({ succeeds: null });
  const { pair, config } = move;
  pair.addMany(120);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  move.write({ succeeds: { patience: '1s', overlap: '2h' } });
  await sluice.waitForLine('config reloaded');
  const alone = pair.only('new').addMany(2);
  await move.complete();
  const what = () => 'all of the new side to be matched';
  await waitUntil(async () => (await phaseOf(move)).known_before === 120, { what });
  pair.addMany(10);
  await move.complete();
  await sluice.kill();

  expect(move.delivered().repeated).toEqual([]);
  const names = move.lines().map((line) => JSON.parse(line).metadata.log_name);
  expect(names.filter((name) => name === 'new_audit')).toHaveLength(alone.length);
});

test('records of a successor whose predecessor dies are delivered when their patience is over', async () => {
  const move = await aMove({ succeeds: { patience: '1s', overlap: '2h' } });
  const { pair, config } = move;
  pair.addMany(30);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  await pair.die('old', 410);
  pair.addMany(30);
  await move.complete();
  const refused = await runHere(['succession', 'cutover', '-c', config, 'new_audit']);
  const forced = await runHere(['succession', 'cutover', '-c', config, 'new_audit', '--force']);
  const back = await runHere(['succession', 'rollback', '-c', config, 'new_audit']);
  pair.addMany(5);
  await move.complete();
  await pair.revive('old');
  await runHere(['retry', '-c', config, 'old_audit']);
  pair.addMany(5);
  await move.complete();
  await sluice.kill();

  expect([refused.exitCode, forced.exitCode, back.exitCode]).toEqual([1, 0, 1]);
  expect(refused.stderr).toContain('old_audit cannot be read');
  expect(move.delivered().repeated).toEqual([]);
});
