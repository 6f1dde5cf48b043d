// Cutover and rollback, with and without a running process, and kills in every phase.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isBrieflyHeld } from '../../src/hold/lock.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { aMove, type Move } from './a-move.ts';

const quick = { patience: '1m', overlap: '1s' };

async function becomesReady(move: Move): Promise<void> {
  const phase = async () => {
    const { stdout } = await runHere(['succession', '-c', move.config, '--json']);
    return JSON.parse(stdout).sources[0];
  };
  let seen: unknown;
  const what = () => `ready: ${JSON.stringify(seen)}`;
  const isReady = async () => {
    const now = await phase();
    seen = now;
    return now.phase === 'ready';
  };
  await waitUntil(isReady, { what });
}

function namesIn(move: Move): readonly string[] {
  return move.lines().map((line) => JSON.parse(line).metadata.log_name);
}

test('a running pair becomes ready, is cut over and moved back, and each record is delivered once', async () => {
  const move = await aMove({ succeeds: quick });
  const { pair, config } = move;
  pair.addMany(40);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  const later = (count: number) => pair.addMany(count, { timeMs: Date.now() });
  later(10);
  await becomesReady(move);

  const cut = await runHere(['succession', 'cutover', '-c', config, 'new_audit']);
  later(10);
  await move.complete();
  const after = namesIn(move);
  const twice = await runHere(['succession', 'cutover', '-c', config, 'new_audit']);
  const back = await runHere(['succession', 'rollback', '-c', config, 'new_audit']);
  later(10);
  await move.complete();
  await sluice.kill();

  expect([cut.exitCode, cut.stderr, twice.exitCode, back.exitCode]).toEqual([0, '', 1, 0]);
  expect(twice.stderr).not.toContain('--force');
  expect(move.delivered().repeated).toEqual([]);
  expect(after.filter((name) => name === 'new_audit')).toHaveLength(10);
  expect(namesIn(move).filter((name) => name === 'old_audit')).toHaveLength(60);
  expect(move.lines().filter((line) => line.includes('source.cut_over'))).toHaveLength(2);
});

test('a pair that is not ready is not cut over, and the refusal names --force', async () => {
  const { pair, config, complete } = await aMove({ succeeds: { patience: '1m', overlap: '1h' } });
  pair.addMany(5);
  const sluice = startSluice(['run', '-c', config]);
  await complete();
  await sluice.kill();

  const cut = await runHere(['succession', 'cutover', '-c', config, 'new_audit']);

  expect([cut.exitCode, cut.stderr.includes('`--force`')]).toEqual([1, true]);
});

test('a stopped pair is cut over and moved back', async () => {
  const move = await aMove({ succeeds: quick });
  const { pair, config } = move;
  pair.addMany(5);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  pair.addMany(10, { timeMs: Date.now() });
  await becomesReady(move);
  await sluice.kill();
  pair.addMany(5, { timeMs: Date.now() });

  const cut = await runHere(['succession', 'cutover', '-c', config, 'new_audit']);
  pair.addMany(5, { timeMs: Date.now() });
  const again = startSluice(['run', '-c', config]);
  await move.complete();
  await again.kill();

  expect([cut.exitCode, cut.stderr]).toEqual([0, '']);
  expect(move.delivered().repeated).toEqual([]);
  expect(namesIn(move).filter((name) => name === 'new_audit').length).toBeGreaterThanOrEqual(5);
});

test('a run that starts while a cutover holds the state waits for it, and a second run does not', async () => {
  const move = await aMove({ succeeds: quick });
  const { pair, config, dir } = move;
  pair.addMany(5);
  const first = startSluice(['run', '-c', config]);
  await move.complete();
  const second = await runSluice(['run', '-c', config]);
  await first.kill();
  const answers = Promise.withResolvers<void>();
  pair.onRequest('old', () => answers.promise);

  const cutting = startSluice(['succession', 'cutover', '--force', '-c', config, 'new_audit']);
  await waitUntil(() => isBrieflyHeld(join(dir, 'state')), { what: 'the cutover to begin' });
  const run = startSluice(['run', '-c', config]);
  await run.waitForLine('state_waited_for');
  answers.resolve();
  const cut = await cutting.exited;
  await run.waitForLine('"running"');
  pair.addMany(5, { timeMs: Date.now() });
  await move.complete();

  expect([second.exitCode, second.stderr.includes('state_locked')]).toEqual([1, true]);
  expect([cut.exitCode, (await run.kill()).exitCode]).toEqual([0, 0]);
  expect(move.delivered().repeated).toEqual([]);
});
