// Events set aside for a destination at fault: an index that is closed, a topic that is missing.
// They wait in the order of setting aside, count towards `state.max_bytes`, and leave when the
// destination accepts them, or as dead letters. Invariant: an event is set aside once, in the
// transaction in which its sink's position passes it.

import type {
  AsideDestination,
  AsideEvent,
  HeldAside,
  Offset,
  PageContext,
} from '../contracts/index.ts';
import type { Row, Statements } from './database.ts';

/** Counted for each event in addition to its record. */
const rowBytes = 512;
/** Events removed at a time. */
const releasedMax = 10_000;

/** The table of set-aside events. */
export class SetAside {
  readonly #statements: Statements;
  #bytes: number | null = null;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  add(sink: string, events: readonly AsideEvent[], now: number): void {
    for (const { destination, uid, offset, reason, context, record } of events) {
      this.#statements.run(
        `INSERT OR IGNORE INTO set_aside (sink, destination, uid, offset, reason, at, context, record)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        ...[sink, destination, uid, offset, reason, now],
        ...[JSON.stringify(context), record],
      );
    }
    this.changed();
  }

  /**
   * The destinations with waiting events, of one sink or all; empty in a database of an older
   * version.
   */
  destinations(sink: string | null): readonly AsideDestination[] {
    if (!this.#isThere()) return [];
    const rows = this.#statements.rows(
      `SELECT sink, destination, count(*) AS events, min(at) AS since, max(id) AS last, min(offset) AS first
         FROM set_aside WHERE coalesce(?, sink) = sink GROUP BY sink, destination ORDER BY min(id)`,
      sink,
    );
    return rows.map(({ sink, destination, events, since, last, first }) => ({
      ...{ sink: String(sink), destination: String(destination) },
      ...{ events: Number(events), since: Number(since), first: Number(first) },
      reason: String(
        this.#statements.row('SELECT reason FROM set_aside WHERE id = ?', Number(last))?.reason,
      ),
    }));
  }

  /** Events of a destination in order, after an id; null: of all destinations of the sink. */
  read(
    sink: string,
    destination: string | null,
    { after, most }: { readonly after: number; readonly most: number },
  ): readonly HeldAside[] {
    if (!this.#isThere()) return [];
    const chosen = `SELECT * FROM set_aside WHERE sink = ? AND coalesce(?, destination) = destination
       AND id > ? ORDER BY id LIMIT ?`;
    return this.#statements.rows(chosen, sink, destination, after, most).map(heldAside);
  }

  remove(id: number): void {
    this.#statements.run('DELETE FROM set_aside WHERE id = ?', id);
    this.changed();
  }

  get(id: number): HeldAside | null {
    const row = this.#statements.row('SELECT * FROM set_aside WHERE id = ?', id);
    return row === undefined ? null : heldAside(row);
  }

  /** Removes all events of a sink; returns their number. */
  forget(sink: string): number {
    if (!this.#isThere()) return 0;
    const { changes } = this.#statements.run('DELETE FROM set_aside WHERE sink = ?', sink);
    this.changed();
    return Number(changes);
  }

  /**
   * Removes the oldest events of these sinks until `bytes` are free; returns the numbers by sink.
   */
  release(sinks: readonly string[], bytes: number): ReadonlyMap<string, number> {
    const released = new Map<string, number>();
    if (bytes <= 0 || sinks.length === 0 || !this.#isThere()) return released;
    let free = 0;
    const ids: number[] = [];
    for (const row of this.#statements.each(
      `SELECT id, sink, ${rowBytes} + length(record) AS bytes FROM set_aside ORDER BY id`,
    )) {
      const sink = String(row.sink);
      if (!sinks.includes(sink)) continue;
      ids.push(Number(row.id));
      released.set(sink, (released.get(sink) ?? 0) + 1);
      free += Number(row.bytes);
      if (free >= bytes || ids.length === releasedMax) break;
    }
    for (const id of ids) this.remove(id);
    return released;
  }

  /** Bytes of all events. */
  get bytes(): number {
    if (this.#bytes !== null) return this.#bytes;
    const sum = `SELECT count(*) * ${rowBytes} + coalesce(sum(length(record)), 0) AS n FROM set_aside`;
    this.#bytes = this.#isThere() ? Number(this.#statements.row(sum)?.n) : 0;
    return this.#bytes;
  }

  /** Discards the count, because another connection may have changed the table. */
  changed(): void {
    this.#bytes = null;
  }

  #isThere(): boolean {
    const table = "SELECT 1 AS n FROM sqlite_master WHERE name = 'set_aside'";
    return this.#statements.row(table) !== undefined;
  }
}

function heldAside(row: Row): HeldAside {
  return {
    id: Number(row.id),
    destination: String(row.destination),
    uid: String(row.uid),
    offset: Number(row.offset) as Offset,
    reason: String(row.reason),
    // Written by sluice as a PageContext.
    context: JSON.parse(String(row.context)) as PageContext,
    record: row.record instanceof Uint8Array ? row.record : new Uint8Array(0),
  };
}
