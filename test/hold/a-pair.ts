// A pair of two lists in a store, and its time, for the tests of this directory.

import { hash } from 'node:crypto';
import type { ListStream, Stream } from '../../src/contracts/source.ts';
import type { NewPage } from '../../src/contracts/spool.ts';
import type { PairSide } from '../../src/contracts/succession.ts';
import { type Pairing, pairingsOf, sideIn } from '../../src/fetch/succession/pairing.ts';
import { pairedPage } from '../../src/fetch/succession/side.ts';
import { Store } from '../../src/hold/store.ts';
import { tempDir } from '../support/temp.ts';

/** When it begins; each record happens then. */
const begun = Date.UTC(2026, 10, 1);

/** How the pair is made. */
export interface PairOptions {
  readonly patienceMs: number;
  readonly overlapMs?: number;
  /** How often the old side is polled. */
  readonly everyMs?: number;
  readonly bytesMax?: number;
}

const list = (source: string): Stream =>
  ({ kind: 'list', source, name: source, id: 'id', time: ['at'] }) as unknown as ListStream;

/** The pair. */
export class APair {
  readonly #dir = tempDir();
  readonly #options: PairOptions;
  #store: Store;
  now = begun;

  constructor(options: PairOptions) {
    this.#options = options;
    this.#store = this.#opened();
  }

  get #pairings(): readonly Pairing[] {
    const { patienceMs, overlapMs = 60_000, everyMs } = this.#options;
    const succeeds = { source: 'audit', fields: {}, ignore: [], overlapMs, patienceMs };
    const schedule = everyMs === undefined ? undefined : { everyMs };
    return pairingsOf([
      { name: 'audit', streams: [list('audit')], schedule },
      { name: 'late', streams: [list('late')], schedule: { everyMs: 100 }, succeeds },
    ]);
  }

  #opened(): Store {
    const { bytesMax } = this.#options;
    const settings = { dir: this.#dir, sync: 'none' as const, keepMs: 1e12 };
    const store = new Store(bytesMax === undefined ? settings : { ...settings, bytesMax });
    store.retainFor([]);
    const plans = this.#pairings.map(({ plan }) => plan);
    store.transaction(() => store.pairs.settle(plans, this.now));
    return store;
  }

  restart(): void {
    this.#store.close();
    this.#store = this.#opened();
  }

  /** A side shows records: an id each, or members of their own. */
  shows(side: PairSide, records: readonly (number | object)[]): void {
    const source = side === 'old' ? 'audit' : 'late';
    const all = records.map((one) => ({
      at: begun,
      ...(typeof one === 'number' ? { id: one } : one),
    }));
    const uids = all.map((one) => hash('sha256', JSON.stringify([side, one]), 'buffer'));
    const context = { source, stream: source, kind: 'log' as const, fetchedAt: this.now };
    const page: NewPage = {
      ...{ context, body: Buffer.from(JSON.stringify(all)), items: '', kept: null },
      uids: Buffer.concat(uids),
    };
    const of = sideIn(this.#pairings, source);
    const pages = of === null ? [] : [pairedPage(page, of)];
    this.#store.transaction(() => this.#store.append({ stream: source, pages }, this.now));
  }

  /** A whole poll of the old side that begins now. */
  reads(): void {
    this.#store.transaction(() => this.#store.receipts.reached('audit', this.now, this.now));
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

  turn(phase: 'shadow' | 'cut_over'): void {
    const wish = { pair: 'late', phase, isForced: true, unread: null };
    this.#store.transaction(() => this.#store.cutOver(wish, this.now));
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
