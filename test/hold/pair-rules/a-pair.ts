// A pair of two lists in a store, and its time, for the rules of this directory. The code may be a copy with a flaw in it.

import { hash } from 'node:crypto';
import type { ListStream, Stream } from '../../../src/contracts/source.ts';
import type { NewPage } from '../../../src/contracts/spool.ts';
import type { PairSide } from '../../../src/contracts/succession.ts';
import type { Cutover } from '../../../src/hold/pair-cutover.ts';
import * as hold from '../../../src/hold/store.ts';
import * as pairing from '../../../src/succession/pairing.ts';
import * as side from '../../../src/succession/side.ts';
import { tempDir } from '../../support/temp.ts';

/** When it begins; each record happens then. */
export const begun = Date.UTC(2026, 10, 1);

/** The code of a pair. */
export type PairCode = Pick<typeof pairing, 'pairingsOf' | 'sideIn'> &
  Pick<typeof side, 'pairedPage'> &
  Pick<typeof hold, 'Store'>;

/** As it is. */
export const ownCode: PairCode = { ...pairing, ...side, ...hold };

/** Makes a pair of some code. */
export type MakePair = (options?: Partial<PairOptions>) => APair;

/** What must hold of a pair. Throws where it does not. */
export interface PairRule {
  readonly name: string;
  check(aPair: MakePair): void;
}

/** How the pair is made. */
export interface PairOptions {
  readonly patienceMs: number;
  readonly overlapMs?: number;
  /** How often the old side is polled. */
  readonly everyMs?: number;
  readonly bytesMax?: number;
  /** Records have no ids. */
  readonly hasNoIds?: boolean;
}

const list = (source: string, id: string | null): Stream =>
  ({ kind: 'list', source, name: source, id, time: ['at'] }) as unknown as ListStream;

/** The pair. */
export class APair {
  #dir = tempDir();
  readonly #options: PairOptions;
  readonly #code: PairCode;
  #store: hold.Store;
  now = begun;

  constructor(options: PairOptions, code: PairCode = ownCode) {
    this.#options = options;
    this.#code = code;
    this.#store = this.#opened();
  }

  get #pairings(): readonly pairing.Pairing[] {
    const { patienceMs, overlapMs = 60_000, everyMs, hasNoIds = false } = this.#options;
    const id = hasNoIds ? null : 'id';
    const succeeds = { source: 'audit', fields: {}, ignore: [], overlapMs, patienceMs };
    const schedule = everyMs === undefined ? undefined : { everyMs };
    return this.#code.pairingsOf([
      { name: 'audit', streams: [list('audit', id)], schedule },
      { name: 'late', streams: [list('late', id)], schedule: { everyMs: 100 }, succeeds },
    ]);
  }

  #opened(): hold.Store {
    const { bytesMax } = this.#options;
    const settings = { dir: this.#dir, sync: 'none' as const, keepMs: 1e12 };
    const store = new this.#code.Store(
      bytesMax === undefined ? settings : { ...settings, bytesMax },
    );
    store.retainFor([]);
    const plans = this.#pairings.map(({ plan }) => plan);
    store.transaction(() => store.pairs.settle(plans, this.now));
    return store;
  }

  restart(): void {
    this.moveTo((dir) => dir);
  }

  /** Restarts with the state that is made of the present one. */
  moveTo(made: (dir: string) => string): void {
    this.#store.close();
    this.#dir = made(this.#dir);
    this.#store = this.#opened();
  }

  /** A side shows records: an id each, members of their own, or their source text. */
  shows(side: PairSide, records: readonly (number | string | object)[]): void {
    const source = side === 'old' ? 'audit' : 'late';
    const all = records.map((one) => {
      if (typeof one === 'string') return one;
      return JSON.stringify({ at: begun, ...(typeof one === 'number' ? { id: one } : one) });
    });
    const uids = all.map((text) => hash('sha256', `${side}${text}`, 'buffer'));
    const context = { source, stream: source, kind: 'log' as const, fetchedAt: this.now };
    const page: NewPage = {
      ...{ context, body: Buffer.from(`[${all}]`), items: '', kept: null },
      uids: Buffer.concat(uids),
    };
    const of = this.#code.sideIn(this.#pairings, source);
    const pages = of === null ? [] : [this.#code.pairedPage(page, of)];
    this.#store.transaction(() => this.#store.append({ stream: source, pages }, this.now));
  }

  /** A whole poll that begins now; of the old side, if no other is named. */
  reads(stream = 'audit'): void {
    this.#store.transaction(() => this.#store.receipts.reached(stream, this.now, this.now));
  }

  /** A poll of the old side that fails. */
  fails(): void {
    const facts = JSON.stringify({ state: 'retrying', error: { code: 'upstream_unreachable' } });
    this.#store.transaction(() => this.#store.note('stream', 'audit', facts, this.now));
  }

  /** Ticks of the spool until so long after the beginning. */
  until(ms: number): void {
    for (; this.now < begun + ms; this.now += 500) this.tick();
  }

  tick(): void {
    this.#store.transaction(() => this.#store.releaseWaiting(this.now));
  }

  turn(phase: 'shadow' | 'cut_over', wish: { unread?: string; isForced?: boolean } = {}): Cutover {
    const whole = { pair: 'late', phase, isForced: true, unread: null, ...wish };
    return this.#store.transaction(() => this.#store.cutOver(whole, this.now));
  }

  /** Events of records. */
  get events(): number {
    return this.texts().length;
  }

  /** A member of each event's record, in order. */
  texts(member = 'id'): readonly unknown[] {
    return this.#store.read(0, 1e9).flatMap(({ body, kept, context }) => {
      if (context.kind !== 'log') return [];
      const records = JSON.parse(Buffer.from(body).toString()) as Record<string, unknown>[];
      return records.filter((_, index) => kept?.includes(index) ?? true).map((one) => one[member]);
    });
  }

  /** Bytes that count for records that wait or are left out. */
  get waitingBytes(): number {
    return this.#store.gauge().waiting ?? 0;
  }

  get report() {
    return structuredClone(this.#store.pairReports(this.now)[0]);
  }

  close(): void {
    this.#store.close();
  }
}
