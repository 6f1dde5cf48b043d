// The cache of a log stores a page as the log does, compressed: it comes back byte for byte, also to processes that only
// read, and bytes that differ from those written are damage.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { NewPage } from '../../src/contracts/spool.ts';
import { findDamage } from '../../src/hold/damage.ts';
import { databaseName } from '../../src/hold/schema.ts';
import { lookInto, Store } from '../../src/hold/store.ts';
import { aPage } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';
import { rowsIn } from './rows.ts';

const MiB = 1024 ** 2;

/** A closed cache with these pages. */
function aCacheOf(pages: readonly NewPage[]): string {
  const dir = tempDir();
  const store = new Store({ dir, sync: 'none', keepMs: 0, isCache: true });
  store.retainFor(['a']);
  store.transaction(() => pages.map((page) => store.hold(page, 1)));
  store.close();
  return dir;
}

const read = (dir: string) => lookInto(dir, [], (store) => store.read(0, 100 * MiB));

const compressible = { ...aPage({ ids: ['1', '2', '3'], pad: 9_000 }), kept: Uint32Array.of(0, 2) };
const random = { ...aPage({ ids: ['7'] }), body: randomBytes(3 * MiB) };
/** More than a row of parts takes, compressed as well. */
const large = { ...aPage({ ids: ['4'] }), body: Buffer.concat([random.body, Buffer.alloc(MiB)]) };

test('pages of a cache come back as they were, and most are stored in fewer bytes', () => {
  const pages = [compressible, large, random, { ...aPage({ ids: ['9'] }), onlySink: 'a' }];
  const dir = aCacheOf(pages);

  const back = read(dir);

  const facts = ({ context, items, kept, uids, onlySink }: NewPage) =>
    ({ context, items, kept, onlySink, uids: Buffer.from(uids) }) as const;
  expect(back.map(facts)).toEqual(pages.map(facts));
  const isSame = back.map(({ body }, i) => Buffer.from(pages[i]?.body ?? []).equals(body));
  expect(isSame).toEqual([true, true, true, true]);
  expect(findDamage(join(dir, databaseName), null)).toBeNull();

  const [first] = rowsIn(dir, 'SELECT length(body) + length(uids) AS n, bytes FROM page');
  expect(first?.bytes).toBe(compressible.body.length);
  expect(Number(first?.n)).toBeLessThan(compressible.body.length / 10);
  const parts = rowsIn(dir, 'SELECT sum(length(bytes)) AS n FROM page_part GROUP BY first');
  expect(Number(parts[0]?.n)).toBeLessThan(3.1 * MiB);
});

test.each([
  [
    'a byte of the compressed page',
    `body = CAST(substr(body, 1, 90) || X'FF' || substr(body, 92) AS BLOB)`,
  ],
  ['its end', 'body = substr(body, 1, length(body) - 1)'],
  ['all of it', `body = X'28B52FFD'`],
])('without %s a page is damaged', (_, change) => {
  const dir = aCacheOf([compressible]);
  const database = new DatabaseSync(join(dir, databaseName));
  database.exec(`UPDATE page SET ${change}`);
  database.close();

  expect(() => read(dir)).toThrow(expect.objectContaining({ code: 'state_damaged' }));
  expect(findDamage(join(dir, databaseName), null)).not.toBeNull();
});

test.each([
  ['stream', `stream = 'another'`],
  ['offset', 'first = first + 1'],
  ['number of records', 'count = count + 1'],
  ['only sink', `only_sink = 'a'`],
])('with another %s beside the compressed page, it is damaged', (_, change) => {
  const dir = aCacheOf([compressible]);
  const database = new DatabaseSync(join(dir, databaseName));
  database.exec(`UPDATE page SET ${change}`);
  database.close();

  expect(() => read(dir)).toThrow(expect.objectContaining({ code: 'state_damaged' }));
  expect(findDamage(join(dir, databaseName), null)).not.toBeNull();
});
