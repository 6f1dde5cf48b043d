// How a state database of another version is met: an older one is brought up to date with all that it holds, a newer
// one is refused and left as it is. The second migration is made up, since there is only one so far.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test, vi } from 'vitest';
import type * as Schema from '../../src/hold/schema.ts';
import { Store } from '../../src/hold/store.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

const later = vi.hoisted((): string[] => []);

vi.mock(import('../../src/hold/schema.ts'), async (original) => {
  const schema: typeof Schema = await original();
  return {
    ...schema,
    get migrations() {
      return [...schema.migrations, ...later];
    },
  };
});

function open(dir: string): Store {
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  store.retainFor(['a']);
  return store;
}

function versionOf(dir: string): unknown {
  const database = new DatabaseSync(join(dir, 'sluice.db'));
  const row = database.prepare('PRAGMA user_version').get();
  database.close();
  return row?.user_version;
}

/** A database of the present version that holds something; returns its identity. */
function made(dir: string): string {
  later.length = 0;
  const store = open(dir);
  store.transaction(() => store.append(anAppend({ ids: ['1', '2'] }), 0));
  store.transaction(() => store.acknowledge('a', { position: 1 }, 0));
  const { id } = store;
  store.close();
  return id;
}

test('store brings an older database up to date and keeps what it holds', () => {
  const dir = tempDir();
  const id = made(dir);
  const before = versionOf(dir);
  later.push('CREATE TABLE fresh (x INTEGER); INSERT INTO fresh VALUES (7);');

  const store = open(dir);
  const again = open(dir);

  expect(store.rows('SELECT x FROM fresh')).toEqual([{ x: 7 }]);
  expect(again.rows('SELECT count(*) AS n FROM fresh')).toEqual([{ n: 1 }]);
  expect(store.id).toBe(id);
  expect(store.read(0, 1e6)).toHaveLength(1);
  expect(store.progress('a').position).toBe(1);
  store.close();
  again.close();
  expect([before, versionOf(dir)]).toEqual([1, 2]);
});

test('store leaves an older database as it was where a migration fails', () => {
  const dir = tempDir();
  const id = made(dir);
  later.push('CREATE TABLE fresh (x INTEGER);', 'CREATE TABLE half (x INTEGER); nonsense;');

  expect(() => open(dir)).toThrow('opening the state database');

  expect(versionOf(dir)).toBe(2);
  later.pop();
  const store = open(dir);
  expect(store.id).toBe(id);
  expect(store.rows("SELECT name FROM sqlite_master WHERE name = 'half'")).toEqual([]);
  store.close();
});

test('store refuses a database of a newer version, says so, and leaves it as it is', () => {
  const dir = tempDir();
  made(dir);
  const database = new DatabaseSync(join(dir, 'sluice.db'));
  database.exec('PRAGMA user_version = 7; PRAGMA wal_checkpoint(TRUNCATE);');
  database.close();
  const before = readFileSync(join(dir, 'sluice.db'));

  expect(() => open(dir)).toThrow('it was written by a newer sluice (schema 7)');

  expect(readFileSync(join(dir, 'sluice.db')).equals(before)).toBe(true);
});
