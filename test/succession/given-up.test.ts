// `succeeds` that leaves the config: before the cutover records can be repeated, and check and the log of a reload say so;
// after it nothing is said. And an overlap that the stored identities do not reach.

import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { aMove } from './a-move.ts';

const succeeds = { patience: '1m', overlap: '2h' };

test.each([
  { phase: 'shadow', isReported: true },
  { phase: 'cut_over', isReported: false },
])('succeeds that leaves the config in $phase is reported: $isReported', async (of) => {
  const move = await aMove({ succeeds });
  const { pair, config } = move;
  pair.addMany(10);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  const matched = async () => {
    const { stdout } = await runHere(['succession', '-c', config, '--json']);
    return JSON.parse(stdout).sources.find((one: { successor: string }) => one.successor).matched;
  };
  await waitUntil(async () => (await matched()) === 10, { what: 'all to match' });
  if (of.phase === 'cut_over') {
    const cut = await runHere(['succession', 'cutover', '-c', config, 'new_audit', '--force']);
    expect(cut.exitCode).toBe(0);
  }
  const late = { type: 'logs', upstream: 'new', path: '/api/logs/v1/audit', every: '100ms' };
  const alone = { ...late, time: ['event_time'], pagination: { style: 'cursor' } };
  move.write({ succeeds: null, more: { new_audit: alone } });
  // The process may have read the config by now: then the pair is given up already.
  const checked = await runHere(['check', '-c', config]);
  await sluice.waitForLine('config reloaded');
  const logged = sluice.stderr.filter((line) => line.includes('pair_given_up'));
  await sluice.kill();

  expect(logged).toHaveLength(of.isReported ? 1 : 0);
  expect(logged.join()).toMatch(of.isReported ? /Put succeeds: \{ source: old_audit \}/ : /^$/);
  if (!of.isReported) expect(checked.stdout).not.toContain('was removed before the cutover');
});

test('check warns of succeeds that was removed before the cutover, while no process runs', async () => {
  const move = await aMove({ succeeds });
  const { pair, config } = move;
  pair.addMany(10);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  await sluice.kill();
  const before = await runHere(['check', '-c', config]);
  move.write({ succeeds: null });
  const { exitCode, stdout } = await runHere(['check', '-c', config]);

  expect(before.stdout).not.toContain('was removed before the cutover');
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(
    /note .*sources\.new_audit: the source was removed before the cutover \(phase shadow\), so records can be repeated/,
  );
});

test('an overlap that the identities do not reach is reported in the log, once', async () => {
  const move = await aMove({ succeeds: null, old: { id: null } });
  const { pair, config } = move;
  pair.addMany(10);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  move.write({ succeeds, old: { id: null } });
  await waitUntil(() => sluice.stderr.some((line) => line.includes('overlap_shortened')), {
    what: 'the report',
  });
  await sluice.kill();

  expect(sluice.stderr.filter((line) => line.includes('overlap_shortened'))).toHaveLength(1);
});
