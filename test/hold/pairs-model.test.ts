// A pair as worlds: which side shows a record when, in any order, with commits that fail, restarts, cutovers and rollbacks, and
// with a side that is dead for a while or for good. However it goes, each record becomes an event once, at most `patience` after
// it was first shown.

import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ListStream, Stream } from '../../src/contracts/source.ts';
import type { NewPage } from '../../src/contracts/spool.ts';
import type { PairSide } from '../../src/contracts/succession.ts';
import { Store } from '../../src/hold/store.ts';
import { pairingsOf, sideIn } from '../../src/succession/pairing.ts';
import { pairedEntry } from '../../src/succession/side.ts';
import { tempDir } from '../support/temp.ts';

const seeds = Number(process.env.PAIR_SEEDS ?? 25);
const patienceMs = 1_000;
const begun = Date.UTC(2026, 10, 1);

/** Numbers from 0 up to 1, the same for a seed each time. */
function randomOf(seed: number): () => number {
  let state = (seed + 1) * 7_919;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

interface Shown {
  readonly side: PairSide;
  readonly company: string;
  readonly at: number;
  readonly text: string;
  readonly mark: string;
}

interface World {
  readonly companies: readonly string[];
  readonly hasIds: boolean;
  readonly shown: readonly Shown[];
  /** Marks of records with an id that has two versions. */
  readonly versions: ReadonlySet<string>;
  /** When a side cannot be read. */
  readonly dead: { readonly side: PairSide; readonly from: number; readonly until: number } | null;
}

function worldOf(seed: number): World {
  const random = randomOf(seed);
  const pick = (count: number) => Math.floor(random() * count);
  const companies = random() < 0.3 ? ['1', '2'] : ['1'];
  const hasIds = random() < 0.8;
  const hasDead = random() < 0.5;
  const hasVersions = hasIds && companies.length === 1;
  const aloneShare = random() < 0.5 ? 0 : 0.1;
  const shown: Shown[] = [];
  const doubled = new Set<string>();
  const count = 20 + pick(60);
  for (let number = 0; number < count; number += 1) {
    const company = companies[number % companies.length] ?? '1';
    // An id may occur in two companies, and have two versions.
    const id = companies.length > 1 ? 100 + (number >> 1) : 100 + number;
    const versions = hasVersions && random() < 0.1 ? 2 : 1;
    for (let version = 0; version < versions; version += 1) {
      const mark = `m${number}.${version}`;
      const time = begun + number * 250 + version;
      // Two versions of which each side shows another one are a record that differs.
      const alone =
        versions === 1 && random() < aloneShare ? (random() < 0.5 ? 'old' : 'new') : null;
      for (const side of ['old', 'new'] as const) {
        if (alone !== null && alone !== side) continue;
        const late = random() < 0.2 ? pick(5_000) : pick(400);
        const text =
          side === 'old'
            ? { ...(hasIds && { id }), createdAt: new Date(time).toISOString(), textOf: mark }
            : { ...(hasIds && { id: String(id) }), created_at: time, text_of: mark };
        const whose = side === 'old' ? { companyId: Number(company) } : {};
        shown.push({
          side,
          company,
          at: time + late,
          text: JSON.stringify({ ...text, ...whose }),
          mark,
        });
      }
      if (versions === 2) doubled.add(mark);
    }
  }
  const kind = random() / 2;
  const from = begun + pick(8_000);
  const until = kind < 0.2 ? Number.POSITIVE_INFINITY : from + pick(8_000);
  const dead = hasDead
    ? { side: random() < 0.7 ? ('old' as const) : ('new' as const), from, until }
    : null;
  return {
    companies,
    hasIds,
    shown: shown.toSorted((a, b) => a.at - b.at),
    versions: doubled,
    dead,
  };
}

function streamOf(side: PairSide, company: string | null, hasIds: boolean): ListStream {
  const source = side === 'old' ? 'audit' : 'late';
  return {
    ...{ kind: 'list', source, name: company === null ? source : `${source}/${company}` },
    ...(company !== null && { company }),
    ...{ id: hasIds ? 'id' : null, time: [side === 'old' ? 'createdAt' : 'created_at'] },
  } as unknown as ListStream;
}

class Runner {
  readonly #dir = tempDir();
  readonly #world: World;
  readonly #streams: readonly Stream[];
  #store: Store;
  now = begun;

  constructor(world: World) {
    this.#world = world;
    const { companies, hasIds } = world;
    const late = companies.map((company) => streamOf('new', company, hasIds));
    this.#streams = [streamOf('old', null, hasIds), ...late];
    this.#store = this.#opened();
  }

  get #pairings() {
    const [old, ...late] = this.#streams as [Stream, ...Stream[]];
    const succeeds = { source: 'audit', fields: {}, ignore: [], overlapMs: 60_000, patienceMs };
    return pairingsOf([
      { name: 'audit', streams: [old] },
      { name: 'late', streams: late, succeeds },
    ]);
  }

  #opened(): Store {
    const store = new Store({ dir: this.#dir, sync: 'none', keepMs: 1e12 });
    store.retainFor([]);
    const plans = this.#pairings.map(({ plan }) => plan);
    store.transaction(() => store.pairs.settle(plans, this.now));
    return store;
  }

  restart(): void {
    this.#store.close();
    this.#store = this.#opened();
  }

  /** Stores a page, at the first attempt or the second. */
  async read(shown: readonly Shown[], fails: boolean): Promise<void> {
    const [first] = shown;
    if (first === undefined) return;
    const { side, company } = first;
    const name = side === 'old' ? 'audit' : `late/${company}`;
    const stream = this.#streams.find((one) => one.name === name) as Stream;
    const source = side === 'old' ? 'audit' : 'late';
    const body = Buffer.from(`[${shown.map(({ text }) => text).join(',')}]`);
    const uids = shown.map(({ mark }) => createHash('sha256').update(`${side}${mark}`).digest());
    const page: NewPage = {
      context: {
        source,
        stream: name,
        kind: 'log',
        fetchedAt: this.now,
        ...(side === 'new' && { company }),
      },
      ...{ body, items: '', kept: null, uids: Buffer.concat(uids) },
    };
    const found = sideIn(this.#pairings, source);
    const entry = pairedEntry({ stream: name, pages: [page] }, stream, found);
    const commit = (isCut: boolean) =>
      this.#store.transaction(() => {
        this.#store.append(entry, this.now);
        if (isCut) throw new Error('cut');
      });
    if (fails) expect(() => commit(true)).toThrow();
    commit(false);
  }

  reached(): void {
    const { dead } = this.#world;
    for (const { name, source } of this.#streams) {
      const side = source === 'audit' ? 'old' : 'new';
      const isDead = dead?.side === side && this.now >= dead.from && this.now < dead.until;
      if (!isDead)
        this.#store.transaction(() => this.#store.receipts.reached(name, this.now, this.now));
    }
  }

  release(): void {
    this.#store.transaction(() => this.#store.releaseWaiting(this.now));
  }

  turn(): void {
    const isCut = this.#store.pairReports(this.now)[0]?.phase === 'cut_over';
    const wish = {
      pair: 'late',
      phase: isCut ? ('shadow' as const) : ('cut_over' as const),
      isForced: true,
      unread: null,
    };
    this.#store.transaction(() => this.#store.cutOver(wish, this.now));
  }

  get report() {
    return this.#store.pairReports(this.now)[0];
  }

  /** How often each mark is an event. */
  events(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { body, kept, context } of this.#store.read(0, 1e9)) {
      if (context.kind !== 'log') continue;
      const records = JSON.parse(Buffer.from(body).toString()) as Record<string, string>[];
      const indexes = kept === null ? records.keys() : kept.values();
      for (const index of indexes) {
        const { textOf, text_of } = records[index] ?? {};
        const mark = textOf ?? text_of ?? '';
        counts.set(mark, (counts.get(mark) ?? 0) + 1);
      }
    }
    return counts;
  }

  close(): void {
    this.#store.close();
  }
}

async function play(seed: number): Promise<void> {
  const world = worldOf(seed);
  const random = randomOf(seed + 1_000_003);
  const runner = new Runner(world);
  const { dead, shown } = world;
  const unread = { old: [] as Shown[], new: [] as Shown[] };
  let next = 0;
  const readable = (side: PairSide) =>
    !(dead?.side === side && runner.now >= dead.from && runner.now < dead.until);
  const late = new Map<string, number>();
  const first = new Map<string, number>();
  const readAll = async (side: PairSide, batch: readonly Shown[]) => {
    for (const { mark } of batch) if (!first.has(mark)) first.set(mark, runner.now);
    const pages =
      side === 'old'
        ? [batch]
        : world.companies.map((one) => batch.filter(({ company }) => company === one));
    for (const page of pages) await runner.read(page, random() < 0.1);
  };
  for (let step = 0; step < 160; step += 1) {
    runner.now += Math.floor(random() * 300);
    while ((shown[next]?.at ?? Number.POSITIVE_INFINITY) <= runner.now) {
      const one = shown[next] as Shown;
      unread[one.side].push(one);
      next += 1;
    }
    for (const side of random() < 0.5 ? (['old', 'new'] as const) : (['new', 'old'] as const)) {
      if (!readable(side) || random() < 0.2) continue;
      const batch = unread[side].splice(0);
      if (random() < 0.3) batch.reverse();
      await readAll(side, batch);
    }
    if (unread.old.length + unread.new.length === 0 || dead !== null) runner.reached();
    runner.release();
    if (random() < 0.03) runner.turn();
    if (random() < 0.05) runner.restart();
    if (step % 10 !== 0) continue;
    const events = runner.events();
    for (const [mark, at] of first) {
      // Of versions, the one whose equal is late is left out until that turns up.
      if (world.versions.has(mark)) continue;
      if (!events.has(mark) && runner.now - at > patienceMs && runner.report?.brake === null)
        late.set(mark, at);
    }
  }
  for (const side of ['old', 'new'] as const) {
    const rest = [...unread[side], ...shown.slice(next).filter((one) => one.side === side)];
    if (readable(side)) await readAll(side, rest);
  }
  runner.now += patienceMs + 1;
  runner.release();
  const events = runner.events();
  const requested = [...first.keys()];
  const held = runner.report?.brake === null ? 0 : (runner.report?.waiting ?? 0);
  expect({ seed, late: [...late].map(([mark, at]) => [mark, at, events.get(mark)]) }).toEqual({
    seed,
    late: [],
  });
  const lost = requested.filter((mark) => !events.has(mark));
  expect({ seed, lost: held > 0 ? [] : lost }).toEqual({ seed, lost: [] });
  expect({ seed, repeated: [...events].filter(([, count]) => count > 1) }).toEqual({
    seed,
    repeated: [],
  });
  runner.close();
}

test(`${seeds} worlds: each record is an event once, and none later than its patience`, async () => {
  const from = Number(process.env.PAIR_FROM ?? 0);
  for (let seed = from; seed < from + seeds; seed += 1) await play(seed);
});
