// A large page's body stands in rows of its own: it comes back byte for byte, goes with its page, and a part that is not
// what was written costs that page and no other.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { rowsIn as everyRowIn } from '../../src/hold/carry.ts';
import { findDamage } from '../../src/hold/damage.ts';
import { Rebuilding } from '../../src/hold/rebuild.ts';
import { databaseName } from '../../src/hold/schema.ts';
import { lookInto, Store } from '../../src/hold/store.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';
import { repair } from './accounts.ts';
import { overwrite, placeOf } from './damages.ts';
import { rowsIn } from './rows.ts';

const MiB = 1024 ** 2;
const large = anAppend({ ids: ['11', '12', '13'], pad: MiB });
const largeBody = large.pages[0]?.body ?? new Uint8Array(0);
const small = anAppend({ ids: ['1', '2'] });

function open(dir: string): Store {
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  store.retainFor(['a']);
  return store;
}

/** A closed state directory that holds a small page, the large one, and a small one. */
function held(): string {
  const dir = tempDir();
  const store = open(dir);
  for (const entry of [small, large, small]) store.transaction(() => store.append(entry, 0));
  store.close();
  return dir;
}

function partsIn(dir: string): number {
  const database = new DatabaseSync(join(dir, databaseName));
  const parts = database.prepare('SELECT max(length(bytes)) AS n FROM page_part').get()?.n;
  database.close();
  return Number(parts);
}

test('a large page comes back as it was, from rows of a megabyte', () => {
  const dir = held();

  const store = open(dir);
  const pages = store.read(0, 10 * MiB);
  store.close();

  expect(pages.map(({ first, count }) => [first, count])).toEqual([
    [0, 2],
    [2, 3],
    [5, 2],
  ]);
  expect(Buffer.compare(pages[1]?.body ?? new Uint8Array(0), largeBody)).toBe(0);
  expect(partsIn(dir)).toBe(MiB);
  expect(findDamage(join(dir, databaseName), null)).toBeNull();
});

test('its parts go with it', () => {
  const dir = held();
  const store = open(dir);

  store.transaction(() => store.acknowledge('a', { position: 5 }, 0));
  store.transaction(() => store.prune(1));

  expect(store.read(0, 10 * MiB).map(({ first }) => first)).toEqual([5]);
  expect(rowsIn(dir, 'SELECT count(*) AS n FROM page_part')).toEqual([{ n: 0 }]);
  store.close();
});

test.each([
  [
    'changed',
    (_dir: string, path: string) =>
      overwrite(path, placeOf(path, '"id":"12"') + 99, Buffer.from('y')),
  ],
  ['gone', (dir: string) => change(dir, 'DELETE FROM page_part WHERE id = 2')],
  ['in another place', (dir: string) => change(dir, 'UPDATE page_part SET id = 9 WHERE id = 1')],
])('a part that is %s is damage, which costs that page alone', (_, damage) => {
  const dir = held();
  const path = join(dir, databaseName);
  damage(dir, path);

  const found = findDamage(path, null);
  repair(dir);

  expect(found).toContain('the page at event 2');
  const store = open(dir);
  // The last one reports it.
  expect(store.read(0, 10 * MiB).map(({ first }) => first)).toEqual([0, 5, 7]);
  store.close();
});

test('a large page outlives damage elsewhere', () => {
  const dir = held();
  overwrite(
    join(dir, databaseName),
    placeOf(join(dir, databaseName), '"id":"1"') + 60,
    Buffer.from('y'),
  );

  repair(dir);

  const store = open(dir);
  const page = store.read(2, 10 * MiB)[0];
  store.close();
  expect(page?.first).toBe(2);
  expect(Buffer.compare(page?.body ?? new Uint8Array(0), largeBody)).toBe(0);
});

function change(dir: string, sql: string): void {
  const database = new DatabaseSync(join(dir, databaseName));
  database.exec(sql);
  database.close();
}

test('a log that holds a large page twice, from an import that was begun again, makes it once', () => {
  const [from, to] = [held(), tempDir()];
  const rebuilding = new Rebuilding(to);
  for (const _ of ['begun', 'again']) {
    for (const rows of everyRowIn(from)) rebuilding.put(rows);
  }
  rebuilding.finish({ isCache: false });

  const bodies = (dir: string) =>
    lookInto(dir, [], (store) => store.read(0, 100 * MiB).map(({ body }) => body));
  expect(bodies(to)).toHaveLength(3);
  expect(bodies(to)).toEqual(bodies(from));
});
