// `sluice succession`: every source of an upstream that ends is listed, with its successor or without one.

import { expect, test } from 'vitest';
import { runHere, runOnceHere } from '../support/cli.ts';
import { aSetup } from './a-setup.ts';
import { listUntilAnnounced } from './announced.ts';

const ends = '2031-05-06';
const sites = '  sites: { type: sites, upstream: edge }';

async function listed(config: string) {
  const table = await runHere(['succession', '-c', config]);
  const json = await runHere(['succession', '-c', config, '--json']);
  expect([table.exitCode, table.stderr, json.exitCode, json.stderr]).toEqual([0, '', 0, '']);
  return { table: table.stdout, sources: JSON.parse(json.stdout).sources };
}

test('a source without a successor is listed with the end of its API and the next step', async () => {
  const { config } = await aSetup({ ends, sources: [sites] });

  const { table, sources } = await listed(config);

  const none = { successor: null, phase: null, matched: null };
  expect(sources).toMatchObject([
    { source: 'audit', upstream: 'edge', ends_at: '2031-05-06T23:59:59.000Z', ...none },
    { source: 'sites', upstream: 'edge', ends_at: '2031-05-06T23:59:59.000Z', ...none },
  ]);
  expect(table).toMatch(/^audit +2031-05-06 +none +-/m);
  expect(table).toContain(
    `no successor: audit, sites. Propose successors: npx sluice succession plan -c ${config}\n`,
  );
});

test('beside it, one with a successor has its phase, and only the other needs a plan', async () => {
  const later =
    '  later: { type: sites, upstream: edge, path: /later, succeeds: { source: sites } }';
  const { config } = await aSetup({ ends, sources: [sites, later] });

  const { table, sources } = await listed(config);

  expect(sources).toMatchObject([
    { source: 'audit', successor: null },
    { source: 'sites', successor: 'later', ends_at: '2031-05-06T23:59:59.000Z', phase: null },
    { source: 'later', successor: null },
  ]);
  expect(table).toContain('no successor: audit, later.');
});

test('an upstream without an end has no source in the list', async () => {
  const { config } = await aSetup();

  expect((await listed(config)).sources).toEqual([]);
});

test('a date that a header named is known to the list and to the plan once it is stored', async () => {
  const { config, date } = await listUntilAnnounced();
  const plan = async () => (await runHere(['succession', 'plan', '-c', config])).stdout;
  const before = [(await listed(config)).sources, await plan()];
  expect((await runOnceHere(config)).exitCode).toBe(0);

  expect(before).toEqual([[], expect.stringContaining('no upstream ends')]);
  expect((await listed(config)).sources).toMatchObject([
    { source: 'audit', ends_at: date.toISOString(), successor: null },
  ]);
  expect(await plan()).toContain('upstreams.edge ends: ');
});
