// A state database made of others: of a part of one, or of several parts. What must stay true: the
// others stay as they are; what is known of a stream comes from one of them; numbers of events, of
// blocks of identities and of rows are given anew, wherever they are spoken of; and the new database
// has an identity of its own, so that nobody takes its numbers for another's.

import type { SQLInputValue } from 'node:sqlite';
import type { Offset } from '../contracts/event.ts';
import type { Json } from '../contracts/json.ts';
import { reachOf } from '../contracts/numbering.ts';
import { openDatabase, storeError } from './database.ts';
import { epochsFrom } from './epochs.ts';
import { type KnownSink, KnownSinks } from './known-sinks.ts';
import { PairRows } from './pair-rows.ts';
import { pairBody, pairStateOf } from './pair-state.ts';
import { readReached } from './reached.ts';
import { momentsOf } from './receipts.ts';
import { joinKnown, keptSinks, positionsOfKept } from './regroup-known.ts';
import { type PagesOf, type Renumbered, regroupPages, type Takes } from './regroup-pages.ts';
import { parsedObject } from './requests.ts';
import { type Row, Statements } from './statements.ts';
import { parsedOrText, Streams } from './streams.ts';

/** A database that another one is made of. Its lock is the caller's. */
export interface Origin {
  readonly dir: string;
  /** Whether what is known of a stream comes from here. */
  readonly keeps: (stream: string) => boolean;
  /** Whether what is held for sinks of a stream does. */
  readonly sends: (stream: string) => boolean;
}

/** How a database is made. */
export interface Regrouping {
  readonly from: readonly Origin[];
  /** The directory where it is to be, which has none. */
  readonly to: string;
  /** The sinks of the config, and who else reads pages. */
  readonly sinks: ReadonlyMap<string, Takes>;
  /** What a sink has noted, from its notes in all of these; null: nothing. */
  readonly markOf: (sink: string, marks: readonly Json[]) => Json | null;
  /** A checkpoint whose stream's blocks of identities have numbers that are greater by so many. */
  readonly checkpoint: (stream: string, checkpoint: Json, by: number) => Json;
  /** Whether what is counted of a sink comes along, which is of no stream. */
  readonly counts: boolean;
}

interface Opened extends Origin, PagesOf {
  /** Added to the numbers of its blocks. */
  readonly blocksBefore: number;
  /** Its register of sinks. */
  readonly known: ReadonlyMap<string, KnownSink>;
}

/** Makes it. Returns how many streams and pages it has. Throws `state_damaged` or `disk_full`. */
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
    // An open walk would take lower ones for earlier ones.
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
    copyRequests(origin, to, { regrouping, letters: copyDeadLetters(origin, to, numbers) });
    copyAside(origin, to);
    copyPairs(origin, to);
    copyNotes(origin, to, { numbers, counts: regrouping.counts });
    copyPositions(origin, to, { numbers, sinks, regrouping, marks });
  }
  // One that has accepted nothing has no position in the others.
  for (const sink of kept) {
    const next = numbers.positions.get(sink) ?? numbers.end;
    to.run('INSERT OR IGNORE INTO position (sink, next, updated_at) VALUES (?, ?, 0)', sink, next);
  }
  joinKnown(all, new KnownSinks(to), { numbers, counts: regrouping.counts });
}

/** Of one database all that it knows; of several those of the config and those that pages are kept for. */
function sinksOf(
  [only, ...others]: readonly Opened[],
  kept: ReadonlySet<string>,
  { sinks }: Regrouping,
): ReadonlyMap<string, Takes> {
  const known = only === undefined || others.length > 0 ? kept : only.positions.keys();
  return new Map([...Array.from(known, (name) => [name, 'events'] as const), ...sinks]);
}

/** How far each sink has come, also by what it noted after the last commit of a process that was killed. */
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
  // Who is no sink reads for streams, and nothing where those are not.
  const readers = [...sinks].flatMap(([name, takes]) => (takes === 'all' ? [name] : []));
  for (const name of [...readers, ...positions.keys()]) {
    if (name.startsWith('#') && !(keeps(name) && positions.has(name)))
      positions.set(name, Number.POSITIVE_INFINITY);
  }
  return positions;
}

/** By table: columns, and the order in which rows stand, where that counts. */
const ofStreams = {
  checkpoint: '* FROM checkpoint',
  identities: '* FROM identities ORDER BY block',
  // Without the number, which another database may have given as well.
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
      // A block of no stream stands for a number that is taken.
      if (row.stream === '' || !keeps(String(row.stream))) continue;
      if (table === 'checkpoint') row.body = moved(row.stream, row.body);
      if (table === 'parent') row.checkpoint = moved(row.list, row.checkpoint);
      if (table === 'identities') row.block = Number(row.block) + blocksBefore;
      insert(to, table, row);
    }
  }
}

/** Returns what they are numbered by now. */
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

/** Events that wait for a destination at fault, in their order. */
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
    /** Of records that have a counterpart, the rows that they became. */
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

/** Those about a stream or source with it, those about a sink with whatever is sent to it. */
function copyRequests(
  { keeps, statements }: Opened,
  to: Statements,
  {
    regrouping: { sinks },
    letters,
  }: { readonly regrouping: Regrouping; readonly letters: ReadonlyMap<number, number> },
): void {
  for (const { id: _, ...row } of statements.each('SELECT * FROM request ORDER BY id')) {
    const name = String(row.name);
    if (!sinks.has(name) && !keeps(name)) continue;
    const wish = parsedObject(row.wish);
    if (wish !== null && Array.isArray(wish.letters)) {
      const named = (wish.letters as [number, string][]).flatMap(([id, uid]) => {
        const now = letters.get(id);
        return now === undefined ? [] : [[now, uid]];
      });
      row.wish = JSON.stringify({ ...wish, letters: named });
    }
    insert(to, 'request', row);
  }
}

/** Who has the state in Kafka is not said of another one; the register of sinks is joined (`joinKnown`). */
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
      // Of several what is true of all.
      if (Number(before?.at ?? 0) <= Number(facts.at)) {
        put(row, { at: Number(facts.at), first: after(facts.first) });
      }
    } else if (kind === 'dropped') {
      if (counts) put(row, { count: Number(facts.count) + Number(before?.count ?? 0) });
    } else if (Number(there?.at ?? 0) <= Number(row.at)) put(row, facts);
  }
}

/** What each sink has noted, in the order of the databases. */
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
    // One that is not in the config begins with what is held, should it come back.
    if (positions.get(sink) === Number.POSITIVE_INFINITY || !(isOnly || sinks.has(sink))) continue;
    const next = numbers.positions.get(sink) ?? numbers.end;
    const mark = markOf(sink, marks.get(sink) ?? []);
    const text = mark === null ? null : JSON.stringify(mark);
    insert(to, 'position', { ...row, next, mark: text }, 'REPLACE');
  }
}

/** Returns the number that the row has got. */
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
