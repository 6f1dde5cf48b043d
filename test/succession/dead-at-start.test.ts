// The old API is dead when its successor starts: nothing is left out silently. The successor halts with the `start` to set,
// unless the state shows that the old side delivered all of before.

import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { aMove, type Move } from './a-move.ts';

async function errorOf({ config }: Move, name = 'new_audit') {
  const { stdout } = await runHere(['status', '-c', config, '--json']);
  const { streams } = JSON.parse(stdout) as {
    streams: readonly { name: string; state: string; error: Failure | null }[];
  };
  const { state, error } = streams.find((one) => one.name === name) ?? {};
  return { state, error: error ?? null };
}

interface Failure {
  readonly message: string;
  readonly next: string;
}

async function isHalted(move: Move): Promise<boolean> {
  const { state } = await errorOf(move);
  return state === 'halted';
}

const later = { patience: '500ms', overlap: '1s' };

test.each([404, 'refused'] as const)(
  'without a state, a successor of an API that answers %s halts until start is set',
  async (death) => {
    const succeeds = later;
    const move = await aMove({ succeeds, startMs: Date.now() - 3_600_000 });
    const { pair, config } = move;
    pair.addMany(30);
    await pair.die('old', death);
    const checked = await runHere(['check', '-c', config, '--connect']);
    const sluice = startSluice(['run', '-c', config]);
    await waitUntil(() => isHalted(move), { what: 'the successor to halt' });
    const { error } = await errorOf(move);
    const refused = await runHere(['succession', 'cutover', '-c', config, 'new_audit']);
    const shown = await runHere(['status', '-c', config]);
    const requests = pair.requests('new');

    // The sink has the first ten.
    const start = new Date(pair.entries[10]?.timeMs ?? 0).toISOString();
    move.write({ succeeds, startMs: 0, new: { start } });
    const expected = pair.entries.slice(10);
    await move.complete(expected);
    const cut = await runHere(['succession', 'cutover', '-c', config, 'new_audit', '--force']);
    pair.addMany(5);
    await move.complete([...expected, ...pair.entries.slice(30)]);
    await sluice.kill();

    expect(checked.exitCode).toBe(3);
    for (const text of [checked.stdout, shown.stdout, refused.stderr, error?.message])
      expect(text).toContain('starting new_audit: old_audit cannot be read');
    for (const text of [checked.stdout, shown.stdout, error?.next]) {
      expect(text).toContain('Set sources.new_audit.start to the time of the newest event');
      expect(text).toContain('succession cutover new_audit --force');
    }
    // The check has requested one record.
    expect(requests).toBeLessThanOrEqual(2);
    expect([refused.exitCode, cut.exitCode]).toEqual([1, 0]);
    expect(move.delivered([...expected, ...pair.entries.slice(30)])).toMatchObject({
      lost: [],
      repeated: [],
    });
  },
);

test('with the state of the old source, start is the newest record that it has delivered', async () => {
  const move = await aMove({ succeeds: null, startMs: Date.now() - 3_600_000 });
  const { pair, config } = move;
  pair.addMany(20);
  const before = startSluice(['run', '-c', config]);
  await move.complete();
  await before.kill();
  await pair.die('old', 410);
  pair.addMany(10);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  move.write({ succeeds: later });
  const sluice = startSluice(['run', '-c', config]);
  await waitUntil(() => isHalted(move), { what: 'the successor to halt' });
  const { error } = await errorOf(move);
  const newest = new Date(pair.entries[19]?.timeMs ?? 0).toISOString();
  const checked = await runHere(['check', '-c', config, '--connect']);

  const start = /start to (\S+Z),/.exec(error?.next ?? '')?.[1];
  move.write({ succeeds: later, new: { start } });
  await move.complete();
  await sluice.kill();

  expect(start).toBe(newest);
  expect(checked.stdout).toContain(`Set sources.new_audit.start to ${newest}`);
  expect(move.delivered()).toMatchObject({ lost: [], repeated: [] });
});

test('a successor whose predecessor can be read again starts by itself', async () => {
  const move = await aMove({ succeeds: later });
  const { pair, config } = move;
  pair.addMany(20);
  await pair.die('old', 503);
  const sluice = startSluice(['run', '-c', config]);
  await waitUntil(async () => (await errorOf(move)).error, { what: 'the successor to fail' });
  await pair.revive('old');
  await move.complete();
  const isRead = async () => {
    const { state, error } = await errorOf(move);
    return state === 'waiting' && error === null;
  };
  await waitUntil(isRead, { what: 'the successor to be read' });
  await sluice.kill();

  expect(move.delivered().repeated).toEqual([]);
});

test('a predecessor that was read within the overlap has delivered all of before', async () => {
  const move = await aMove({ succeeds: null });
  const { pair, config } = move;
  pair.addMany(20);
  const before = startSluice(['run', '-c', config]);
  await move.complete();
  await before.kill();
  await pair.die('old', 410);
  pair.addMany(10);
  move.write({ succeeds: { patience: '500ms', overlap: '2h' } });
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  await sluice.kill();

  expect(move.delivered().repeated).toEqual([]);
});
