// The present time for retention. What retention deletes does not come back, so a clock that leaps forward, by a fault of the
// time server for example, is not believed at once: only a leap that still holds after an hour counts. It is stored, since the
// clock may be wrong at a restart. Invariant: time passes here no faster than on a right clock.

import type { Statements } from './database.ts';
import { writeNote } from './notes.ts';
import { parsedObject } from './requests.ts';

/** A longer step of the clock is a leap; no process may have run meanwhile. */
const stepMsMax = 3_600_000;
/** A stored time may be so much older. */
const noteEveryMs = 600_000;
const note = { kind: 'present', name: 'retention' } as const;

interface Noted {
  /** The last time that counts, epoch milliseconds. */
  readonly at: number;
  /** Since when the clock shows a leap; null: it does not. */
  readonly leaptAt: number | null;
}

/** The present of one database. */
export class Present {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** The present, by the clock's time. */
  at(now: number): number {
    const before = this.#read();
    const { at, leaptAt } = before ?? { at: now, leaptAt: null };
    // If the clock was set back, it was ahead before or is behind now: neither makes anything older.
    const since = leaptAt === null || leaptAt > now ? now : leaptAt;
    const isBelieved = now - at <= stepMsMax || now - since >= stepMsMax;
    const next = isBelieved ? { at: now, leaptAt: null } : { at, leaptAt: since };
    const isDue =
      before === null || leaptAt !== next.leaptAt || Math.abs(next.at - at) >= noteEveryMs;
    if (isDue) writeNote(this.#statements, { ...note, facts: JSON.stringify(next), now: next.at });
    return next.at;
  }

  #read(): Noted | null {
    const find = 'SELECT facts FROM note WHERE kind = ? AND name = ?';
    const facts = parsedObject(this.#statements.row(find, note.kind, note.name)?.facts);
    if (typeof facts?.at !== 'number') return null;
    const { at, leaptAt } = facts;
    return { at, leaptAt: typeof leaptAt === 'number' ? leaptAt : null };
  }
}
