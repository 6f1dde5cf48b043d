// The rules of a succession, checked on the real program independently of its engine: two scripted upstreams over one
// ledger (test/support/moving), and the events of a file sink, counted by marks that no id depends on.

import { describe, expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { testSome } from '../support/long.ts';
import type { Death, MovingOptions } from '../support/moving/upstreams.ts';
import { waitUntil } from '../support/temp.ts';
import { aMove, type Move } from './a-move.ts';

const perCompany = { path: '/api/logs/v1/companies/{company_id}/audit' };

async function reportOf({ config }: Move) {
  const { stdout } = await runHere(['succession', '-c', config, '--json']);
  return JSON.parse(stdout).sources[0];
}

/** Waits until the report says so; it is shown where it never does. */
async function reported(move: Move, isSo: (report: Record<string, never>) => unknown) {
  let last: unknown;
  return await waitUntil(
    async () => {
      last = await reportOf(move);
      return isSo(last as Record<string, never>) ? (last as Record<string, never>) : null;
    },
    { what: () => `the report: ${JSON.stringify(last)}`, timeoutMs: 120_000, everyMs: 200 },
  );
}

interface World extends MovingOptions {
  readonly name: string;
  /** Keys of the successor's source. */
  readonly later?: object;
  /** Paths whose values differ: where a clock is ahead, or drops fractions, the times do. */
  readonly differing?: readonly string[];
}

describe('records are the same by their ids, whatever the two sides do otherwise', () => {
  const times = ['event_time'];
  const worlds: readonly World[] = [
    { name: 'pages in opposite order', order: { old: 'newest_first', new: 'oldest_first' } },
    { name: 'the other way, late ones within', order: { new: 'newest_first' }, sorted: 'time' },
    { name: 'a new clock three minutes ahead', aheadMs: { new: 180_000 }, differing: times },
    {
      ...{ name: 'an old clock three minutes ahead', aheadMs: { old: 180_000 } },
      ...{ sorted: 'time', differing: times },
    },
    { name: 'times as epoch milliseconds', oldTimes: 'epoch_ms' },
    { name: 'times as epoch seconds', oldTimes: 'epoch_s', differing: times },
    { name: 'a new API per company', companies: ['1', '2', '3'], later: perCompany },
    {
      name: 'a new API per company, with a company that the old one does not know',
      ...{ companies: ['1', '2'], newCompanies: ['9'], later: perCompany },
    },
    {
      name: 'an old API that names no company',
      ...{ companies: ['1', '2'], oldShowsCompany: false, later: perCompany },
    },
  ];

  testSome(2, worlds)('$name', async ({ later = {}, differing = [], ...options }) => {
    const move = await aMove({
      ...options,
      succeeds: { patience: '1s', overlap: '2h' },
      new: later,
    });
    const { pair } = move;
    const sluice = startSluice(['run', '-c', move.config]);
    pair.addMany(60);
    const strangers = (options.newCompanies ?? []).map((company) =>
      pair.only('new').add({ company }),
    );
    await move.complete();
    const onlyOld = pair.only('old').addMany(2);
    const onlyNew = [...strangers, ...pair.only('new').addMany(3)];
    pair.add({ timeMs: Date.now() - 3_000_000 });
    pair.addMany(40);
    await move.complete();
    const report = await reported(
      move,
      ({ only_old, only_new, waiting }) =>
        Object(only_old).count === onlyOld.length &&
        Object(only_new).count === onlyNew.length &&
        waiting === 0,
    );
    await sluice.kill();

    const idsOf = (entries: readonly { readonly id: number }[]) =>
      entries.map(({ id }) => String(id)).toSorted();
    const shown = (alone: unknown) => [...Object(alone).examples].toSorted();
    expect(move.delivered()).toMatchObject({ lost: [], repeated: [] });
    expect(shown(report.only_old)).toEqual(idsOf(onlyOld));
    // Three examples at most; of several streams, which are read side by side, any three.
    expect(shown(report.only_new)).toHaveLength(Math.min(3, onlyNew.length));
    expect(idsOf(onlyNew)).toEqual(expect.arrayContaining(shown(report.only_new)));
    const paths = (report.fields as unknown as { path: string }[]).map(({ path }) => path);
    expect([report.brake, paths]).toEqual([null, differing]);
  });
});

test('equal ids in two companies are two records each', async () => {
  const move = await aMove({
    ...{ companies: ['1', '2'], succeeds: { patience: '1s', overlap: '2h' }, new: perCompany },
  });
  const { pair } = move;
  const sluice = startSluice(['run', '-c', move.config]);
  for (let n = 0; n < 40; n += 1) {
    pair.add({ id: 5_000 + n, company: '1' });
    pair.add({ id: 5_000 + n, company: '2' });
  }
  await move.complete();
  const report = await reported(move, ({ matched, waiting }) => matched === 80 && waiting === 0);
  await sluice.kill();

  expect(move.delivered()).toMatchObject({ lost: [], repeated: [] });
  expect(report).toMatchObject({ only_old: { count: 0 }, only_new: { count: 0 }, brake: null });
});

test('without ids: time and content; two true twins on each side stay two', async () => {
  const move = await aMove({
    ids: { old: 'none', new: 'none' },
    ...{ succeeds: { patience: '1s', overlap: '2h' }, old: { id: null }, new: { id: null } },
  });
  const { pair } = move;
  const sluice = startSluice(['run', '-c', move.config]);
  pair.addMany(50);
  const alone = pair.only('new').add();
  pair.addMany(20);
  await move.complete();
  await reported(move, ({ matched, waiting }) => matched === 70 && waiting === 0);
  await sluice.kill();

  expect(move.delivered()).toMatchObject({ lost: [], repeated: [] });
  expect(alone.mark).toBe('rec-000050');
});

test('one record with another value: its id and the path are named, and no content', async () => {
  const move = await aMove({ succeeds: { patience: '1s', overlap: '2h' } });
  const { pair } = move;
  const sluice = startSluice(['run', '-c', move.config]);
  pair.addMany(30);
  const differing = pair.add({ differs: { action_name: 'secret-word' } });
  const nested = { resource_type: 'policy', resource_id: '1', is_shared: 'secret-word' };
  pair.add({ differs: { target_resource: nested }, id: 1_000_001 });
  pair.addMany(10);
  await move.complete();
  const report = await reported(move, ({ matched }) => matched === 42);
  const { stdout } = await runHere(['succession', '-c', move.config]);
  await sluice.kill();

  const paths = (report.fields as unknown as { path: string }[]).map(({ path }) => path);
  expect(paths.toSorted()).toEqual([
    'action_name',
    'target_resource.is_shared',
    'target_resource.resource_id',
  ]);
  expect(Object(report.differing).examples).toContain(String(differing.id));
  expect(JSON.stringify(report) + stdout).not.toContain('secret-word');
  expect(move.delivered()).toMatchObject({ lost: [], repeated: [] });
});

test('ids that never match: the brake reports, and only the side that delivers does so', async () => {
  const move = await aMove({
    ids: { new: 'unrelated' },
    succeeds: { patience: '5s', overlap: '2h' },
  });
  const { pair } = move;
  const sluice = startSluice(['run', '-c', move.config]);
  pair.addMany(120);
  await move.complete();
  await reported(move, ({ brake }) => brake !== null);
  pair.addMany(20);
  await move.complete();
  await sluice.kill();

  expect(move.delivered()).toMatchObject({ lost: [], repeated: [] });
});

/** A response that denies or says gone, and a connection that breaks or is refused. */
const deaths: readonly Death[] = [401, 'reset', 404, 410, 'refused'];

testSome(1, deaths)(
  'an old API that dies with %s for good, in shadow: nothing is lost',
  async (how) => {
    const move = await aMove({ succeeds: { patience: '1s', overlap: '2h' } });
    const { pair } = move;
    const sluice = startSluice(['run', '-c', move.config]);
    pair.addMany(30);
    await move.complete();
    pair.addMany(10);
    await pair.die('old', how);
    pair.addMany(40);
    await move.complete();
    await sluice.kill('SIGKILL');
    const again = startSluice(['run', '-c', move.config]);
    pair.addMany(10);
    await move.complete();
    await again.kill();

    expect(move.delivered()).toMatchObject({ lost: [], repeated: [] });
  },
);

test('an old API that is away and returns: nothing is lost and nothing repeated', async () => {
  const move = await aMove({ succeeds: { patience: '500ms', overlap: '2h' } });
  const { pair } = move;
  const sluice = startSluice(['run', '-c', move.config]);
  for (let turn = 0; turn < 3; turn += 1) {
    pair.addMany(20);
    await move.complete();
    await pair.die('old', 'reset');
    pair.addMany(20);
    await move.complete();
    await pair.revive('old');
    await runHere(['retry', '-c', move.config, 'old_audit']);
  }
  const last = pair.addMany(10);
  await move.complete();
  await waitUntil(() => last.every(({ mark }) => pair.served('old').has(mark)), {
    what: 'the old side to be read to its end',
  });
  await reported(move, ({ waiting }) => waiting === 0);
  await sluice.kill();

  expect(move.delivered()).toMatchObject({ lost: [], repeated: [] });
});
