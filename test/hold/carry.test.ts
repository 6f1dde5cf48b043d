// A state database that is moved into a directory with remains of another: the new one stays as it was made.

import { copyFileSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { putDatabase } from '../../src/hold/carry.ts';
import { findDamage } from '../../src/hold/damage.ts';
import { Store } from '../../src/hold/store.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

/** A closed database with that many events. */
function aState(events: number): string {
  const dir = tempDir();
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  store.retainFor(['a']);
  const ids = Array.from({ length: events }, (_, id) => String(id));
  store.transaction(() => store.append(anAppend({ ids }), 0));
  store.close();
  return dir;
}

function endOf(dir: string): number {
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  const { end } = store;
  store.close();
  return end;
}

test.each(['-wal', '-journal'])(
  'putDatabase moves the %s file of another database away',
  (suffix) => {
    const [from, to] = [aState(3), tempDir()];
    // A process was killed, and then a move after it had renamed the database itself.
    const other = join(tempDir(), 'sluice.db');
    {
      using database = new DatabaseSync(other);
      database.exec(`PRAGMA page_size = 8192; PRAGMA cache_size = 2;
      PRAGMA journal_mode = ${suffix === '-wal' ? 'WAL' : 'DELETE'}; BEGIN; CREATE TABLE t (x)`);
      const insert = database.prepare('INSERT INTO t VALUES (zeroblob(5000))');
      for (let row = 0; row < 100; row += 1) insert.run();
      if (suffix === '-wal') database.exec('COMMIT');
      copyFileSync(other + suffix, join(to, `sluice.db${suffix}`));
    }

    const aside = putDatabase(from, to, 0);

    expect(aside).toBeNull();
    expect(findDamage(join(to, 'sluice.db'), null)).toBeNull();
    expect(endOf(to)).toBe(3);
    expect(readdirSync(to)).toContain(`sluice.db.before-1970-01-01T00-00-00.000Z${suffix}`);
    expect(existsSync(join(to, `sluice.db${suffix}`))).toBe(false);
  },
);
