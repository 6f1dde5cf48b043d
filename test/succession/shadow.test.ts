// A list that moves from an API that ends to its successor: both are read, and each record is delivered once.

import { expect, test } from 'vitest';
import { startSluice } from '../support/cli.ts';
import { aMove } from './a-move.ts';

test('a record that both sides show is delivered once, by the old side, and one that a side alone shows as well', async () => {
  const move = await aMove();
  const { pair } = move;
  pair.addMany(50);
  const onlyOld = pair.only('old').addMany(2);
  const onlyNew = pair.only('new').addMany(3);

  const sluice = startSluice(['run', '-c', move.config]);
  await move.complete();
  pair.addMany(30);
  await move.complete();
  await sluice.kill();

  expect(move.delivered().repeated).toEqual([]);
  const bySource = move.lines().map((line) => JSON.parse(line).metadata.log_name);
  expect(bySource.filter((name) => name === 'new_audit')).toHaveLength(onlyNew.length);
  expect(bySource.filter((name) => name === 'old_audit')).toHaveLength(80 + onlyOld.length);
});
