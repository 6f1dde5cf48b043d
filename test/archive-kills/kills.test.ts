// A few kills of what `npm run archive-kills` does hundreds of times.

import { expect, test } from 'vitest';
import { tempDir } from '../support/temp.ts';
import { findingsOf, randomFrom, runKills } from './kills.ts';

test('an archive is whole, with nothing twice or missing, however its writer is killed', async () => {
  const result = await runKills({ kills: 4, random: randomFrom(3), dir: tempDir() });

  expect(findingsOf(result)).toEqual([]);
  expect(result.archived.length).toBeGreaterThan(300);
});
