// A power cut as the disk shows it afterwards: the log ends at any byte, with any bytes after it, or the log was being
// moved into the database and only some blocks had arrived. The database is always in the state after one of the
// commits, and after the last one whose bytes were all there; never half a page. SLUICE_SPOOL_RUNS and
// SLUICE_SPOOL_SEED set more runs.

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findDamage } from '../../src/hold/damage.ts';
import { Store } from '../../src/hold/store.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

const commits = 24;
const many = {
  numRuns: Number(process.env.SLUICE_SPOOL_RUNS ?? 30),
  seed: Number(process.env.SLUICE_SPOOL_SEED ?? 1),
};

/** All that a store says, in short. */
function stateOf(store: Store): string {
  const pages = store.read(0, 1e9).map(({ first, count, body }) => [first, count, body.length]);
  const { checkpoint, identities } = store.streams.recall('audit');
  return JSON.stringify([
    pages,
    checkpoint,
    identities.map(({ bytes }) => bytes[0]),
    store.progress('a'),
    store.end,
  ]);
}

/** A database, the log of commits on it, and what is to be found after each. */
interface Written {
  readonly database: Buffer;
  readonly log: Buffer;
  /** After the first n commits: the log's length and the state. */
  readonly steps: readonly { readonly length: number; readonly state: string }[];
  /** The database with the whole log moved into it. */
  readonly after: Buffer;
}

function written(): Written {
  const dir = tempDir();
  const path = join(dir, 'sluice.db');
  const store = new Store({ dir, sync: 'full', keepMs: 0 });
  store.retainFor(['a']);
  store.transaction(() => store.append(anAppend({ ids: ['before'], pad: 40_000 }), 0));
  store.emptyLog();
  const database = readFileSync(path);
  const steps = [{ length: 0, state: stateOf(store) }];
  for (let n = 1; n <= commits; n += 1) {
    store.transaction(() => {
      const ids = Array.from({ length: (n % 4) + 1 }, (_, i) => `${n} ${i}`);
      const identities = new Uint8Array(20).fill(n);
      store.append({ ...anAppend({ ids, pad: (n * 7_919) % 30_000 }), identities }, n);
      if (n % 3 === 0) store.acknowledge('a', { position: n, mark: { n } }, n);
      // As the spool's thread does it: what is freed is written over by the next ones, within the same log.
      store.prune(n);
    });
    steps.push({ length: statSync(`${path}-wal`).size, state: stateOf(store) });
  }
  const log = readFileSync(`${path}-wal`);
  store.emptyLog();
  const after = readFileSync(path);
  store.close();
  return { database, log, steps, after };
}

/** What is found when these are the files. */
function found(database: Uint8Array, log: Uint8Array): string {
  const dir = join(tempDir(), 'state');
  mkdirSync(dir);
  const path = join(dir, 'sluice.db');
  writeFileSync(path, database);
  writeFileSync(`${path}-wal`, log);
  try {
    expect(findDamage(path, null)).toBeNull();
    const store = new Store({ dir, sync: 'full', keepMs: 0, readOnly: true });
    const state = stateOf(store);
    store.close();
    return state;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const share = fc.nat(1_000_000).map((n) => n / 1e6);

test('store finds the last commit that is whole, wherever the log is cut', () => {
  const { database, log, steps } = written();
  const lengths = steps.map(({ length }) => length);
  const cut = fc.oneof(
    share.map((at) => Math.floor(at * log.length)),
    fc.tuple(fc.constantFrom(...lengths), fc.integer({ min: -2, max: 2 })).map(([a, b]) => a + b),
  );
  const behind = fc.oneof(
    fc.constant(Buffer.of()),
    fc.nat(50_000).map((length) => Buffer.alloc(length)),
    fc.uint8Array({ minLength: 1, maxLength: 40_000 }),
    fc.constant('as it was' as const),
  );

  fc.assert(
    fc.property(cut, behind, (at, rest) => {
      const head = log.subarray(0, Math.max(0, at));
      // Bytes that never arrived, with the later ones there.
      const late = Buffer.from(log.subarray(head.length));
      late.fill(0x5a, 0, Math.min(700, late.length));
      const tail = rest === 'as it was' ? late : rest;
      const cutLog = Buffer.concat([head, tail]);
      let same = head.length;
      while (same < log.length && cutLog[same] === log[same]) same += 1;
      const whole = steps.filter(({ length }) => length <= same).at(-1);
      expect(found(database, cutLog)).toBe(whole?.state);
    }),
    many,
  );
});

test('store finds every commit when a move of the log into the database was cut short', () => {
  const { database, log, steps, after } = written();
  const block = 4_096;

  fc.assert(
    fc.property(fc.infiniteStream(fc.boolean()), share, (arrived, length) => {
      const grown =
        database.length + Math.floor((length * (after.length - database.length)) / block) * block;
      const mixed = Buffer.alloc(grown);
      database.copy(mixed);
      for (let at = 0; at < grown; at += block) {
        if (arrived.next().value) after.copy(mixed, at, at, Math.min(at + block, grown));
      }
      expect(found(mixed, log)).toBe(steps.at(-1)?.state);
    }),
    { ...many, numRuns: Math.ceil(many.numRuns / 2) },
  );
});
