// Kills at any moment of a move: while both sides are read, right before and after a cutover, and while records wait. At a file
// sink no record is lost and none is repeated.

import { expect, test } from 'vitest';
import { type RunningSluice, runHere, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { aMove, type Move } from './a-move.ts';

/** How many records are delivered before each kill, from the numbers of a run; the same each time. */
function* numbers(seed: number): Generator<number> {
  let state = seed;
  for (;;) {
    state = (state * 48_271) % 2_147_483_647;
    yield state;
  }
}

/** Kills a process at its n-th request from now on to either side. */
async function killedAt(move: Move, sluice: RunningSluice, requests: number): Promise<void> {
  const { pair } = move;
  const before = pair.requests('old') + pair.requests('new');
  const what = `${requests} requests`;
  await waitUntil(() => pair.requests('old') + pair.requests('new') >= before + requests, {
    what,
    everyMs: 1,
  });
  await sluice.kill('SIGKILL');
}

test('a pair that is killed in every phase delivers each record once', async () => {
  const move = await aMove({ succeeds: { patience: '1s', overlap: '2h' }, pageMax: 7 });
  const { pair, config } = move;
  const random = numbers(7);
  const next = (below: number) => (random.next().value ?? 0) % below;
  const grow = () => {
    pair.addMany(15 + next(20));
    pair.only('old').addMany(next(3));
    pair.only('new').addMany(next(3));
    const late = pair.only('new').add({ timeMs: Date.now() - 3_000_000 });
    return () => pair.show(late, 'old');
  };
  grow();
  for (let kill = 0; kill < 12; kill += 1) {
    const show = grow();
    const sluice = startSluice(['run', '-c', config]);
    const at = killedAt(move, sluice, 2 + next(25));
    if (kill % 3 === 2) {
      const isBack = kill % 6 === 5;
      const turn = isBack ? ['rollback'] : ['cutover', '--force'];
      await Promise.race([
        runHere(['succession', ...turn, '-c', config, 'new_audit']).catch(() => undefined),
        at,
      ]);
    }
    await at;
    show();
  }
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  const { stdout } = await runHere(['succession', '-c', config, '--json']);
  await sluice.kill();

  expect(JSON.parse(stdout).sources[0].brake).toBeNull();
  expect(move.delivered().repeated).toEqual([]);
});
