// An archive beside a move: both sides are archived as received, the entry of the cutover shows where one continues the other,
// and each record is in it once, in its lake and in what a replay sends.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { aMove } from './a-move.ts';

test('the archive of a move is whole, shows the cutover, and has each record once', async () => {
  const succeeds = { patience: '1s', overlap: '2h' };
  const move = await aMove({ succeeds: null });
  const { pair, config, dir } = move;
  const key = join(dir, 'key');
  const vkey = (await runHere(['archive', 'keys', 'new', key])).stdout.trim();
  const location = join(dir, 'archive');
  const proof = {
    type: 'archive',
    location,
    signing_key: `\${file:${key}}`,
    ...{ checkpoint_every: '100ms', lake: { every: '1s' } },
  };
  const disk = { type: 'file', path: join(dir, 'events.ndjson') };
  move.write({ succeeds, top: { sinks: { disk, proof } } });
  pair.addMany(40);
  pair.only('new').addMany(3);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  const cut = await runHere(['succession', 'cutover', '-c', config, 'new_audit', '--force']);
  pair.addMany(10);
  pair.only('old').addMany(2);
  await move.complete();
  await sluice.kill('SIGTERM');
  const verified = await runHere(['archive', 'verify', location, '--key', vkey, '--json']);
  const shown = await runHere(['archive', 'verify', location, '--key', vkey]);

  const replayed = join(dir, 'replayed.ndjson');
  move.write({ succeeds, top: { sinks: { again: { type: 'file', path: replayed } } } });
  const replay = ['archive', 'replay', location, '-c', config, '--key', vkey, '--sink', 'again'];
  const sent = await runHere(replay);
  const found = await runHere(['archive', 'search', location]);
  const inLake = pair.count(found.stdout);
  const again = pair.count(readFileSync(replayed, 'utf8'));

  expect([sent.exitCode, again.lost, again.repeated]).toEqual([0, [], []]);
  expect([found.exitCode, inLake.lost, inLake.repeated]).toEqual([0, [], []]);
  expect([cut.exitCode, verified.exitCode, verified.stderr]).toEqual([0, 0, '']);
  const report = JSON.parse(verified.stdout);
  // What the archive reports of itself is in no archive.
  const events = move.lines().filter((line) => !line.includes('archive.checkpoint'));
  expect([report.verdict, report.records]).toEqual(['whole', events.length]);
  expect(report.successions).toEqual([
    expect.objectContaining({
      phase: 'cut_over',
      predecessor: 'old_audit',
      successor: 'new_audit',
    }),
  ]);
  expect(report.successions[0].streams.map((one: { stream: string }) => one.stream)).toEqual([
    'old_audit',
    'new_audit',
  ]);
  expect(shown.stdout).toContain('new_audit delivers instead of old_audit');
  expect(move.delivered().repeated).toEqual([]);
});
