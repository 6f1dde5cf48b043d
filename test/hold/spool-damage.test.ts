// Damage that is found while the spool is in use: no caller gets data that were not written, no caller skips the
// damage, and every waiting caller gets the next step. The next start repairs it.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Spool } from '../../src/contracts/spool.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { anAppend } from '../support/a-page.ts';
import { copied, lossesIn, repair, sinks, twoRuns } from './accounts.ts';
import { overwrite, placeOf, rootOf, sqlitePage } from './damages.ts';

const { closed } = await twoRuns();

/** Damages, and how the spool meets them. */
const metLater: Readonly<
  Record<
    string,
    {
      readonly damage: (dir: string, path: string) => void;
      readonly meet: (spool: Spool) => Promise<unknown>;
    }
  >
> = {
  'a page that it reads': {
    damage: (_, path) => overwrite(path, placeOf(path, '"id":"130"') + 500, Buffer.from('y')),
    meet: (spool) => spool.read(160, 1),
  },
  'a table that it writes to': {
    damage: (dir, path) => overwrite(path, rootOf(dir, 'trail'), Buffer.alloc(sqlitePage)),
    meet: (spool) =>
      spool.append({ ...anAppend({ ids: ['new'] }), trail: [{ cursor: 'c', at: 1_000 }] }),
  },
};

test.each(Object.entries(metLater))(
  'spool that finds damage in %s rejects every caller and goes no further; the next start repairs it',
  async (_, { damage, meet }) => {
    const dir = copied(closed.dir);
    damage(dir, join(dir, 'sluice.db'));
    const settings = { dir, sync: 'normal', keepMs: 0, sinks, bytesMax: 1e9 } as const;
    const spool = await openSpool({ ...settings, recentBytesMax: 1 });
    const arrival = spool.arrival(1e6, new AbortController().signal);
    arrival.catch(() => undefined);
    const sound = await spool.read(77, 1);

    const met = await Promise.allSettled([meet(spool)]);
    const later = await Promise.allSettled([
      arrival,
      spool.read(77, 1e6),
      spool.progress('a'),
      spool.acknowledge('a', { position: 177 }),
      spool.append(anAppend({ ids: ['later'] })),
    ]);
    await spool.close();
    const { repaired } = repair(dir);

    const reported = { code: 'state_damaged', next: expect.stringContaining('Start sluice again') };
    for (const each of [...met, ...later.slice(0, 1), ...later.slice(2)]) {
      expect(each).toMatchObject({ status: 'rejected', reason: reported });
    }
    expect(sound.map(({ first }) => first)).toEqual([77]);
    expect(repaired).not.toBeNull();
    expect(lossesIn(dir, closed)).toEqual([]);
  },
);
