// Records from before the overlap: the old source delivers them, and they are no difference between the two.

import { expect, test } from 'vitest';
import { runSluice, startSluice } from '../support/cli.ts';
import { aMove } from './a-move.ts';

test('history that the old source reads after the pairing does not count as missing in the new one', async () => {
  const move = await aMove({ startMs: Date.now() - 10 * 3_600_000 });
  const { pair } = move;
  pair.addMany(30);
  const sluice = startSluice(['run', '-c', move.config]);
  await move.complete();
  // Delivered after the patience of the new side, so that of the history is over, too.
  const late = pair.only('new').add({ timeMs: Date.now() });
  await move.complete();
  const { stdout } = await runSluice(['succession', '-c', move.config, '--json']);
  await sluice.kill();

  const [listed] = JSON.parse(stdout).sources;
  expect(listed).toMatchObject({ only_old: { count: 0 }, brake: null });
  expect(move.delivered().times.get(late.mark)).toBe(1);
  expect(move.delivered().repeated).toEqual([]);
});
