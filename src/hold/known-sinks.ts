// The sinks that the state knows, as notes of the database: each sink of a config is registered when
// a process first runs with it, and stays registered when a later config lacks it. Invariants:
// - a sink that a running process has retains pages as always;
// - a sink that no running process has retains its pages for `state.removed_sinks` from the time at
//   which it was first missing; they are released only after that time, or when an operator gives
//   them up, or when a full spool needs the space;
// - a sink that was already missing when this register was introduced is listed and retains nothing.

import { isObject, type JsonObject, type Offset } from '../contracts/index.ts';
import type { Statements } from './database.ts';
import { notesOf, writeNote } from './notes.ts';
import { settledKind } from './settled.ts';

/** A sink of this config or of an earlier one. */
export interface KnownSink {
  readonly name: string;
  /** Epoch milliseconds; null: a running process has it. */
  readonly missingSince: number | null;
  /** False: its pages are not retained, because its time is over or it was missing before. */
  readonly keeps: boolean;
  /** No event before this offset is for it: the oldest stored one when it was registered. */
  readonly begun: Offset;
  /** Pages before this offset were released while it was missing, because the spool was full. */
  readonly releasedTo: Offset;
  /** Events in those pages that it had not passed. */
  readonly released: number;
  /** Released events per reason that were not reported yet. */
  readonly unreported: Readonly<Record<Released['why'], number>>;
}

/** The sinks in the configs of running processes. */
export interface RunningSinks {
  /** Sinks of this process, whose gaps are reported. */
  readonly own: readonly string[];
  /** Sinks of other processes with this state. */
  readonly others: readonly string[];
  /** No running process has any other sink; false: not known yet. */
  readonly isAll: boolean;
}

/** Events lost for a returning sink: from `from` up to before `until`. */
export interface SinkGap {
  readonly sink: string;
  readonly from: Offset;
  readonly until: Offset;
}

/** Events retained for a removed sink that were deleted. */
export interface Released {
  readonly sink: string;
  readonly events: number;
  /** `full`: the spool needed the space; `expired`: `state.removed_sinks` is over. */
  readonly why: 'full' | 'expired';
}

const kind = 'known_sink';
const present = { missingSince: null, keeps: true, releasedTo: 0, released: 0 } as const;
const allReported = { full: 0, expired: 0 } as const;

/** The register. */
export class KnownSinks {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** All registered sinks by name. */
  all(): ReadonlyMap<string, KnownSink> {
    const noted = notesOf(this.#statements, kind);
    return new Map(Array.from(noted, ([name, facts]) => [name, knownFrom(name, facts)]));
  }

  /**
   * Registers the sinks of running processes, and notes since when each other one is missing.
   * `oldest`: the oldest stored offset, where a new sink begins.
   */
  settle({ own, others, isAll }: RunningSinks, oldest: Offset, now: number): void {
    const known = this.all();
    const names = [...new Set([...own, ...others])];
    for (const name of names) {
      const before = known.get(name);
      if (before?.missingSince === null) continue;
      const isReported = own.includes(name);
      const isGap = before === undefined || (isReported && this.neededFrom(before) < oldest);
      const { begun, unreported } = before ?? { begun: oldest, unreported: allReported };
      this.#write({ name, ...present, unreported, begun: isGap ? oldest : begun }, now);
    }
    for (const one of isAll ? known.values() : []) {
      // A time in the future comes from a clock that was ahead: from it on, its events would be kept for ever.
      const isNoted = one.missingSince !== null && one.missingSince <= now;
      if (isNoted || names.includes(one.name)) continue;
      this.#write({ ...one, missingSince: now }, now);
    }
  }

  /** The gaps of sinks that are about to run. */
  gaps(names: readonly string[], oldest: Offset): readonly SinkGap[] {
    const known = this.all();
    return names.flatMap((sink) => {
      const one = known.get(sink);
      if (one === undefined && !this.#hasPosition(sink)) return [];
      // Released events are lost for it, so its own position counts here.
      const from = this.neededFrom({ ...(one ?? { name: sink, begun: 0 }), releasedTo: 0 });
      return from < oldest ? [{ sink, from, until: oldest }] : [];
    });
  }

  /** The first event that a sink has yet to pass and that was not released. */
  neededFrom({
    name,
    begun,
    releasedTo,
  }: Pick<KnownSink, 'name' | 'begun' | 'releasedTo'>): Offset {
    return Math.max(this.position(name), begun, releasedTo);
  }

  /** A sink's position; 0 if it has passed nothing. */
  position(sink: string): Offset {
    const find = 'SELECT next FROM position WHERE sink = ?';
    return Number(this.#statements.row(find, sink)?.next ?? 0);
  }

  #hasPosition(sink: string): boolean {
    return this.#statements.row('SELECT 1 AS n FROM position WHERE sink = ?', sink) !== undefined;
  }

  /** Notes that pages of a missing sink were released. */
  release(sink: KnownSink, step: { readonly to: Offset; readonly events: number }, now: number) {
    const { to: releasedTo, events } = step;
    const unreported = { ...sink.unreported, full: sink.unreported.full + events };
    this.#write({ ...sink, releasedTo, released: sink.released + events, unreported }, now);
  }

  /** Notes that a missing sink's retention is over, with the number of events that waited. */
  expire(sink: KnownSink, events: number, now: number): void {
    const unreported = { ...sink.unreported, expired: sink.unreported.expired + events };
    this.#write({ ...sink, keeps: false, unreported }, now);
  }

  /** Released events that were not reported yet. */
  unreported(): readonly Released[] {
    return [...this.all().values()].flatMap(({ name: sink, unreported }) =>
      (['full', 'expired'] as const).flatMap((why) =>
        unreported[why] > 0 ? [{ sink, events: unreported[why], why }] : [],
      ),
    );
  }

  /** Notes that they were reported. */
  reported({ sink, events, why }: Released, now: number): void {
    const one = this.all().get(sink);
    if (one === undefined) return;
    const rest = Math.max(0, one.unreported[why] - events);
    this.#write({ ...one, unreported: { ...one.unreported, [why]: rest } }, now);
  }

  /** Adds a sink from another state to the register. */
  put(sink: KnownSink, now: number): void {
    this.#write(sink, now);
  }

  /** Deletes a sink's position and notes. Its dead letters stay. */
  forget(name: string): void {
    this.#statements.run('DELETE FROM position WHERE sink = ?', name);
    for (const noted of [kind, 'sink', 'begun', 'dropped', settledKind]) {
      this.#statements.run('DELETE FROM note WHERE kind = ? AND name = ?', noted, name);
    }
  }

  #write({ name, ...facts }: KnownSink, now: number): void {
    writeNote(this.#statements, { kind, name, facts: JSON.stringify(facts), now });
  }
}

/**
 * Parses a row; an unreadable one counts as a sink of a running process, which retains its pages.
 */
function knownFrom(name: string, facts: JsonObject): KnownSink {
  const { missingSince, keeps, begun, releasedTo, released } = facts;
  const unreported: Record<string, unknown> = isObject(facts.unreported) ? facts.unreported : {};
  const whole = (value: unknown) => (Number.isSafeInteger(value) ? Number(value) : 0);
  return {
    name,
    missingSince: Number.isFinite(missingSince) ? Number(missingSince) : null,
    keeps: keeps !== false,
    begun: whole(begun),
    releasedTo: whole(releasedTo),
    released: whole(released),
    unreported: { full: whole(unreported.full), expired: whole(unreported.expired) },
  };
}
