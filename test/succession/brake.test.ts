// Ids that never match: what does not match is held, the operator says where the old id is, and nothing is repeated.

import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { freePort, waitUntil } from '../support/temp.ts';
import { aMove } from './a-move.ts';

test('records with ids that never match are held until the id is set, and then each is delivered once', async () => {
  const succeeds = { patience: '500ms', overlap: '2h' };
  const old = { id: 'requestId' };
  const listen = `127.0.0.1:${await freePort()}`;
  const top = { status: { listen } };
  const move = await aMove({ succeeds, old, top, ids: { new: 'unrelated' } });
  const { pair, config } = move;
  const reported = (condition: string) =>
    move.lines().filter((line) => line.includes(`"${condition}"`));
  const metrics = async () => (await fetch(`http://${listen}/metrics`)).text();
  const isMetric = async (held: 0 | 1) =>
    (await metrics()).includes(
      `sluice_succession_held{source="old_audit",successor="new_audit"} ${held}`,
    );
  const pairNow = async () => {
    const { stdout } = await runHere(['succession', '-c', config, '--json']);
    return JSON.parse(stdout).sources[0];
  };
  pair.addMany(30);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  await waitUntil(async () => (await pairNow()).brake !== null, { what: 'the brake' });
  const held = await pairNow();
  await waitUntil(() => isMetric(1), { what: 'the metric' });
  // More of them engage no second brake.
  pair.addMany(15);
  await move.complete();
  await waitUntil(async () => (await pairNow()).waiting === 45, { what: 'all to wait' });
  const refused = await runHere(['succession', 'cutover', '-c', config, 'new_audit']);

  move.write({ old, top, succeeds: { ...succeeds, id: 'request_id' } });
  await sluice.waitForLine('config reloaded');
  const isMatched = async () => {
    const { matched, waiting, brake } = await pairNow();
    return matched === 45 && waiting === 0 && brake === null;
  };
  await waitUntil(isMatched, { what: 'all to match' });
  pair.addMany(10);
  await move.complete();
  await waitUntil(() => isMetric(0), { what: 'the metric to end' });
  await waitUntil(() => reported('source.succession_released').length > 0, { what: 'the end' });
  await sluice.kill();

  expect(reported('source.succession_held')).toHaveLength(1);
  expect(reported('source.succession_released')).toHaveLength(1);
  expect([held.matched, held.waiting, held.brake.examples.length]).toEqual([0, 30, 3]);
  expect(refused.exitCode).toBe(1);
  expect(move.delivered().repeated).toEqual([]);
});

test('a patience shorter than the polls of the other side floods nothing where ids never match', async () => {
  const succeeds = { patience: '200ms', overlap: '2h' };
  const move = await aMove({ succeeds, old: { every: '4s' }, ids: { new: 'unrelated' } });
  const { pair, config } = move;
  const braked = async () => {
    const { stdout } = await runHere(['succession', '-c', config, '--json']);
    return JSON.parse(stdout).sources[0].brake !== null;
  };
  pair.addMany(60);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  await waitUntil(braked, { what: 'the brake' });
  pair.addMany(20);
  await move.complete();
  await sluice.kill();

  expect(move.delivered()).toMatchObject({ lost: [], repeated: [] });
});
