// A state database taken apart into those of several shards, and put together from them. What must
// stay true: what a sink has not passed it is still given, in the order of each stream, and nothing
// that it has passed; a stream knows what it knew; and numbers that a far side may remember from
// before are given to no other event.

import { join } from 'node:path';
import type { Offset } from '../contracts/event.ts';
import type { Epoch } from '../contracts/numbering.ts';
import { type HeldPage, type NewPage, uidBytes } from '../contracts/spool.ts';
import { openDatabase } from './database.ts';
import { epochsFrom, nextEpoch } from './epochs.ts';
import { heldPage, wholeRow, writePage } from './held-page.ts';
import { notesOf, writeNote } from './notes.ts';
import { databaseName } from './schema.ts';
import { type Row, Statements } from './statements.ts';

/** Tables of which each row is of one stream, by the column that says which. */
const ofStreams = {
  page: 'stream',
  checkpoint: 'stream',
  identities: 'stream',
  trail: 'stream',
  entity: 'stream',
  parent: 'stream',
} as const;
/** Notes of the same. */
const notesOfStreams = ['stream', 'reached'];

/** Whether a sink writes to where it wrote before, so that what its far side was marked with still holds. */
type KeepsMark = (sink: string) => boolean;

/**
 * Copies one database into a directory, with what `isOurs` says of the names of streams. The lock of the
 * first is the caller's. Numbers stay as they are; between pages some are nobody's then.
 */
export function takePart(
  from: string,
  to: string,
  {
    isOurs,
    keepsMark,
  }: { readonly isOurs: (stream: string) => boolean; readonly keepsMark: KeepsMark },
): void {
  const whole = openDatabase({ dir: from, sync: 'full' });
  whole.prepare('VACUUM INTO ?').run(join(to, databaseName));
  whole.close();
  within(to, (statements) => {
    for (const [table, column] of Object.entries(ofStreams)) {
      for (const { name } of statements.rows(`SELECT DISTINCT ${column} AS name FROM ${table}`)) {
        if (isOurs(String(name))) continue;
        statements.run(`DELETE FROM ${table} WHERE ${column} = ?`, String(name));
      }
    }
    statements.run('DELETE FROM page_part WHERE first NOT IN (SELECT first FROM page)');
    for (const { kind, name } of statements.rows('SELECT kind, name FROM note')) {
      const stays = notesOfStreams.includes(String(kind))
        ? isOurs(String(name))
        : kind !== 'cluster';
      if (!stays) {
        statements.run('DELETE FROM note WHERE kind = ? AND name = ?', String(kind), String(name));
      }
    }
    for (const { id, context } of statements.rows('SELECT id, context FROM dead_letter')) {
      const { stream } = JSON.parse(String(context)) as { readonly stream: string };
      if (!isOurs(stream)) statements.run('DELETE FROM dead_letter WHERE id = ?', Number(id));
    }
    for (const { id, name } of statements.rows('SELECT id, name FROM request')) {
      if (!isOurs(String(name))) statements.run('DELETE FROM request WHERE id = ?', Number(id));
    }
    // A sink stands before the first page that it has not passed: what is before that is nobody's here.
    statements.run(
      `UPDATE position SET next = max(next, coalesce(
         (SELECT min(first) FROM page WHERE first + count > position.next),
         (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'end')))`,
    );
    for (const { sink } of statements.rows('SELECT sink FROM position')) {
      if (keepsMark(String(sink))) continue;
      statements.run('UPDATE position SET mark = NULL WHERE sink = ?', String(sink));
    }
  });
}

/** How a state is put together. */
export interface Joining {
  /** Whoever has a position. */
  readonly sinks: readonly string[];
  readonly keepsMark: KeepsMark;
  /** Those of them that have what they have read up to in a checkpoint of their name too. */
  readonly readers: readonly string[];
  readonly now: number;
}

/** Puts the databases of several directories together as one in another. */
export function joinParts(parts: readonly string[], to: string, joining: Joining): void {
  const { sinks, keepsMark, readers, now } = joining;
  within(to, (into) => {
    const numbers = parts.map((dir) => within(dir, numbersOf));
    const begin = beginTogether(into, numbers, now);
    let end = begin;
    for (const part of parts) {
      within(part, (from) => {
        end = addPages(from, into, { sinks, end, now });
        addRows(from, into, begin);
        addPositions(from, into, begin);
      });
    }
    into.run("UPDATE meta SET value = ? WHERE key = 'end'", String(end));
    for (const { sink } of into.rows('SELECT sink FROM position')) {
      if (!sinks.includes(String(sink)))
        into.run('DELETE FROM position WHERE sink = ?', String(sink));
      else if (!keepsMark(String(sink))) {
        into.run('UPDATE position SET mark = NULL WHERE sink = ?', String(sink));
      }
    }
    // What they have looked at has other numbers now; what is held they look at again.
    for (const name of readers) {
      into.run(
        "UPDATE checkpoint SET body = json_set(body, '$.next', ?) WHERE stream = ?",
        begin,
        name,
      );
    }
  });
}

interface Numbers {
  readonly spool: string;
  readonly epochs: readonly Epoch[];
  readonly end: Offset;
}

function numbersOf(statements: Statements): Numbers {
  const meta = (key: string) =>
    statements.row('SELECT value FROM meta WHERE key = ?', key)?.value as string | undefined;
  return {
    spool: meta('spool_id') ?? '',
    epochs: epochsFrom(meta('epochs') ?? null),
    end: Number(meta('end') ?? 0),
  };
}

/** Goes on behind all numbers, under the name of the state that all parts were taken from, if they were. */
function beginTogether(into: Statements, numbers: readonly Numbers[], now: number): Offset {
  const [first, ...others] = numbers;
  if (first === undefined || others.some(({ spool }) => spool !== first.spool)) return 0;
  const shared = first.epochs.filter(
    ({ id, until }, at) =>
      until !== null &&
      others.every(({ epochs }) => epochs[at]?.id === id && epochs[at]?.until === until),
  );
  const begin = Math.max(...numbers.map(({ end }) => end));
  into.run("UPDATE meta SET value = ? WHERE key = 'spool_id'", first.spool);
  const epochs = JSON.stringify(nextEpoch(shared, shared.at(-1)?.until ?? 0, now));
  into.run("INSERT OR REPLACE INTO meta VALUES ('epochs', ?)", epochs);
  return begin;
}

/** What some sink has not passed: for all where none has, else for each that has not. */
function addPages(
  from: Statements,
  into: Statements,
  {
    sinks,
    end,
    now,
  }: { readonly sinks: readonly string[]; readonly end: Offset; readonly now: number },
): Offset {
  const next = new Map(
    from.rows('SELECT sink, next FROM position').map((row) => [String(row.sink), Number(row.next)]),
  );
  let at = end;
  const add = (page: NewPage) => {
    writePage((sql, ...values) => into.run(sql, ...values), page, at, now);
    at += page.uids.length / uidBytes;
  };
  for (const row of from.each('SELECT * FROM page ORDER BY first')) {
    const page = heldPage(wholeRow(row, (sql, ...of) => from.each(sql, ...of)));
    const { first, count, onlySink } = page;
    const wanting = (onlySink ? sinks.filter((sink) => sink === onlySink) : sinks).filter(
      (sink) => (next.get(sink) ?? 0) < first + count,
    );
    if (wanting.length === 0) continue;
    const isForAll = sinks.every((sink) => (next.get(sink) ?? 0) <= first);
    if (isForAll || onlySink === '') add(page);
    else {
      for (const sink of wanting) {
        add({ ...restOf(page, Math.max(0, (next.get(sink) ?? 0) - first)), onlySink: sink });
      }
    }
  }
  return at;
}

/** A page without the first of its events. */
function restOf({ kept, uids, count, ...page }: HeldPage, passed: number): NewPage {
  const all = kept ?? Uint32Array.from({ length: count }, (_, at) => at);
  return {
    ...page,
    kept: passed === 0 ? kept : all.slice(passed),
    uids: uids.subarray(passed * uidBytes),
  };
}

/** All but pages and positions; `begin` is where the sinks stand, who have all before it. */
function addRows(from: Statements, into: Statements, begin: Offset): void {
  const copy = (table: string, without: readonly string[] = []) => {
    for (const row of from.each(`SELECT * FROM ${table}`)) add(into, table, row, without);
  };
  copy('checkpoint');
  copy('identities', ['block']);
  copy('trail');
  copy('entity');
  copy('parent');
  copy('dead_letter', ['id']);
  copy('request', ['id']);
  const passed = Number(from.row('SELECT min(next) AS n FROM position')?.n ?? 0);
  for (const { kind, name, facts, at } of from.rows('SELECT kind, name, facts, at FROM note')) {
    const note = { kind: String(kind), name: String(name), now: Number(at) };
    const before = notesOf(into, note.kind).get(note.name) ?? null;
    const noted = notedIn(note.kind, JSON.parse(String(facts)) as Noted, { passed, begin, before });
    if (noted !== null) writeNote(into, { ...note, facts: JSON.stringify(noted) });
  }
}

/** Every sink begins with what is held; of marks the oldest, behind which the others are. */
function addPositions(from: Statements, into: Statements, begin: Offset): void {
  for (const row of from.each('SELECT sink, mark, updated_at FROM position')) {
    into.run(
      `INSERT INTO position (sink, next, mark, updated_at) VALUES (?1, ?2, ?3, ?4)
       ON CONFLICT (sink) DO UPDATE SET updated_at = min(updated_at, ?4),
         mark = CASE WHEN ?4 < updated_at THEN ?3 ELSE mark END`,
      ...[String(row.sink), begin, row.mark as string | null, Number(row.updated_at)],
    );
  }
}

/** The facts of a note, as receipts.ts writes them. */
interface Noted {
  readonly at?: number;
  readonly first?: Offset;
  readonly count?: number;
  readonly moments?: readonly { readonly at: number; readonly end: Offset }[];
}

/** A note among the numbers of the whole; null: it says nothing there. */
function notedIn(
  kind: string,
  noted: Noted,
  {
    passed,
    begin,
    before,
  }: { readonly passed: Offset; readonly begin: Offset; readonly before: Noted | null },
): Noted | null {
  switch (kind) {
    case 'cluster':
      return null;
    case 'reached':
      // What every sink has is behind all of them. A moment that is left out makes receipts older, and never wrong.
      return {
        moments: (noted.moments ?? [])
          .filter(({ end }) => end <= passed)
          .map(({ at }) => ({ at, end: begin }))
          .slice(-1),
      };
    case 'begun':
      return {
        at: Math.max(noted.at ?? 0, before?.at ?? 0),
        first: (noted.first ?? 0) + (before?.first ?? 0) === 0 ? 0 : begin,
      };
    case 'dropped':
      return { count: (noted.count ?? 0) + (before?.count ?? 0) };
    default:
      return noted;
  }
}

function add(into: Statements, table: string, row: Row, without: readonly string[]): void {
  const columns = Object.keys(row).filter((column) => !without.includes(column));
  const marks = columns.map(() => '?').join(', ');
  into.run(
    `INSERT OR REPLACE INTO ${table} (${columns.join(', ')}) VALUES (${marks})`,
    ...columns.map((column) => row[column] as string),
  );
}

function within<T>(dir: string, work: (statements: Statements) => T): T {
  const database = openDatabase({ dir, sync: 'full' });
  const statements = new Statements(database);
  try {
    statements.run('BEGIN');
    const done = work(statements);
    statements.run('COMMIT');
    return done;
  } finally {
    statements.clear();
    database.close();
  }
}
