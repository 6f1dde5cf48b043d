// A refused config is read again only once its file stands still, as each other change of the file.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listenForReloads } from '../../src/run/reload-requests.ts';
import { manualClock } from '../support/manual-clock.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';
import { never } from '../tools/serving.ts';

test('a further try waits until the file stands still', async () => {
  const file = join(tempDir(), 'sluice.yaml');
  writeFileSync(file, 'whole');
  const clock = manualClock();
  const requests = await listenForReloads(file, clock);
  afterThisTest(() => requests.release());
  const found: string[] = [];
  const look = async (text: string) => {
    await waitUntil(() => clock.sleepers === 1 || found.length > 0, {
      what: 'the pause between two looks',
    });
    writeFileSync(file, text);
    await clock.advance(1_000);
  };

  void requests.next(never(), AbortSignal.abort()).then((reason) => found.push(reason));
  for (const text of ['who', 'whole again', 'whole']) await look(text);
  expect(found).toEqual([]);
  await look('whole');
  await waitUntil(() => found.length === 1, { what: 'a reason' });

  expect(found).toEqual(['it was refused before']);
});
