// Damage done to files: by hand, at offsets that a test can name, and at random.

import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { Store } from '../../src/hold/store.ts';
import { rowsIn } from './rows.ts';

/** SQLite's page, as schema.ts sets it. */
export const sqlitePage = 8_192;

/** Changes a file's bytes in place. */
export function overwrite(path: string, at: number, bytes: Uint8Array): void {
  const whole = readFileSync(path);
  whole.set(bytes, at);
  writeFileSync(path, whole);
}

/** Where a text first stands in a file. */
export function placeOf(path: string, text: string): number {
  const at = readFileSync(path).indexOf(text);
  if (at < 0) throw new Error(`${text} is not in ${path}`);
  return at;
}

/** The root page of a table, as an offset in the file. */
export function rootOf(dir: string, table: string): number {
  const [row] = rowsIn(dir, `SELECT rootpage FROM sqlite_master WHERE name = '${table}'`);
  return (Number(row?.rootpage) - 1) * sqlitePage;
}

/** Changes one bit in the uids of the held page that holds this offset. */
export function changeUids(dir: string, offset: number): void {
  const path = join(dir, 'sluice.db');
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  const { uids = new Uint8Array() } = store.read(offset, 1)[0] ?? {};
  store.close();
  const at = readFileSync(path).indexOf(uids.subarray(0, 32));
  overwrite(path, at + 5, Buffer.from([(uids[5] ?? 0) ^ 1]));
}

/** One damage to one file; offsets are fractions of its length. */
type Damage =
  | { readonly do: 'flip'; readonly at: number; readonly bit: number }
  | { readonly do: 'fill'; readonly at: number; readonly blocks: number; readonly with: number }
  | { readonly do: 'swap'; readonly at: number; readonly other: number }
  | { readonly do: 'cut'; readonly at: number }
  | { readonly do: 'remove' };

/** Not `double`, nearly all of which are next to 0. */
const share = fc.nat(999_999).map((n) => n / 1e6);
const oneDamage: fc.Arbitrary<Damage> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('flip' as const), at: share, bit: fc.nat(7) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('fill' as const),
      at: share,
      blocks: fc.integer({ min: 1, max: 40 }),
      with: fc.constantFrom(0, 0xff, 0x41),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('swap' as const), at: share, other: share }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut' as const), at: share }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const) }) },
);
const damagedFile = fc.oneof(
  { weight: 6, arbitrary: fc.constant('sluice.db') },
  { weight: 2, arbitrary: fc.constant('sluice.db-wal') },
  { weight: 1, arbitrary: fc.constant('delivered.json') },
);
const block = 512;

function apply(path: string, how: Damage): void {
  if (!existsSync(path)) return;
  const bytes = readFileSync(path);
  const { length } = bytes;
  const blockAt = (at: number) => {
    const start = Math.floor((at * length) / block) * block;
    return bytes.subarray(start, start + block);
  };
  switch (how.do) {
    case 'remove':
      rmSync(path);
      return;
    case 'cut':
      truncateSync(path, Math.floor(how.at * length));
      return;
    case 'flip': {
      const at = Math.floor(how.at * length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << how.bit);
      break;
    }
    case 'fill': {
      const { byteOffset } = blockAt(how.at);
      const start = byteOffset - bytes.byteOffset;
      bytes.fill(how.with, start, Math.min(length, start + how.blocks * block));
      break;
    }
    case 'swap': {
      const [one, other] = [blockAt(how.at), blockAt(how.other)];
      const copy = Buffer.from(one);
      one.set(other.subarray(0, one.length));
      other.set(copy.subarray(0, other.length));
      break;
    }
  }
  writeFileSync(path, bytes);
}

/** Damages to the files of a state directory, the database above all. */
export const damages = fc.array(fc.tuple(damagedFile, oneDamage), { minLength: 1, maxLength: 4 });

/** Does damages to a state directory. */
export function damage(dir: string, given: readonly (readonly [string, Damage])[]): void {
  for (const [name, how] of given) apply(join(dir, name), how);
}
