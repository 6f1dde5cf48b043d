// Builds a state database from others: from a part of one, or from several parts. Invariants: the
// others stay unchanged; the data of a stream comes from one of them; offsets, identity blocks and
// row ids are assigned again, with every reference to them; and the new database has its own
// identity, so that its offsets are never confused with another database's.

import type { SQLInputValue } from 'node:sqlite';
import { type Json, type Offset, reachOf } from '../contracts/index.ts';
import { openDatabase, type Row, Statements, storeError } from './database.ts';
import { epochsFrom } from './epochs.ts';
import { type KnownSink, KnownSinks } from './known-sinks.ts';
import { PairRows } from './pair-rows.ts';
import { pairBody, pairStateOf } from './pair-state.ts';
import { readReached } from './reached.ts';
import { momentsOf } from './receipts.ts';
import { joinKnown, keptSinks, positionsOfKept } from './regroup-known.ts';
import { type PagesOf, type Renumbered, regroupPages, type Takes } from './regroup-pages.ts';
import { parsedObject } from './requests.ts';
import { settledIn, settledKind } from './settled.ts';
import { parsedOrText, Streams } from './streams.ts';

/** A database that the new one is built from. The caller holds its lock. */
export interface Origin {
  readonly dir: string;
  /** Whether a stream's data comes from here. */
  readonly keeps: (stream: string) => boolean;
  /** Whether the pages stored for sinks of a stream come from here. */
  readonly sends: (stream: string) => boolean;
}

/** The request for a new database. */
export interface Regrouping {
  readonly from: readonly Origin[];
  /** The target directory, which has no database. */
  readonly to: string;
  /** The sinks of the config, and other readers of pages. */
  readonly sinks: ReadonlyMap<string, Takes>;
  /** A sink's mark, from its marks in all databases; null: none. */
  readonly markOf: (sink: string, marks: readonly Json[]) => Json | null;
  /** Adds `by` to the identity block numbers in a stream's checkpoint. */
  readonly checkpoint: (stream: string, checkpoint: Json, by: number) => Json;
  /** Whether the counts of a sink, which belong to no stream, are copied. */
  readonly counts: boolean;
}

interface Opened extends Origin, PagesOf {
  /** Added to its block numbers. */
  readonly blocksBefore: number;
  /** Its register of sinks. */
  readonly known: ReadonlyMap<string, KnownSink>;
}

/**
 * Builds the database. Returns the number of streams and pages. Throws `state_damaged` or
 * `disk_full`.
 */
export function regroup(regrouping: Regrouping): {
  readonly streams: number;
  readonly pages: number;
} {
  const closing = new DisposableStack();
  try {
    const open = (dir: string, sync: 'full' | 'none') => {
      const database = closing.adopt(openDatabase({ dir, sync }), (one) => one.close());
      return closing.adopt(new Statements(database), (one) => one.clear());
    };
    let blocksBefore = 0;
    const origins = regrouping.from.map((origin): Opened => {
      const statements = open(origin.dir, 'full');
      const known = new KnownSinks(statements).all();
      const positions = positionsIn(origin, statements, regrouping);
      const opened = { ...origin, statements, positions, known, blocksBefore };
      blocksBefore += new Streams(statements).nextBlock - 1;
      return opened;
    });
    const to = open(regrouping.to, 'none');
    to.run('BEGIN');
    fill(to, origins, regrouping);
    // An open walk would mistake lower numbers for earlier blocks.
    new Streams(to).reserveBlocks(blocksBefore);
    const count = (table: string) => Number(to.row(`SELECT count(*) AS n FROM ${table}`)?.n);
    const made = { streams: count('checkpoint'), pages: count('page') };
    to.run('COMMIT');
    return made;
  } catch (error) {
    throw storeError(error, 'making a state database of another');
  } finally {
    closing.dispose();
  }
}

function fill(to: Statements, origins: readonly Opened[], regrouping: Regrouping): void {
  const kept = keptSinks(origins, regrouping.sinks);
  const all = origins.map((one) => ({ ...one, positions: positionsOfKept(one, kept) }));
  const sinks = sinksOf(all, kept, regrouping);
  const numbers = regroupPages(all, to, sinks);
  to.run("UPDATE meta SET value = ? WHERE key = 'end'", String(numbers.end));
  const marks = marksIn(all);
  for (const origin of all) {
    copyStreams(origin, to, regrouping);
    copyRequests(origin, to, { regrouping, deadLetters: copyDeadLetters(origin, to, numbers) });
    copyAside(origin, to);
    copyPairs(origin, to);
    copyNotes(origin, to, { numbers, counts: regrouping.counts });
    copyPositions(origin, to, { numbers, sinks, regrouping, marks });
  }
  // A sink that has accepted nothing has no position in the others.
  for (const sink of kept) {
    const next = numbers.positions.get(sink) ?? numbers.end;
    to.run('INSERT OR IGNORE INTO position (sink, next, updated_at) VALUES (?, ?, 0)', sink, next);
  }
  joinKnown(all, new KnownSinks(to), { numbers, counts: regrouping.counts });
}

/**
 * From a single database all its sinks; from several, those of the config and those whose pages are
 * retained.
 */
function sinksOf(
  [only, ...others]: readonly Opened[],
  kept: ReadonlySet<string>,
  { sinks }: Regrouping,
): ReadonlyMap<string, Takes> {
  const known = only === undefined || others.length > 0 ? kept : only.positions.keys();
  return new Map([...Array.from(known, (name) => [name, 'events'] as const), ...sinks]);
}

/** Each sink's position, including the one noted after the last commit of a killed process. */
function positionsIn({ dir, keeps }: Origin, statements: Statements, { sinks }: Regrouping) {
  const meta = (key: string) => statements.row('SELECT value FROM meta WHERE key = ?', key)?.value;
  const epochs = meta('epochs');
  const numbering = {
    spool: String(meta('spool_id')),
    epochs: epochsFrom(typeof epochs === 'string' ? epochs : null),
  };
  const reached = readReached(dir);
  const positions = new Map<string, Offset>();
  for (const { sink, next } of statements.rows('SELECT sink, next FROM position')) {
    const place = reached.get(String(sink));
    const further = place === undefined ? 0 : reachOf(place, numbering).position;
    positions.set(String(sink), Math.max(Number(next), further));
  }
  // A reader that is not a sink reads for streams, and nothing where they are not.
  const readers = [...sinks].flatMap(([name, takes]) => (takes === 'all' ? [name] : []));
  for (const name of [...readers, ...positions.keys()]) {
    if (name.startsWith('#') && !(keeps(name) && positions.has(name)))
      positions.set(name, Number.POSITIVE_INFINITY);
  }
  return positions;
}

/** By table: columns, and the row order where it matters. */
const ofStreams = {
  checkpoint: '* FROM checkpoint',
  identities: '* FROM identities ORDER BY block',
  // Without the row number, which another database may have used too.
  trail: 'stream, at, cursor FROM trail ORDER BY rowid',
  entity: '* FROM entity',
  parent: '* FROM parent ORDER BY rowid',
};

function copyStreams(origin: Opened, to: Statements, { checkpoint }: Regrouping): void {
  const { statements, keeps, blocksBefore } = origin;
  const moved = (stream: unknown, text: unknown) =>
    typeof text === 'string'
      ? JSON.stringify(checkpoint(String(stream), parsedOrText(text), blocksBefore))
      : null;
  for (const [table, columns] of Object.entries(ofStreams)) {
    for (const row of statements.each(`SELECT ${columns}`)) {
      // A block without a stream only reserves a number.
      if (row.stream === '' || !keeps(String(row.stream))) continue;
      if (table === 'checkpoint') row.body = moved(row.stream, row.body);
      if (table === 'parent') row.checkpoint = moved(row.list, row.checkpoint);
      if (table === 'identities') row.block = Number(row.block) + blocksBefore;
      insert(to, table, row);
    }
  }
}

/** Returns their new row ids. */
function copyDeadLetters(
  origin: Opened,
  to: Statements,
  numbers: Renumbered,
): ReadonlyMap<number, number> {
  const { sends, statements } = origin;
  const moved = new Map<number, number>();
  for (const { id, ...row } of statements.each('SELECT * FROM dead_letter ORDER BY id')) {
    if (!sends(String(parsedObject(row.context)?.stream))) continue;
    const offset = Math.max(0, numbers.after(origin, Number(row.offset) + 1) - 1);
    moved.set(Number(id), insert(to, 'dead_letter', { ...row, offset }));
  }
  return moved;
}

/** Set-aside events in their order. */
function copyAside({ sends, statements }: Opened, to: Statements): void {
  // A database of an older version has no such table.
  const table = "SELECT 1 AS n FROM sqlite_master WHERE name = 'set_aside'";
  if (statements.row(table) === undefined) return;
  for (const { id: _, ...row } of statements.each('SELECT * FROM set_aside ORDER BY id')) {
    if (sends(String(parsedObject(row.context)?.stream))) insert(to, 'set_aside', row);
  }
}

/** Pairs with their records; both sides of a pair are in one database. */
function copyPairs({ keeps, statements, blocksBefore }: Opened, to: Statements): void {
  if (!new PairRows(statements).isThere) return;
  for (const row of statements.rows('SELECT id, name, body FROM pair')) {
    const state = pairStateOf(row);
    if (state === null || !state.plan.streams.old.some(keeps)) continue;
    for (const counts of Object.values(state.streams)) {
      if (counts.before !== null) counts.before += blocksBefore;
    }
    const pair = insert(to, 'pair', { name: row.name, body: pairBody(state) });
    const records = 'SELECT * FROM pair_record WHERE pair = ? ORDER BY id';
    /** New row ids of records with a counterpart. */
    const paired = new Map<number, { readonly moved: number; readonly counterpart: number }>();
    for (const { id, ...record } of statements.each(records, Number(row.id))) {
      const moved = insert(to, 'pair_record', { ...record, pair });
      const { counterpart } = record;
      if (typeof counterpart === 'number') paired.set(Number(id), { moved, counterpart });
      const waiting = statements.row('SELECT * FROM pair_waiting WHERE id = ?', Number(id));
      if (waiting !== undefined) insert(to, 'pair_waiting', { ...waiting, id: moved, pair });
    }
    for (const { moved, counterpart } of paired.values()) {
      const renumber = 'UPDATE pair_record SET counterpart = ? WHERE id = ?';
      to.run(renumber, paired.get(counterpart)?.moved ?? null, moved);
    }
  }
}

/** Requests about a stream or source follow it; those about a sink follow what is sent to it. */
function copyRequests(
  { keeps, statements }: Opened,
  to: Statements,
  {
    regrouping: { sinks },
    deadLetters,
  }: { readonly regrouping: Regrouping; readonly deadLetters: ReadonlyMap<number, number> },
): void {
  for (const { id: _, ...row } of statements.each('SELECT * FROM request ORDER BY id')) {
    const name = String(row.name);
    if (!sinks.has(name) && !keeps(name)) continue;
    const wish = parsedObject(row.wish);
    if (wish !== null && Array.isArray(wish.letters)) {
      const named = (wish.letters as [number, string][]).flatMap(([id, uid]) => {
        const now = deadLetters.get(id);
        return now === undefined ? [] : [[now, uid]];
      });
      row.wish = JSON.stringify({ ...wish, letters: named });
    }
    insert(to, 'request', row);
  }
}

/**
 * The ownership of a state in Kafka does not apply to another state; the register of sinks is
 * joined (`joinKnown`).
 */
function copyNotes(
  origin: Opened,
  to: Statements,
  { numbers, counts }: { readonly numbers: Renumbered; readonly counts: boolean },
): void {
  const { keeps, statements } = origin;
  const after = (number: unknown) => numbers.after(origin, Number(number));
  const put = (row: Row, facts: Json) =>
    insert(to, 'note', { ...row, facts: JSON.stringify(facts) }, 'REPLACE');
  for (const row of statements.rows(
    "SELECT * FROM note WHERE kind NOT IN ('cluster', 'known_sink')",
  )) {
    const { kind, name } = row;
    const facts = parsedObject(row.facts);
    const isOfStream = kind === 'stream' || kind === 'reached';
    if (facts === null || (isOfStream && !keeps(String(name)))) continue;
    const there = to.row(
      'SELECT facts, at FROM note WHERE kind = ? AND name = ?',
      String(kind),
      String(name),
    );
    const before = parsedObject(there?.facts);
    if (kind === 'reached') {
      put(row, { moments: momentsOf(facts).map(({ at, end }) => ({ at, end: after(end) })) });
    } else if (kind === 'begun') {
      // From several databases, the value that holds for all.
      if (Number(before?.at ?? 0) <= Number(facts.at)) {
        put(row, { at: Number(facts.at), first: after(facts.first) });
      }
    } else if (kind === 'dropped') {
      if (counts) put(row, { count: Number(facts.count) + Number(before?.count ?? 0) });
    } else if (kind === settledKind) {
      const moved = settledIn(facts).map((one) => ({ ...one, offset: after(one.offset + 1) - 1 }));
      put(row, { events: [...settledIn(before), ...moved] });
    } else if (Number(there?.at ?? 0) <= Number(row.at)) put(row, facts);
  }
}

/** The marks of each sink, in the order of the databases. */
function marksIn(origins: readonly Opened[]): ReadonlyMap<string, readonly Json[]> {
  const marks = new Map<string, Json[]>();
  for (const { statements } of origins) {
    for (const { sink, mark } of statements.rows('SELECT sink, mark FROM position')) {
      if (typeof mark !== 'string') continue;
      const known = marks.get(String(sink)) ?? [];
      marks.set(String(sink), [...known, parsedOrText(mark)]);
    }
  }
  return marks;
}

function copyPositions(
  { positions, statements }: Opened,
  to: Statements,
  {
    numbers,
    sinks,
    regrouping: { from, markOf },
    marks,
  }: {
    readonly numbers: Renumbered;
    readonly sinks: ReadonlyMap<string, Takes>;
    readonly regrouping: Regrouping;
    readonly marks: ReadonlyMap<string, readonly Json[]>;
  },
): void {
  const isOnly = from.length === 1;
  for (const row of statements.rows('SELECT * FROM position')) {
    const sink = String(row.sink);
    // A sink outside the config begins with the stored pages, should it return.
    if (positions.get(sink) === Number.POSITIVE_INFINITY || !(isOnly || sinks.has(sink))) continue;
    const next = numbers.positions.get(sink) ?? numbers.end;
    const mark = markOf(sink, marks.get(sink) ?? []);
    const text = mark === null ? null : JSON.stringify(mark);
    insert(to, 'position', { ...row, next, mark: text }, 'REPLACE');
  }
}

/** Returns the row's new id. */
function insert(
  to: Statements,
  table: string,
  row: Row,
  or: 'ABORT' | 'REPLACE' = 'ABORT',
): number {
  const columns = Object.keys(row);
  const sql = `INSERT OR ${or} INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
  return Number(to.run(sql, ...(Object.values(row) as SQLInputValue[])).lastInsertRowid);
}
