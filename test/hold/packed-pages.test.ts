// The body of a page is stored compressed if that is smaller: it comes back byte for byte, also to processes that only read
// and after a repair, and bytes that differ from those written are damage.

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
import { repair } from './accounts.ts';
import { rowsIn } from './rows.ts';

const MiB = 1024 ** 2;

/** A closed state directory with these pages. */
function aStateOf(pages: readonly NewPage[]): string {
  const dir = tempDir();
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  store.retainFor(['a']);
  store.transaction(() => pages.map((page) => store.hold(page, 1)));
  store.close();
  return dir;
}

const read = (dir: string) => lookInto(dir, [], (store) => store.read(0, 100 * MiB));

const small = aPage({ ids: ['1'] });
const compressible = { ...aPage({ ids: ['2', '3', '4'], pad: 9_000 }), kept: Uint32Array.of(0, 2) };
const random = { ...aPage({ ids: ['5'] }), body: randomBytes(20_000) };
/** Its compressed form takes more than one row of parts. */
const inParts = {
  ...aPage({ ids: ['6'] }),
  body: Buffer.concat([randomBytes(3 * MiB), Buffer.alloc(MiB)]),
};
const large = { ...aPage({ ids: ['7'] }), body: Buffer.alloc(5 * MiB) };

test('pages come back as they were, and compressible ones are stored in fewer bytes', () => {
  const pages = [small, compressible, random, inParts, large];
  const dir = aStateOf(pages);

  const back = read(dir);

  const facts = ({ context, items, kept, uids }: NewPage) =>
    ({ context, items, kept, uids: Buffer.from(uids) }) as const;
  expect(back.map(facts)).toEqual(pages.map(facts));
  const isSame = back.map(({ body }, i) => Buffer.from(pages[i]?.body ?? []).equals(body));
  expect(isSame).toEqual(pages.map(() => true));
  expect(findDamage(join(dir, databaseName), null)).toBeNull();

  const lengths = rowsIn(dir, 'SELECT length(body) AS n, bytes FROM page ORDER BY first');
  expect(lengths.map(({ bytes }) => bytes)).toEqual(pages.map(({ body }) => body.length));
  expect(lengths[0]?.n).toBe(small.body.length);
  expect(Number(lengths[1]?.n)).toBeLessThan(compressible.body.length / 10);
  expect(lengths[2]?.n).toBe(random.body.length);
  const parts = rowsIn(dir, 'SELECT sum(length(bytes)) AS n FROM page_part GROUP BY first');
  expect(Number(parts[0]?.n)).toBeLessThan(3.1 * MiB);
  expect(parts[1]?.n).toBe(large.body.length);
});

test.each([
  ['a changed byte', `body = CAST(substr(body, 1, 90) || X'FF' || substr(body, 92) AS BLOB)`],
  ['a missing end', 'body = substr(body, 1, length(body) - 1)'],
  ['nothing but its header', `body = X'28B52FFD'`],
])('a compressed body with %s is damage, which costs its page alone', (_, change) => {
  const dir = aStateOf([small, compressible, random]);
  const database = new DatabaseSync(join(dir, databaseName));
  database.exec(`UPDATE page SET ${change} WHERE first = 1`);
  database.close();

  expect(() => read(dir)).toThrow(expect.objectContaining({ code: 'state_damaged' }));
  expect(findDamage(join(dir, databaseName), null)).toContain('the page at event 1');

  repair(dir);
  const bodies = read(dir).map(({ body }) => Buffer.from(body));
  expect(bodies[0]).toEqual(Buffer.from(small.body));
  expect(bodies[1]).toEqual(random.body);
});

test('a compressed page outlives damage elsewhere', () => {
  const dir = aStateOf([small, compressible, inParts]);
  const database = new DatabaseSync(join(dir, databaseName));
  database.exec(`UPDATE page SET body = X'00' WHERE first = 0`);
  database.close();

  repair(dir);

  const bodies = read(dir).map(({ body }) => Buffer.from(body));
  expect(bodies[0]).toEqual(compressible.body);
  expect(bodies[1]?.equals(inParts.body)).toBe(true);
});
