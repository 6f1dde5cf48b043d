// Upstream's original pages, some of which show a record again. They are the truth that an archive is judged by, and
// nothing in the simulated world can change them.

import { hash } from 'node:crypto';
import type { HeldPage } from '../../../src/contracts/spool.ts';
import type { Random } from '../../../src/sandbox/random.ts';

/** A record as it was sent. */
export interface TrueRecord {
  readonly text: string;
  readonly sha256: string;
  /** Of its event. */
  readonly uid: string;
  /** False: it was shown before, and became no event. */
  readonly isKept: boolean;
}

/** A page as it was sent and held. */
export interface TruePage {
  readonly held: HeldPage;
  readonly sha256: string;
  readonly uidsSha256: string;
  readonly records: readonly TrueRecord[];
}

const head = '{"data":[';
const tail = '],"next_cursor":null}';

/** The body of a page with `null` instead of some records. */
export function bodyOf(records: readonly TrueRecord[], erased: ReadonlySet<number>): Buffer {
  const texts = records.map(({ text }, place) => (erased.has(place) ? 'null' : text));
  return Buffer.from(`${head}${texts.join(',')}${tail}`);
}

/** Upstream. */
export class Upstream {
  /** By spool and number of the event after it. */
  readonly pages = new Map<string, TruePage>();
  readonly #random: Random;
  readonly #recent: TrueRecord[] = [];
  #count = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** The SHA-256 of the record with this uid; null where there is none. */
  shaOf(uid: string | null | undefined): string | null {
    return this.#recent.find((one) => one.uid === uid)?.sha256 ?? null;
  }

  /** Uids of records that were sent lately. */
  get uids(): readonly string[] {
    return this.#recent.map(({ uid }) => uid);
  }

  /** The next page, its events numbered from `first` on in this spool. */
  send(spool: string, first: number, fetchedAt: number): TruePage {
    const stream = this.#random.pick(['audit', 'audit', 'logs/a']);
    const records: TrueRecord[] = [];
    if (this.#recent.length > 0 && this.#random.chance(0.2)) {
      records.push({ ...this.#random.pick(this.#recent), isKept: false });
    }
    const count = this.#random.below(3) + (records.length === 0 ? 1 : 0);
    for (let i = 0; i < count; i += 1) records.push(this.#record());
    const kept = records.flatMap(({ isKept }, place) => (isKept ? [place] : []));
    const uids = Buffer.from(kept.map((place) => records[place]?.uid ?? '').join(''), 'hex');
    const body = bodyOf(records, new Set());
    const indexes = kept.length === records.length ? null : Uint32Array.from(kept);
    const frame = Buffer.concat([uids, Buffer.from(indexes?.buffer ?? new ArrayBuffer(0))]);
    const page: TruePage = {
      held: {
        context: { source: 'audit', stream, kind: 'audit', fetchedAt },
        ...{ body, items: 'data', kept: indexes, uids, first, count: kept.length },
      },
      ...{ sha256: hash('sha256', body, 'hex'), uidsSha256: hash('sha256', frame, 'hex'), records },
    };
    for (const record of records) if (record.isKept) this.#recent.push(record);
    // Pages without events share their number with the page before: these are found by their order.
    const key = `${spool} ${first + kept.length}`;
    const known = this.pages.get(key);
    if (known !== undefined && kept.length === 0) return this.send(spool, first, fetchedAt);
    this.pages.set(key, page);
    return page;
  }

  #record(): TrueRecord {
    this.#count += 1;
    const text = `{"id":"r${this.#count}","v":${this.#random.below(1_000)}}`;
    const uid = hash('sha256', `uid ${this.#count}`, 'hex');
    return { text, sha256: hash('sha256', text, 'hex'), uid, isKept: true };
  }
}
