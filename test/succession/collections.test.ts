// A collection that moves from an API that ends to its successor: known entities are not created again, real changes are
// reported once, and the phase decides which side reports.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { runSluice, startSluice } from '../support/cli.ts';
import { startMovingUpstreams } from '../support/moving/upstreams.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

interface Reported {
  readonly source: string;
  readonly change: string;
  readonly id: string;
  readonly subject: string | undefined;
}

async function aCollection(succeeds: object | null = {}) {
  const dir = tempDir();
  const pair = await startMovingUpstreams({});
  const config = join(dir, 'sluice.yaml');
  const out = join(dir, 'events.ndjson');
  const write = (isPair: boolean, more: object = {}) => {
    const usual = { every: '200ms', confirm_after: '0s', settle: '0s', removals: true };
    const old = {
      ...{ type: 'collection', upstream: 'old', path: '/tickets', id: 'ticketId', kind: 'ticket' },
      ...{ pagination: { style: 'page', page_param: 'page', size_param: 'page_size' }, ...usual },
    };
    const late = {
      ...{
        type: 'collection',
        upstream: 'new',
        path: '/api/ticketing/v1/tickets',
        id: 'ticket_id',
      },
      ...{ kind: 'ticket', pagination: { style: 'offset' }, ...usual },
      succeeds: { source: 'old_tickets', patience: '3s', overlap: '1s', ...succeeds, ...more },
    };
    const text = {
      state: { dir: join(dir, 'state') },
      upstreams: pair.upstreams,
      sources: { old_tickets: old, ...(isPair ? { new_tickets: late } : {}) },
      sinks: { disk: { type: 'file', path: out, format: { type: 'json', schema: 'original' } } },
    };
    writeFileSync(config, JSON.stringify(text));
  };
  const reported = (): readonly Reported[] =>
    (existsSync(out) ? readFileSync(out, 'utf8') : '')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
      .filter(({ change }) => change !== undefined && change !== 'baseline')
      .map(({ change, entity_id: id, after, before }) => ({
        source: (after ?? before).ticketId === undefined ? 'new' : 'old',
        ...{ change, id, subject: after?.subject },
      }));
  const baselines = (): readonly string[] =>
    (existsSync(out) ? readFileSync(out, 'utf8') : '')
      .split('\n')
      .filter((line) => line.includes('"change":"baseline"'))
      .map((line) => JSON.parse(line).entity_kind);
  return { pair, config, dir, write, reported, baselines };
}

/** Runs once with the old source alone, so that its state is there. */
async function withBaseline() {
  const move = await aCollection();
  for (let id = 1; id <= 20; id += 1) move.pair.setTicket(id);
  move.write(false);
  const first = await runSluice(['run', '-c', move.config, '--once']);
  expect(first.exitCode, first.stderr).toBe(0);
  move.write(true);
  return move;
}

test('changes are reported once, known entities are not created, entities on one side alone are reported', async () => {
  const { pair, config, reported } = await withBaseline();
  pair.setTicket(21, { subject: 'only new' }, 'new');

  const sluice = startSluice(['run', '-c', config]);
  await waitUntil(() => reported().some(({ id }) => id === '21'), { what: 'ticket 21' });
  pair.setTicket(3, { subject: 'changed' });
  pair.setTicket(22, { subject: 'added' });
  pair.removeTicket(4);
  const isThere = (change: string, id: string) => () =>
    reported().some((one) => one.change === change && one.id === id);
  await waitUntil(isThere('updated', '3'), { what: 'ticket 3' });
  await waitUntil(isThere('created', '22'), { what: 'ticket 22' });
  await waitUntil(isThere('deleted', '4'), { what: 'ticket 4' });
  // Past the patience of the new side's changes.
  pair.setTicket(5, { subject: 'last' }, 'new');
  await waitUntil(isThere('updated', '5'), { what: 'ticket 5' });
  await sluice.kill();

  expect(reported().toSorted((a, b) => Number(a.id) - Number(b.id))).toEqual([
    { source: 'old', change: 'updated', id: '3', subject: 'changed' },
    { source: 'old', change: 'deleted', id: '4', subject: undefined },
    { source: 'new', change: 'updated', id: '5', subject: 'last' },
    { source: 'new', change: 'created', id: '21', subject: 'only new' },
    { source: 'old', change: 'created', id: '22', subject: 'added' },
  ]);
});

test('a value that differs at the first full scan is reported as one update', {
  tags: ['long'],
}, async () => {
  const { pair, config, reported } = await withBaseline();
  pair.setTicket(7, { subject: 'differs' }, 'new');

  const sluice = startSluice(['run', '-c', config]);
  await waitUntil(() => reported().length > 0, { what: 'ticket 7' });
  await sluice.kill();

  expect(reported()).toEqual([{ source: 'new', change: 'updated', id: '7', subject: 'differs' }]);
});

test('after the cutover the new source reports, and the dead old one disturbs nothing', async () => {
  const { pair, config, reported } = await withBaseline();
  const sluice = startSluice(['run', '-c', config]);
  pair.setTicket(1, { subject: 'before' });
  await waitUntil(() => reported().length > 0, { what: 'ticket 1' });
  const cut = await runSluice(['succession', 'cutover', 'new_tickets', '-c', config, '--force']);
  expect(cut.exitCode).toBe(0);
  pair.setTicket(2, { subject: 'after' });
  await waitUntil(() => reported().some(({ id }) => id === '2'), { what: 'ticket 2' });
  await pair.die('old', 410);
  pair.setTicket(3, { subject: 'last' });
  await waitUntil(() => reported().some(({ id }) => id === '3'), { what: 'ticket 3' });
  pair.setTicket(4, { subject: 'only new' }, 'new');
  await waitUntil(() => reported().some(({ id }) => id === '4'), { what: 'ticket 4' });
  await sluice.kill();

  expect(reported()).toEqual([
    { source: 'old', change: 'updated', id: '1', subject: 'before' },
    { source: 'new', change: 'updated', id: '2', subject: 'after' },
    { source: 'new', change: 'updated', id: '3', subject: 'last' },
    { source: 'new', change: 'updated', id: '4', subject: 'only new' },
  ]);
});

test('a damaged entity of the old source halts the old source alone, and loses nothing', async () => {
  const { pair, config, dir, reported } = await withBaseline();
  const database = new DatabaseSync(join(dir, 'state', 'sluice.db'));
  const damaged = database
    .prepare('UPDATE entity SET body = ? WHERE stream = ? AND key = ?')
    .run('{"torn', 'old_tickets', '["ticket","6"]');
  database.close();
  pair.setTicket(7, { subject: 'differs' }, 'new');
  pair.removeTicket(20, 'new');

  const sluice = startSluice(['run', '-c', config]);
  await sluice.waitForLine('predecessor_entity_damaged');
  const isThere = (change: string, id: string) => () =>
    reported().some((one) => one.change === change && one.id === id);
  await waitUntil(isThere('updated', '7'), { what: 'ticket 7' });
  await waitUntil(isThere('created', '6'), { what: 'the damaged ticket' });
  pair.setTicket(8, { subject: 'later' });
  await waitUntil(isThere('updated', '8'), { what: 'ticket 8' });
  await sluice.kill();

  expect(damaged.changes).toBe(1);
  expect(new Set(reported().map(({ change, id }) => `${change} ${id}`))).toEqual(
    new Set(['updated 7', 'created 6', 'updated 8']),
  );
});

test('succession lists the results of the first full scan', { tags: ['long'] }, async () => {
  const { pair, config, reported } = await withBaseline();
  pair.setTicket(7, { subject: 'differs' }, 'new');
  pair.removeTicket(20, 'new');

  const sluice = startSluice(['run', '-c', config]);
  await waitUntil(() => reported().length > 0, { what: 'ticket 7' });
  const { stdout } = await runSluice(['succession', '-c', config, '--json']);
  const status = await runSluice(['status', '-c', config, '--json']);
  await sluice.kill();

  const [listed] = JSON.parse(stdout).sources;
  expect(listed).toMatchObject({
    matched: 19,
    only_old: { count: 1, examples: ['20'] },
    differing: { count: 1, examples: ['7'] },
  });
  expect(JSON.parse(status.stdout).successions).toMatchObject([
    { source: 'old_tickets', successor: 'new_tickets', matched: 19, only_old: 1, held: false },
  ]);
  expect(reported().filter(({ change }) => change === 'deleted')).toEqual([]);
});

test('two sources that start together report one baseline, and nothing as created', {
  tags: ['long'],
}, async () => {
  const { pair, config, write, reported, baselines } = await aCollection();
  for (let id = 1; id <= 20; id += 1) pair.setTicket(id);
  write(true);

  const sluice = startSluice(['run', '-c', config]);
  await waitUntil(() => baselines().length > 0, { what: 'the baseline' });
  // Past the patience of all that the new side may have stored.
  pair.setTicket(21, { subject: 'only new' }, 'new');
  await waitUntil(() => reported().some(({ id }) => id === '21'), { what: 'ticket 21' });
  await sluice.kill();

  expect(baselines()).toHaveLength(1);
  expect(reported().map(({ id }) => id)).toEqual(['21']);
});
