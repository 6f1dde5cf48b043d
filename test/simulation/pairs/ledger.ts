// The ledger that both APIs show, and the two forms of its records. A record is known by its mark,
// which it carries in both forms and which no id depends on.

import type { JsonObject } from '../../../src/contracts/json.ts';
import type { Random } from '../../../src/sandbox/random.ts';
import type { Side, Traits } from './traits.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** A record as one side shows it. */
export interface Shown {
  readonly record: Entry;
  readonly side: Side;
  readonly text: string;
  /** Its time by this side's clock. */
  readonly happenedAt: number;
  readonly shownAt: number;
  readonly goneAt: number;
  /** Where it stands among the others of its list. */
  readonly place: number;
}

/** One record. Two twins share a mark; two versions share an id and have a mark each. */
export interface Entry {
  readonly n: number;
  readonly mark: string;
  /** Null: it has none. */
  readonly id: number | null;
  readonly company: number;
  readonly happenedAt: number;
}

/** Indices start here, which leaves them digits to differ in. */
const since = Date.UTC(2026, 0, 1);
/** A company that only the new API has. */
export const strangerCompany = 9;
/** Enough for some pages. */
const recordsMax = 90;

/** The ledger. */
export class Ledger {
  readonly shown: Readonly<Record<Side, Shown[]>> = { old: [], new: [] };
  readonly records: Entry[] = [];
  readonly #traits: Traits;
  readonly #random: Random;
  /** The last record that a twin can be made of. */
  #last: Entry | null = null;

  constructor(traits: Traits, random: Random, now: number) {
    this.#traits = traits;
    this.#random = random;
    for (let n = 0; n < traits.history; n += 1) {
      const at = now - random.below(random.pick([hourMs, 6 * hourMs, 40 * hourMs]));
      this.#add(at, at);
    }
  }

  /** Some records more. */
  grow(now: number): void {
    const { burst, late } = this.#traits;
    const random = this.#random;
    for (let n = 1 + random.below(burst); n > 0 && this.records.length < recordsMax; n -= 1) {
      const isLate = late !== 'never' && random.chance(0.15);
      const longest = late === 'very' ? 30 * hourMs : 20 * minuteMs;
      this.#add(now - random.below(isLate ? longest : 2_000), now);
    }
  }

  #add(at: number, now: number): void {
    const { twins, versions, coarse } = this.#traits;
    const random = this.#random;
    const n = this.records.length;
    const isTwin = twins && this.#last !== null && random.chance(0.2);
    const other = versions && n > 0 && random.chance(0.25) ? random.pick(this.records) : null;
    const entry: Entry =
      isTwin && this.#last !== null
        ? { ...this.#last, n }
        : other === null
          ? this.#entry(n, coarse ? Math.floor(at / 1_000) * 1_000 : at)
          : { ...other, n, mark: `m${n}` };
    this.records.push(entry);
    if (entry.id === null) this.#last = entry;
    const alone = this.#aloneOn(entry.company);
    for (const side of ['old', 'new'] as const) {
      if (alone === null || alone === side) this.#show(entry, side, now);
    }
  }

  #entry(n: number, happenedAt: number): Entry {
    const { ids, companies, stranger, shared } = this.#traits;
    const random = this.#random;
    const company = stranger && random.chance(0.15) ? strangerCompany : 1 + random.below(companies);
    const inCompany = this.records.filter((other) => other.company === company).length;
    const hasId = ids === 'all' || (ids === 'some' && random.chance(0.6));
    const id = hasId ? 100 + (shared ? inCompany : n) : null;
    return { n, mark: `m${n}`, company, happenedAt, id };
  }

  /** The one side that shows a record; null: both do. */
  #aloneOn(company: number): Side | null {
    if (company === strangerCompany) return 'new';
    if (this.#random.chance(this.#traits.old.alone)) return 'old';
    return this.#random.chance(this.#traits.new.alone) ? 'new' : null;
  }

  #show(record: Entry, side: Side, now: number): void {
    const { lagMs, retentionMs, sorted, order } = this.#traits[side];
    const random = this.#random;
    const shownAt = now + random.below(lagMs + 1);
    const happenedAt = timeOn(record, side, this.#traits);
    const along = (sorted === 'time' ? happenedAt : shownAt) - since + random.next() * 0.99;
    this.shown[side].push({
      ...{ record, side, happenedAt, shownAt },
      text: JSON.stringify(formOf(record, side, this.#traits)),
      goneAt: retentionMs === null ? Number.POSITIVE_INFINITY : shownAt + retentionMs,
      place: order === 'oldest_first' ? along : -along,
    });
  }
}

/** The time of a record by a side's clock. */
function timeOn({ happenedAt }: Entry, side: Side, { aheadMs, oldTimes }: Traits): number {
  if (side === 'new') return happenedAt + aheadMs;
  return oldTimes === 'epoch_s' ? Math.floor(happenedAt / 1_000) * 1_000 : happenedAt;
}

/** A record as a side shows it. */
function formOf(record: Entry, side: Side, traits: Traits): JsonObject {
  const { mark, id, company } = record;
  const { unrelated, idMoved, fieldMoved, differs, oldShowsCompany, oldTimes } = traits;
  const time = timeOn(record, side, traits);
  const actor = Number(mark.slice(1)) % 3;
  if (side === 'old') {
    const times = { iso: new Date(time).toISOString(), epoch_ms: time, epoch_s: time / 1_000 };
    return {
      ...(id !== null && { [idMoved ? 'eventId' : 'id']: id }),
      ...{ eventTime: times[oldTimes], actionName: 'login', mark },
      ...(oldShowsCompany && { companyId: company }),
      actorId: actor,
      ...(differs !== null && { requestSource: 'old' }),
    };
  }
  return {
    ...(id !== null && { id: unrelated ? `new-${id}` : String(id) }),
    ...{ event_time: new Date(time).toISOString(), action_name: 'login', mark },
    company_id: String(company),
    ...(fieldMoved ? { actor: { uid: String(actor) } } : { actor_id: String(actor) }),
    ...(differs !== null && { request_source: 'new' }),
  };
}
