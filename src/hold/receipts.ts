// Data for the statement up to when everything was delivered to a sink: for each stream, moments by
// which all records of its upstream were stored, each with the offset after the last of them; for
// each sink, its start and the dead letters that an operator dropped. Invariant: a moment is never
// later than its offset justifies, so a lost or thinned note makes the statement older and never
// wrong.

import type { Offset } from '../contracts/index.ts';
import type { Statements } from './database.ts';
import { notesOf, writeNote } from './notes.ts';
import { parsedObject } from './requests.ts';

/**
 * All records that a stream's upstream showed by `at`, epoch milliseconds, have an offset before
 * `end`.
 */
export interface ReachedMoment {
  readonly at: number;
  readonly end: Offset;
}

/** A sink's start, and its dropped events. */
export interface SinkHistory {
  /**
   * Its first event, and its start time, epoch milliseconds; null: a state from before this was
   * stored.
   */
  readonly begun: { readonly at: number; readonly first: Offset } | null;
  /** Dead letters that an operator has dropped: they are delivered nowhere. */
  readonly dropped: number;
  /** Events that were rejected once and wait to be sent again. */
  readonly again: number;
}

/** Enough for a sink that lags by days to have a moment near its position. */
const momentsMax = 24;

/** Those notes. */
export class Receipts {
  readonly #statements: Statements;
  readonly #end: () => Offset;
  readonly #known = new Set<string>();

  constructor(statements: Statements, end: () => Offset) {
    this.#statements = statements;
    this.#end = end;
  }

  /** All records that a stream's upstream showed by `at` are stored now. */
  reached(stream: string, at: number, now: number): void {
    const end = this.#end();
    const before = momentsOf(this.#facts('reached', stream)).filter((one) => one.end < end);
    const facts = JSON.stringify({ moments: thinned([...before, { at, end }]) });
    writeNote(this.#statements, { kind: 'reached', name: stream, facts, now });
  }

  /** Stores a sink's start, once, before its first position is written. */
  begin(sink: string, now: number): void {
    if (this.#known.has(sink)) return;
    this.#known.add(sink);
    if (this.#statements.row('SELECT 1 AS n FROM position WHERE sink = ?', sink)) return;
    const oldest = this.#statements.row('SELECT min(first) AS n FROM page')?.n;
    const first = typeof oldest === 'number' ? oldest : this.#end();
    const facts = JSON.stringify({ at: now, first });
    writeNote(this.#statements, { kind: 'begun', name: sink, facts, now });
  }

  /** Dead letters of a sink were dropped. */
  dropped(sink: string, count: number, now: number): void {
    const before = Number(this.#facts('dropped', sink)?.count ?? 0);
    const facts = JSON.stringify({ count: before + count });
    writeNote(this.#statements, { kind: 'dropped', name: sink, facts, now });
  }

  /** The moments of all streams, oldest first. */
  moments(): ReadonlyMap<string, readonly ReachedMoment[]> {
    const noted = notesOf(this.#statements, 'reached');
    return new Map(Array.from(noted, ([stream, facts]) => [stream, momentsOf(facts)]));
  }

  history(sink: string, position: Offset): SinkHistory {
    const begun = this.#facts('begun', sink);
    const again = this.#statements.row(
      `SELECT coalesce(sum(first + count - max(first, ?2)), 0) AS n FROM page
       WHERE only_sink = ?1 AND first + count > ?2
         AND first >= coalesce((SELECT max(first) FROM page WHERE first <= ?2), 0)`,
      sink,
      position,
    )?.n;
    return {
      begun: begun && { at: Number(begun.at), first: Number(begun.first) },
      dropped: Number(this.#facts('dropped', sink)?.count ?? 0),
      again: Number(again ?? 0),
    };
  }

  #facts(kind: string, name: string) {
    const find = 'SELECT facts FROM note WHERE kind = ? AND name = ?';
    return parsedObject(this.#statements.row(find, kind, name)?.facts) ?? null;
  }
}

/** The moments in a stored note. */
export function momentsOf(
  facts: { readonly [name: string]: unknown } | null,
): readonly ReachedMoment[] {
  const moments = facts?.moments;
  return Array.isArray(moments)
    ? moments.filter(({ at, end }) => Number.isFinite(at) && Number.isSafeInteger(end))
    : [];
}

/** Of too many moments, every second one of the older half is deleted. */
function thinned(moments: readonly ReachedMoment[]): readonly ReachedMoment[] {
  if (moments.length <= momentsMax) return moments;
  return moments.filter((_, index) => index >= momentsMax / 2 || index % 2 === 0);
}
