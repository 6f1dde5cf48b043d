// How a state database of another version is opened: an older one is brought up to date with all of its content, a
// newer one is refused and left unchanged. Each earlier version is pinned by a database of that version, as SQL in
// `schemas/`.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test, vi } from 'vitest';
import { findDamage } from '../../src/hold/damage.ts';
import type * as Schema from '../../src/hold/schema.ts';
import { migrations } from '../../src/hold/schema.ts';
import { lookInto, Store } from '../../src/hold/store.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';
import { rowsIn } from './rows.ts';

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

const present = migrations.length;
const versions = Array.from({ length: present }, (_, index) => index + 1);

/** A state directory as that version has left it. */
function leftBy(version: number): string {
  const dir = tempDir();
  const database = new DatabaseSync(join(dir, 'sluice.db'));
  database.exec(readFileSync(join(import.meta.dirname, 'schemas', `${version}.sql`), 'utf8'));
  database.close();
  return dir;
}

function tablesIn(database: DatabaseSync): readonly unknown[] {
  return database.prepare('SELECT name, sql FROM sqlite_master ORDER BY name').all();
}

test.each(versions)(
  'the migrations up to version %i make the tables that it was released with',
  (n) => {
    const released = new DatabaseSync(join(leftBy(n), 'sluice.db'));
    const made = new DatabaseSync(':memory:');
    for (const migration of migrations.slice(0, n)) made.exec(migration);

    expect(tablesIn(made)).toEqual(tablesIn(released));
    released.close();
    made.close();
  },
);

test.each(versions)('store resumes with all data of version %i', (version) => {
  later.length = 0;
  const dir = leftBy(version);
  const damage = findDamage(join(dir, 'sluice.db'), null);

  const store = open(dir);
  store.transaction(() => store.append(anAppend({ ids: ['5'] }), 0));

  expect(damage).toBeNull();
  expect(versionOf(dir)).toBe(present);
  expect(store.id).toBe('6f1c0d2e-3b4a-4c5d-8e6f-708192a3b4c5');
  const pages = store.read(0, 1e6);
  expect(pages.map(({ first, count, onlySink }) => [first, count, onlySink])).toEqual([
    [39, 2, undefined],
    [41, 1, 'siem'],
    [42, 1, undefined],
  ]);
  expect(pages[0]?.kept).toEqual(Uint32Array.of(0, 2));
  expect(Buffer.from(pages[1]?.body ?? []).toString()).toBe('[{"id":"4"}]');
  expect(pages[0]?.context).toMatchObject({ source: 'audit', fetchedAt: 1_793_491_200_000 });
  expect(
    store.streams.recall('audit').identities.map(({ block, bytes }) => [block, bytes.length]),
  ).toEqual([[7, 40]]);
  expect(store.streams.trail('audit')).toEqual([{ cursor: 'c-1', at: 1_793_491_200_000 }]);
  expect(
    store.streams.entities('firewall/c-1/objects', ['object/o-1']).get('object/o-1'),
  ).toContain('"o-1"');
  expect(store.progress('siem')).toEqual({ position: 40, mark: { bytes: 9 } });
  expect(rowsIn(dir, 'SELECT id, reason FROM dead_letter')).toEqual([
    { id: 3, reason: 'too long' },
  ]);
  expect(rowsIn(dir, 'SELECT name, facts FROM note')).toHaveLength(1);
  store.close();
  expect(findDamage(join(dir, 'sluice.db'), null)).toBeNull();
});

test.each(versions)('the requests of version %i are read before it is migrated', (version) => {
  later.length = 0;

  expect(() => lookInto(leftBy(version), null, ({ requests }) => requests.all())).not.toThrow();
});

test('store only reads an older database if it is opened for reading', () => {
  later.length = 0;
  const dir = leftBy(1);

  const store = new Store({ dir, sync: 'normal', keepMs: 0, readOnly: true });

  expect(store.read(0, 1e6)).toHaveLength(2);
  expect(store.progress('siem').position).toBe(40);
  store.close();
  expect(versionOf(dir)).toBe(1);
});

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

test('store brings an older database up to date and keeps its content', () => {
  const dir = tempDir();
  const id = made(dir);
  const before = versionOf(dir);
  later.push('CREATE TABLE fresh (x INTEGER); INSERT INTO fresh VALUES (7);');

  const store = open(dir);
  const again = open(dir);

  expect(rowsIn(dir, 'SELECT x FROM fresh')).toEqual([{ x: 7 }]);
  expect(rowsIn(dir, 'SELECT count(*) AS n FROM fresh')).toEqual([{ n: 1 }]);
  expect(store.id).toBe(id);
  expect(store.read(0, 1e6)).toHaveLength(1);
  expect(store.progress('a').position).toBe(1);
  store.close();
  again.close();
  expect([before, versionOf(dir)]).toEqual([present, present + 1]);
});

test('store leaves an older database as it was where a migration fails', () => {
  const dir = tempDir();
  const id = made(dir);
  later.push('CREATE TABLE fresh (x INTEGER);', 'CREATE TABLE half (x INTEGER); nonsense;');

  expect(() => open(dir)).toThrow('opening the state database');

  expect(versionOf(dir)).toBe(present);
  later.pop();
  const store = open(dir);
  expect(store.id).toBe(id);
  expect(rowsIn(dir, "SELECT name FROM sqlite_master WHERE name = 'half'")).toEqual([]);
  store.close();
});

test('store refuses a database of a newer version, says so, and leaves it as it is', () => {
  const dir = tempDir();
  made(dir);
  const database = new DatabaseSync(join(dir, 'sluice.db'));
  database.exec(`PRAGMA user_version = ${present + 1}; PRAGMA wal_checkpoint(TRUNCATE);`);
  database.close();
  const before = readFileSync(join(dir, 'sluice.db'));

  expect(() => open(dir)).toThrow(`it was written by a newer sluice (schema ${present + 1})`);

  expect(readFileSync(join(dir, 'sluice.db')).equals(before)).toBe(true);
});

test('a database without tables counts as none, and one that is none is reported', () => {
  const [empty, none] = [tempDir(), tempDir()];
  writeFileSync(join(empty, 'sluice.db'), '');
  writeFileSync(join(none, 'sluice.db'), 'this is no database'.repeat(1_000));
  const look = (dir: string) => lookInto(dir, 'nothing', () => 'something');

  expect(look(tempDir())).toBe('nothing');
  expect(look(empty)).toBe('nothing');
  expect(() => look(none)).toThrow(expect.objectContaining({ code: 'state_damaged' }));
  open(empty).close();
  expect(look(empty)).toBe('something');
});
