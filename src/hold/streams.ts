// The stored data of each stream: its checkpoint, the identities of its stored records, the trail
// of its cursors, and for a collection the entities as last reported. Checkpoints are opaque here:
// an unreadable one halts its own stream (fetch/checkpoint.ts), and no other.

import { pathToFileURL } from 'node:url';
import {
  type EntityChange,
  type EntityChoice,
  identityBytes,
  type Json,
  type StreamMemory,
  type TrailEntry,
} from '../contracts/index.ts';
import { damageError, type Row, type Statements } from './database.ts';
import type { DeliveredPosition } from './delivered.ts';

/** The most recent cursors are all kept; of older ones one per minute, for a day. */
const trailRecent = 16;
const trailAgeMsMax = 24 * 3_600_000;
/** Maximum identities per stream; the oldest are deleted, as a running stream does. */
const identitiesMax = 1_000_000;
/** Maximum streams whose identities are counted: each parent's list is one. */
const countedMax = 10_000;
/** They are deleted in large steps. */
const identitiesSlack = 1.1;

/** A stream's checkpoint, and when it was saved. */
export interface HeldCheckpoint {
  readonly stream: string;
  readonly checkpoint: Json;
  readonly savedAt: number;
}

/** Stored data of a stream. Times are epoch milliseconds, null if there is none. */
export interface StreamExtent {
  readonly records: number;
  readonly knownSince: number | null;
  /** Positions that it can be rewound to. */
  readonly places: number;
  readonly oldestPosition: number | null;
  readonly newestPosition: number | null;
}

/** The tables of streams. */
export class Streams {
  readonly #statements: Statements;
  #trailCount = 0;
  /** Counted identities per stream. */
  readonly #identityCounts = new Map<string, number>();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** A failed transaction may have added counted identities. */
  goBack(): void {
    this.#identityCounts.clear();
  }

  saveCheckpoint(stream: string, checkpoint: Json, now: number): void {
    this.#statements.run(
      `INSERT INTO checkpoint (stream, body, updated_at) VALUES (?, ?, ?)
       ON CONFLICT (stream) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at`,
      stream,
      JSON.stringify(checkpoint),
      now,
    );
  }

  /** Each stream's present position, without streams that have entities. */
  *places(): Iterable<readonly [stream: string, place: DeliveredPosition]> {
    const newest = this.#statements.row('SELECT max(block) AS block FROM identities');
    const block = Number(newest?.block ?? 0);
    const whole = 'SELECT * FROM checkpoint WHERE stream NOT IN (SELECT stream FROM entity)';
    for (const row of this.#statements.each(whole)) {
      const { stream, checkpoint, savedAt } = heldCheckpoint(row);
      yield [stream, { checkpoint, block, at: savedAt }];
    }
  }

  /** All checkpoints with their streams' names. */
  checkpoints(): readonly HeldCheckpoint[] {
    return this.#statements.rows('SELECT * FROM checkpoint ORDER BY stream').map(heldCheckpoint);
  }

  /** Deletes a checkpoint and its trail: the cursors belong to the list as it was. */
  reset(stream: string): void {
    this.#statements.run('DELETE FROM checkpoint WHERE stream = ?', stream);
    this.#statements.run('DELETE FROM trail WHERE stream = ?', stream);
  }

  /** The amount of stored data of a stream. */
  extent(stream: string): StreamExtent {
    const known = this.#statements.row(
      'SELECT coalesce(sum(length(keys)), 0) AS n, min(at) AS since FROM identities WHERE stream = ?',
      stream,
    );
    const trail = this.#statements.row(
      'SELECT count(*) AS n, min(at) AS oldest, max(at) AS newest FROM trail WHERE stream = ?',
      stream,
    );
    return {
      records: Number(known?.n ?? 0) / identityBytes,
      knownSince: timeOrNull(known?.since),
      places: Number(trail?.n ?? 0),
      oldestPosition: timeOrNull(trail?.oldest),
      newestPosition: timeOrNull(trail?.newest),
    };
  }

  /** Deletes the identities of records read at or after a time; returns their number. */
  forgetSince(stream: string, at: number): number {
    const before = this.#countIdentities(stream);
    this.#statements.run('DELETE FROM identities WHERE stream = ? AND at >= ?', stream, at);
    this.goBack();
    return before - this.#countIdentities(stream);
  }

  /** Deletes the identities of later blocks; 0: all. */
  forgetAfter(stream: string, block: number): void {
    this.#statements.run('DELETE FROM identities WHERE stream = ? AND block > ?', stream, block);
  }

  /** Deletes all data of streams whose names end so, except pages stored for the sinks. */
  forgetAll(ending: string): void {
    for (const table of ['checkpoint', 'identities', 'entity', 'trail']) {
      this.#statements.run(`DELETE FROM ${table} WHERE stream LIKE ?`, `%${ending}`);
    }
  }

  /** The number of the next block of identities. */
  get nextBlock(): number {
    const row = this.#statements.row('SELECT coalesce(max(block), 0) + 1 AS n FROM identities');
    return Number(row?.n);
  }

  /** Reserves block numbers: an open walk would mistake reused ones for earlier blocks. */
  reserveBlocks(last: number): void {
    const mark =
      "INSERT OR IGNORE INTO identities (block, stream, at, keys) VALUES (?, '', 0, x'')";
    if (last > 0) this.#statements.run(mark, last);
  }

  /** Copies the data of streams from another state directory, which stays unchanged. */
  copyFrom(path: string): void {
    const from = pathToFileURL(path);
    from.searchParams.set('mode', 'ro');
    this.#statements.run('ATTACH DATABASE ? AS held', from.href);
    for (const table of ['checkpoint', 'identities', 'trail', 'entity', 'parent']) {
      const has = 'SELECT 1 FROM held.sqlite_master WHERE name = ?';
      if (this.#statements.row(has, table) === undefined) continue;
      this.#statements.run(`INSERT INTO main.${table} SELECT * FROM held.${table}`);
    }
  }

  /** Adds a block of identities and returns its number; deletes the oldest beyond the bound. */
  addIdentities(stream: string, keys: Uint8Array, now: number): number {
    const added = this.#statements.run(
      'INSERT INTO identities (stream, at, keys) VALUES (?, ?, ?)',
      stream,
      now,
      keys,
    );
    this.#boundIdentities(stream, keys.length / identityBytes);
    return Number(added.lastInsertRowid);
  }

  #boundIdentities(stream: string, added: number): void {
    const known = this.#identityCounts.get(stream);
    let held = known === undefined ? this.#countIdentities(stream) : known + added;
    if (held > identitiesMax * identitiesSlack) {
      const blocks = this.#statements.each(
        'SELECT block, length(keys) AS bytes FROM identities WHERE stream = ? ORDER BY block',
        stream,
      );
      let oldest = 0;
      for (const row of blocks) {
        if (held <= identitiesMax) break;
        held -= Number(row.bytes) / identityBytes;
        oldest = Number(row.block);
      }
      this.#statements.run(
        'DELETE FROM identities WHERE stream = ? AND block <= ?',
        stream,
        oldest,
      );
    }
    if (this.#identityCounts.size >= countedMax) this.#identityCounts.clear();
    this.#identityCounts.set(stream, held);
  }

  #countIdentities(stream: string): number {
    const row = this.#statements.row(
      'SELECT coalesce(sum(length(keys)), 0) AS bytes FROM identities WHERE stream = ?',
      stream,
    );
    return Number(row?.bytes ?? 0) / identityBytes;
  }

  recall(stream: string): StreamMemory {
    const held = this.#statements.row('SELECT body FROM checkpoint WHERE stream = ?', stream);
    const blocks = this.#statements.rows(
      'SELECT block, keys FROM identities WHERE stream = ? ORDER BY block',
      stream,
    );
    return {
      checkpoint: held === undefined ? null : parsedOrText(String(held.body)),
      identities: blocks.map(({ block, keys }) => {
        if (keys instanceof Uint8Array) return { block: Number(block), bytes: keys };
        throw damageError(
          'reading the state database',
          `the stored identities of ${stream} differ from the bytes written`,
        );
      }),
    };
  }

  extendTrail(stream: string, entry: TrailEntry): void {
    this.#statements.run(
      'INSERT INTO trail (stream, at, cursor) VALUES (?, ?, ?)',
      stream,
      entry.at,
      entry.cursor,
    );
    this.#trailCount += 1;
    if (this.#trailCount % trailRecent !== 0) return;
    this.#statements.run(
      `DELETE FROM trail WHERE stream = ?1 AND rowid NOT IN (
         SELECT rowid FROM (SELECT rowid FROM trail WHERE stream = ?1 ORDER BY rowid DESC LIMIT ${trailRecent})
         UNION ALL
         SELECT min(rowid) FROM trail WHERE stream = ?1 AND at > ?2 GROUP BY at / 60000)`,
      stream,
      entry.at - trailAgeMsMax,
    );
  }

  trail(stream: string): readonly TrailEntry[] {
    const rows = this.#statements.rows(
      'SELECT cursor, at FROM trail WHERE stream = ? ORDER BY rowid',
      stream,
    );
    return rows.map((row) => ({ cursor: String(row.cursor), at: Number(row.at) }));
  }

  changeEntities(stream: string, change: EntityChange): void {
    for (const [key, body] of change.put) {
      this.#statements.run(
        'INSERT OR REPLACE INTO entity (stream, key, body) VALUES (?, ?, ?)',
        stream,
        key,
        body,
      );
    }
    for (const key of change.drop) {
      this.#statements.run('DELETE FROM entity WHERE stream = ? AND key = ?', stream, key);
    }
  }

  entities(stream: string, which: EntityChoice): ReadonlyMap<string, string> {
    const one = 'SELECT key, body FROM entity WHERE stream = ? AND key = ?';
    const range = 'SELECT key, body FROM entity WHERE stream = ? AND key > ? ORDER BY key LIMIT ?';
    const rows: readonly Row[] =
      'after' in which
        ? this.#statements.rows(range, stream, which.after, which.max)
        : which.flatMap((key) => this.#statements.rows(one, stream, key));
    return new Map(rows.map((row) => [String(row.key), String(row.body)]));
  }
}

function heldCheckpoint({ stream, body, updated_at: savedAt }: Row): HeldCheckpoint {
  const checkpoint = parsedOrText(String(body));
  return { stream: String(stream), checkpoint, savedAt: Number(savedAt) };
}

function timeOrNull(at: unknown): number | null {
  return typeof at === 'number' ? at : null;
}

/**
 * Parses a stored checkpoint; if malformed, returns its text, which no stream accepts as a
 * checkpoint.
 */
export function parsedOrText(body: string): Json {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
