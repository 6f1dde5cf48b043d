// The sinks that the state knows, as notes of the database: each sink of a config is registered when
// a process first runs with it, and stays so when a later config lacks it. What must stay true:
// - a sink that a running process has holds pages back as always;
// - a sink that no running process has keeps its pages for `state.removed_sinks` from when it was
//   first missing; only then, or where an operator gives them up, or where a full spool needs the
//   room, are they released;
// - a sink that the state met before this register existed, and that is missing by then, is listed
//   and keeps nothing.

import type { Offset } from '../contracts/event.ts';
import { isObject, type JsonObject } from '../contracts/json.ts';
import { notesOf, writeNote } from './notes.ts';
import type { Statements } from './statements.ts';

/** A sink of this config or of an earlier one. */
export interface KnownSink {
  readonly name: string;
  /** Epoch milliseconds; null: a running process has it. */
  readonly missingSince: number | null;
  /** False: its pages are not kept, since its time is over or it was missing before. */
  readonly keeps: boolean;
  /** No event before this one is for it: the oldest that was held when it was registered. */
  readonly begun: Offset;
  /** Pages before this offset were released while it was missing, since the spool was full. */
  readonly releasedTo: Offset;
  /** Events in those pages that it had not passed. */
  readonly released: number;
  /** Events released for each reason that no report has named yet. */
  readonly unreported: Readonly<Record<Released['why'], number>>;
}

/** The sinks in the configs of running processes. */
export interface RunningSinks {
  /** Of this process, whose gaps are reported. */
  readonly own: readonly string[];
  /** Of other processes with the state. */
  readonly others: readonly string[];
  /** No running process has another sink; false: that is not known yet. */
  readonly isAll: boolean;
}

/** Events that are gone for a sink that returns: `from` up to before `until`. */
export interface SinkGap {
  readonly sink: string;
  readonly from: Offset;
  readonly until: Offset;
}

/** Events kept for a removed sink that are kept no longer. */
export interface Released {
  readonly sink: string;
  readonly events: number;
  /** `full`: the spool needed the room; `expired`: `state.removed_sinks` is over. */
  readonly why: 'full' | 'expired';
}

const kind = 'known_sink';
const present = { missingSince: null, keeps: true, releasedTo: 0, released: 0 } as const;
const allReported = { full: 0, expired: 0 } as const;

/** That register. */
export class KnownSinks {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** Every sink that is registered, by name. */
  all(): ReadonlyMap<string, KnownSink> {
    const noted = notesOf(this.#statements, kind);
    return new Map(Array.from(noted, ([name, facts]) => [name, knownFrom(name, facts)]));
  }

  /**
   * Registers the sinks that running processes have, and notes since when each other is missing.
   * `oldest`: the oldest event that is held, where a new sink begins.
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
      if (one.missingSince !== null || names.includes(one.name)) continue;
      this.#write({ ...one, missingSince: now }, now);
    }
  }

  /** Events of which sinks are gone, of those that are about to run again. */
  gaps(names: readonly string[], oldest: Offset): readonly SinkGap[] {
    const known = this.all();
    return names.flatMap((sink) => {
      const one = known.get(sink);
      if (one === undefined && !this.#hasPosition(sink)) return [];
      // What was released is gone for it, so that its own position counts.
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

  /** Where a sink has come; 0 where it has passed nothing. */
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

  /** Notes that the time of a missing sink is over, which so many events waited for. */
  expire(sink: KnownSink, events: number, now: number): void {
    const unreported = { ...sink.unreported, expired: sink.unreported.expired + events };
    this.#write({ ...sink, keeps: false, unreported }, now);
  }

  /** What was released and not reported yet. */
  unreported(): readonly Released[] {
    return [...this.all().values()].flatMap(({ name: sink, unreported }) =>
      (['full', 'expired'] as const).flatMap((why) =>
        unreported[why] > 0 ? [{ sink, events: unreported[why], why }] : [],
      ),
    );
  }

  /** Notes that this was reported. */
  reported({ sink, events, why }: Released, now: number): void {
    const one = this.all().get(sink);
    if (one === undefined) return;
    const rest = Math.max(0, one.unreported[why] - events);
    this.#write({ ...one, unreported: { ...one.unreported, [why]: rest } }, now);
  }

  /** Puts one of another state into the register. */
  put(sink: KnownSink, now: number): void {
    this.#write(sink, now);
  }

  /** Forgets a sink: its position and what was noted of it. Its dead letters stay. */
  forget(name: string): void {
    this.#statements.run('DELETE FROM position WHERE sink = ?', name);
    for (const noted of [kind, 'sink', 'begun', 'dropped']) {
      this.#statements.run('DELETE FROM note WHERE kind = ? AND name = ?', noted, name);
    }
  }

  #write({ name, ...facts }: KnownSink, now: number): void {
    writeNote(this.#statements, { kind, name, facts: JSON.stringify(facts), now });
  }
}

/** A row's facts; what cannot be read counts as a sink that a process has, which keeps its pages. */
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
