// What the spool of a state in Kafka writes to the log: no reply comes without its changes, and notes without news come with the next
// change, after ten minutes, or at the end. The server of a spool, without its thread, by a clock that stands still. And
// the changes of a repair.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MessageChannel, MessagePort } from 'node:worker_threads';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openDatabase, Statements } from '../../src/hold/database.ts';
import {
  addOutbox,
  drainOutbox,
  everyRow,
  noteDifferences,
  type OutboxRow,
} from '../../src/hold/outbox.ts';
import { repairDatabase } from '../../src/hold/repair.ts';
import { openSpool } from '../../src/hold/spool.ts';
import type { WorkerReplies } from '../../src/hold/spool-operations.ts';
import { SpoolServer } from '../../src/hold/spool-server.ts';
import { Store } from '../../src/hold/store.ts';
import { anAppend, aPage } from '../support/a-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { copied, sinks, streams, twoRuns } from './accounts.ts';
import { overwrite, rootOf, sqlitePage } from './damages.ts';

const minuteMs = 60_000;

/** A new state directory, whose changes are noted for the log. */
function aCache(): string {
  const dir = tempDir();
  const sync = 'none';
  new Store({ dir, sync, keepMs: 0 }).close();
  const database = openDatabase({ dir, sync });
  const statements = new Statements(database);
  addOutbox(statements);
  statements.clear();
  database.close();
  return dir;
}

/** A server of a new spool. `ask` resolves to the message that has the reply. */
function aServer() {
  const clock = { nowMs: 1_000_000 };
  vi.spyOn(performance, 'now').mockImplementation(() => clock.nowMs);
  onTestFinished(() => void vi.restoreAllMocks());
  const { port1: port, port2 } = new MessageChannel();
  const said: WorkerReplies[] = [];
  port.on('message', (message: WorkerReplies) => said.push(message));
  SpoolServer.open(
    { dir: aCache(), sync: 'none', keepMs: 0, sinks: ['a'], isCache: true, eager: true },
    port2,
  );
  let last = 0;
  const post = (op: string, ...args: readonly unknown[]) => {
    last += 1;
    port.postMessage([{ id: last, op, args }]);
    return last;
  };
  const replyTo = async (id: number) => {
    const found = () => said.find(({ answers }) => answers.some((answer) => answer.id === id));
    await waitUntil(() => found() !== undefined, { what: `the reply to ${id}` });
    return found() as WorkerReplies;
  };
  const ask = async (op: string, ...args: readonly unknown[]) => await replyTo(post(op, ...args));
  /** A note has no reply: resolves with the next message. */
  const note = async (polls: number) => {
    const facts = { state: 'waiting', caught_up_at: polls, next_poll_at: polls, polls };
    const before = said.length;
    post('note', 'stream', 'x', JSON.stringify(facts));
    await waitUntil(() => said.length > before, { what: 'the message after a note' });
    return tablesIn(said[before] as WorkerReplies);
  };
  return { clock, said, post, replyTo, ask, note };
}

const tablesIn = ({ changed }: WorkerReplies) => changed?.map(({ table }) => table);

test('a note without news goes to the log with the next change, after ten minutes, or at the end', async () => {
  const { clock, ask, note } = aServer();
  await ask('append', anAppend({ ids: ['1'] }));

  expect(await note(1)).toEqual(['note']);
  expect(await note(2)).toEqual([]);
  expect(tablesIn(await ask('append', anAppend({ ids: ['2'] })))).toContain('note');

  expect(await note(3)).toEqual([]);
  clock.nowMs += 10 * minuteMs;
  expect(tablesIn(await ask('trail', 'audit'))).toEqual([]);
  clock.nowMs += 1;
  expect(tablesIn(await ask('trail', 'audit'))).toEqual(['note']);

  expect(await note(4)).toEqual([]);
  expect(tablesIn(await ask('close'))).toContain('note');
});

test('a note has no reply, because no caller waits for it', async () => {
  const { said, post, ask } = aServer();

  const noted = post('note', 'stream', 'x', '{}');
  await ask('trail', 'audit');

  expect(said.flatMap(({ answers }) => answers.map(({ id }) => id))).not.toContain(noted);
});

test('rows for the log move to the main thread, and are not copied', async () => {
  const { ask } = aServer();
  const posted = vi.spyOn(MessagePort.prototype, 'postMessage');

  const { changed = [] } = await ask('append', anAppend({ ids: ['1'] }));

  const messages = posted.mock.calls.map(([message]) => message as Partial<WorkerReplies>);
  const left = messages.flatMap((message) => message.changed ?? []);
  expect(changed.map(({ table }) => table)).toEqual(expect.arrayContaining(['page', 'checkpoint']));
  expect(changed.filter(({ value }) => value?.length === 0)).toEqual([]);
  expect(left.map(({ value }) => value?.length)).toEqual(changed.map(() => 0));
});

test.each([
  ['waits for an append for 50 ms', 50, undefined],
  ['that goes to a log waits longer', 250, { commit: async () => {}, forgetBefore: () => {} }],
])('a position %s', async (_, ms, log) => {
  const settings = { sync: 'none', keepMs: 0, bytesMax: 2 ** 30, sinks: ['a'] } as const;
  const spool = await openSpool({ ...settings, dir: aCache(), ...(log && { log }) });
  onTestFinished(() => spool.close());
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });

  const stored = spool.acknowledge('a', { position: 1 });
  vi.advanceTimersByTime(ms - 1);
  const before = vi.getTimerCount();
  vi.advanceTimersByTime(1);

  expect([before, vi.getTimerCount()]).toEqual([1, 0]);
  await stored;
});

test('a reply waits until its changes can be read', async () => {
  const { said, post, replyTo, ask } = aServer();
  await ask('trail', 'audit');
  const before = said.length;
  const drain = vi.spyOn(Store.prototype, 'drain').mockImplementation(() => {
    throw new Error('the changes cannot be read');
  });
  const id = post('append', anAppend({ ids: ['1'] }));
  await waitUntil(() => drain.mock.calls.length > 2, { what: 'several attempts' });
  expect(said).toHaveLength(before);

  drain.mockRestore();

  expect(tablesIn(await replyTo(id))).toContain('page');
  await ask('close');
});

test('a spool whose work took more than a second is reported as slow from then on', async () => {
  const { clock, ask } = aServer();
  let takesMs = 1_000;
  const { append } = Store.prototype;
  vi.spyOn(Store.prototype, 'append').mockImplementation(function (this: Store, ...of) {
    clock.nowMs += takesMs;
    return append.apply(this, of);
  });

  const first = await ask('append', anAppend({ ids: ['1'] }));
  takesMs += 1;
  const second = await ask('append', anAppend({ ids: ['2'] }));
  const third = await ask('trail', 'audit');

  expect([first, second, third].map(({ isSlow }) => isSlow)).toEqual([undefined, true, true]);
  await ask('close');
});

test('a cache whose disk refuses all writes for half a minute ends, and one that recovers does not', async () => {
  const { clock, ask } = aServer();
  const append = async () => (await ask('append', anAppend({ ids: ['1'] }))).damage?.message;
  const broken = () => {
    vi.spyOn(Store.prototype, 'drain').mockReturnValue([]);
    return vi.spyOn(Store.prototype, 'transaction').mockImplementation(() => {
      throw Object.assign(new Error('disk I/O error'), { errcode: 778 });
    });
  };

  let disk = broken();
  const first = await append();
  clock.nowMs += 30_001;
  disk.mockRestore();
  const recovered = await append();
  disk = broken();
  const again = await append();
  clock.nowMs += 30_000;
  const late = await append();
  clock.nowMs += 1;
  const over = await append();
  disk.mockRestore();
  await ask('close');

  expect([first, recovered, again, late]).toEqual([undefined, undefined, undefined, undefined]);
  expect(over).toBe('writing to the state database: disk I/O error');
});

/** Two connections to a new cache: its own, and another one. */
function aStore() {
  const settings = { dir: aCache(), sync: 'none', keepMs: 0, isCache: true } as const;
  const [store, other] = [new Store(settings), new Store(settings)];
  store.drain();
  onTestFinished(() => {
    store.close();
    other.close();
  });
  const statements = new Statements(openDatabase({ dir: settings.dir, sync: 'none' }));
  return { store, other, statements };
}

const pagesIn = (rows: Iterable<OutboxRow>) => [...rows].filter(({ table }) => table === 'page');

test('a new page goes to the log as it is stored, without being read back', () => {
  const { store, statements } = aStore();
  store.retainFor(['a']);
  const small = { ...aPage({ ids: ['1', '2', '3'] }), kept: Uint32Array.of(0, 2) };
  const pages = [small, aPage({ ids: ['4'], pad: 3_000_000 }), { ...small, onlySink: 'a' }];
  const row = vi.spyOn(Statements.prototype, 'row');

  store.transaction(() => pages.map((page) => store.hold(page, 1)));
  const noted = store.drain();

  expect(row.mock.calls.some(([sql]) => /SELECT \*.* FROM page/.test(sql))).toBe(false);
  row.mockRestore();
  expect(pagesIn(noted)).toHaveLength(pages.length);
  expect(pagesIn(noted)).toEqual(pagesIn(everyRow(statements)));

  // A page that was drained is not kept.
  statements.run(`REPLACE INTO page SELECT first, count, bytes, held_at + 1, stream, context, items,
    only_sink, kept, uids, body, crc FROM page`);
  expect(pagesIn(store.drain())).toEqual(pagesIn(everyRow(statements)));
});

test('a new page that every sink has passed goes to the log as a deleted one', () => {
  const { store } = aStore();
  store.retainFor([]);

  store.transaction(() => {
    store.hold(aPage({ ids: ['1'] }), 1);
    store.prune(2);
  });

  expect(pagesIn(store.drain())).toEqual([{ table: 'page', key: [0], value: null }]);
});

test('a page of another connection goes to the log, and not one that failed at its offset', () => {
  const { store, other, statements } = aStore();
  const failing = () =>
    store.transaction(() => {
      store.hold(aPage({ ids: ['1'] }), 1);
      throw new Error('the disk is full');
    });
  expect(failing).toThrow('the disk is full');

  other.transaction(() => other.hold(aPage({ ids: ['2'] }), 1));

  const pages = pagesIn(store.drain());
  expect(pages).toHaveLength(1);
  expect(pages).toEqual(pagesIn(everyRow(statements)));
});

/** The rows that go to the log; `null` for a deleted one. */
function drained(statements: Statements) {
  return drainOutbox(statements, true).map(({ table, key, value }) => [table, key, value && 'row']);
}

test('a repaired cache notes what differs from before, and its identity', async () => {
  const { closed } = await twoRuns();
  const [dir, before] = [copied(closed.dir), copied(closed.dir)];
  const database = openDatabase({ dir, sync: 'none' });
  const statements = new Statements(database);
  database.exec(`DELETE FROM position WHERE sink = 'a'; UPDATE dead_letter SET reason = 'another';
    DELETE FROM page WHERE first = (SELECT min(first) FROM page)`);

  addOutbox(statements);
  noteDifferences(statements, join(before, 'sluice.db'));

  const rows = drained(statements);
  const identity = rows.filter(([table]) => table === 'meta');
  expect(identity.length).toBeGreaterThan(1);
  expect(rows.filter(([table]) => table !== 'meta')).toEqual([
    ['position', ['a'], null],
    ['dead_letter', [1], 'row'],
  ]);
  statements.clear();
  database.close();
});

test('a cache whose former rows cannot be read notes them all', async () => {
  const { closed } = await twoRuns();
  const [dir, before] = [copied(closed.dir), join(tempDir(), 'sluice.db')];
  writeFileSync(before, 'this is no database'.repeat(1_000));
  const database = openDatabase({ dir, sync: 'none' });
  const statements = new Statements(database);

  addOutbox(statements);
  noteDifferences(statements, before);

  const all = Array.from(everyRow(statements), ({ table, key }) => [table, key, 'row']);
  expect(new Set(drained(statements).map(String))).toEqual(new Set(all.map(String)));
  statements.clear();
  database.close();
});

test('a repaired cache notes what was lost, and then its later changes', async () => {
  const { closed } = await twoRuns();
  const dir = copied(closed.dir);
  overwrite(join(dir, 'sluice.db'), rootOf(dir, 'trail'), Buffer.alloc(sqlitePage));

  const repaired = repairDatabase({
    ...{ dir, sync: 'normal', sinks, streams, isCache: true, report: () => null },
  });

  expect(repaired).not.toBeNull();
  const database = openDatabase({ dir, sync: 'none' });
  const statements = new Statements(database);
  expect(drained(statements)).toContainEqual(['trail', [1], null]);
  database.exec("UPDATE position SET next = next + 1 WHERE sink = 'b'");
  expect(drained(statements)).toEqual([['position', ['b'], 'row']]);
  statements.clear();
  database.close();
});
