// The register of sinks and what it keeps (rule by rule): pages wait for a removed sink from when it was first missing,
// over restarts; a full spool releases them and reports each event once, over kills too; a sink that was missing before the
// register existed is listed and keeps nothing. A kill is the files as they lie on disk at that moment.

import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { KnownSink, RunningSinks } from '../../src/hold/known-sinks.ts';
import { Store } from '../../src/hold/store.ts';
import { removeSink } from '../../src/run/moves.ts';
import { removedSinksOf } from '../../src/watch/removed-sinks.ts';
import { readState } from '../../src/watch/state.ts';
import { aPage } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

const removedSinksMs = 1_000;

/** A state whose processes start, run and are killed one after the other. */
class Runs {
  dir = tempDir();
  store: Store;
  readonly #bytesMax: number;

  constructor(bytesMax = 1e9) {
    this.#bytesMax = bytesMax;
    this.store = this.#open();
  }

  #open(): Store {
    const { dir } = this;
    return new Store({ dir, sync: 'full', keepMs: 0, removedSinksMs, bytesMax: this.#bytesMax });
  }

  /** Starts or reloads with these sinks at a time; `others`: those of other processes. */
  runs(own: readonly string[], now: number, rest: Partial<RunningSinks> = {}): void {
    const { store } = this;
    const running = { own, others: [], isAll: true, ...rest };
    store.transaction(() => store.knownSinks.settle(running, store.gauge().oldest, now));
    store.retainFor(own);
  }

  restart(): void {
    this.store.close();
    this.store = this.#open();
  }

  /** Another process gets the files as they are now; what the first one does after that is gone. */
  kill(): void {
    const to = tempDir();
    for (const name of ['sluice.db', 'sluice.db-wal']) cpSync(join(this.dir, name), join(to, name));
    this.store.close();
    this.dir = to;
    this.store = this.#open();
  }

  hold(events: number, { pad = 0, pages = 1 } = {}): void {
    const { store } = this;
    const ids = Array.from({ length: events }, (_, n) => `${store.end}-${n}`);
    for (let page = 0; page < pages; page += 1) {
      store.transaction(() => store.hold(aPage({ ids, pad }), 0));
    }
  }

  /** Events that wait for a destination of a sink at fault; its position has passed them. */
  setAside(sink: string, events: number, bytes = 100): void {
    const { store } = this;
    const context = { source: 'audit', stream: 'audit', kind: 'audit', fetchedAt: 0 } as const;
    const aside = Array.from({ length: events }, (_, offset) => ({
      ...{ uid: `${sink}-${offset}`, offset, reason: 'closed', destination: 'index', context },
      record: new Uint8Array(bytes),
    }));
    const { position } = store.progress(sink);
    store.transaction(() => store.acknowledge(sink, { position, aside }, 0));
  }

  asideOf(sink: string): number {
    return this.store.aside.read(sink, null, { after: 0, most: 1_000 }).length;
  }

  pass(sink: string, position = this.store.end): void {
    const { store } = this;
    store.transaction(() => store.acknowledge(sink, { position }, 0));
  }

  prune(now: number): void {
    const { store } = this;
    store.transaction(() => store.prune(now));
  }

  get held(): number {
    return this.store.held().events;
  }

  known(name: string): KnownSink | undefined {
    return this.store.knownSinks.all().get(name);
  }
}

/** `es` has passed 10 of 30 events when it leaves at 100, and `disk` all. */
function withoutEs(bytesMax?: number): Runs {
  const runs = new Runs(bytesMax);
  runs.runs(['disk', 'es'], 0);
  runs.hold(10, { pages: 3 });
  runs.pass('es', 10);
  runs.pass('disk');
  runs.restart();
  runs.runs(['disk'], 100);
  return runs;
}

test('the time of a removed sink counts from when it was first missing, over restarts', () => {
  const runs = withoutEs();
  runs.restart();
  runs.runs(['disk'], 900);
  runs.prune(1_099);
  const [since, before] = [runs.known('es')?.missingSince, runs.held];

  runs.prune(1_100);

  expect([since, before]).toEqual([100, 20]);
  expect(runs.held).toBe(0);
  expect(runs.known('es')).toMatchObject({ keeps: false, missingSince: 100 });
  expect(runs.store.knownSinks.unreported()).toEqual([{ sink: 'es', events: 20, why: 'expired' }]);
});

const hourMs = 3_600_000;
const tenYearsMs = 10 * 365 * 24 * hourMs;

test('a clock that is ahead for less than an hour ends the time of no removed sink, over restarts', () => {
  const runs = withoutEs();
  runs.prune(200);

  runs.prune(tenYearsMs);
  runs.restart();
  runs.runs(['disk'], tenYearsMs + 1);
  runs.prune(tenYearsMs + hourMs - 1);
  const ahead = runs.held;
  // The clock is right again.
  runs.prune(1_099);
  const right = runs.held;
  // Ahead again: the hour counts from now.
  runs.prune(tenYearsMs + hourMs);
  const again = runs.held;
  runs.prune(1_100);

  expect([ahead, right, again]).toEqual([20, 20, 20]);
  expect(runs.held).toBe(0);
});

test('a step of the clock that holds for an hour counts, as after a long pause of the process', () => {
  const runs = withoutEs();
  runs.prune(200);
  runs.restart();

  runs.runs(['disk'], tenYearsMs);
  runs.prune(2 * tenYearsMs);
  runs.prune(tenYearsMs);
  const atOnce = runs.held;
  runs.restart();
  runs.runs(['disk'], tenYearsMs + hourMs);
  runs.prune(tenYearsMs + hourMs);

  expect(atOnce).toBe(20);
  expect(runs.held).toBe(0);
});

test('the time of a sink that a clock of the future missed counts from the next start', () => {
  const runs = withoutEs();
  runs.runs(['disk', 'es'], 200);
  runs.runs(['disk'], 1e9);
  runs.restart();

  runs.runs(['disk'], 300);

  expect(runs.known('es')).toMatchObject({ keeps: true, missingSince: 300 });
  runs.prune(1_300);
  expect(runs.held).toBe(0);
});

test('a sink that returns in time starts a time of its own when it leaves again', () => {
  const runs = withoutEs();
  runs.runs(['disk', 'es'], 1_000);
  const gaps = runs.store.knownSinks.gaps(['es'], runs.store.gauge().oldest);
  runs.runs(['disk'], 1_050);

  runs.prune(1_100);

  expect(gaps).toEqual([]);
  expect(runs.known('es')).toMatchObject({ missingSince: 1_050, keeps: true });
  expect(runs.held).toBe(20);
});

test('a sink that returns after its time begins at the oldest page held, and the gap has its numbers', () => {
  const runs = withoutEs();
  runs.prune(1_100);
  runs.hold(10);

  const gaps = runs.store.knownSinks.gaps(['es'], runs.store.gauge().oldest);
  runs.runs(['disk', 'es'], 1_200);

  expect(gaps).toEqual([{ sink: 'es', from: 10, until: 30 }]);
  expect(runs.known('es')).toMatchObject({ missingSince: null, keeps: true, begun: 30 });
});

test('a sink that returns in another process keeps its gap for the process that reports it', () => {
  const runs = withoutEs();
  runs.prune(1_100);
  runs.hold(10);

  runs.runs(['disk'], 1_200, { others: ['es'] });
  const { oldest } = runs.store.gauge();

  expect(runs.known('es')).toMatchObject({ missingSince: null, keeps: true });
  expect(runs.store.knownSinks.gaps(['es'], oldest)).toEqual([{ sink: 'es', from: 10, until: 30 }]);
});

test('events of two removals that no report has named are counted together', () => {
  const runs = withoutEs();
  runs.prune(1_100);
  runs.runs(['disk', 'es'], 1_200);
  runs.hold(5);
  runs.pass('disk');
  runs.runs(['disk'], 1_300);

  runs.prune(2_300);

  expect(runs.store.knownSinks.unreported()).toEqual([{ sink: 'es', events: 25, why: 'expired' }]);
});

test('no sink is missing while it is not known which sinks the other processes have', () => {
  const runs = withoutEs();
  runs.runs(['disk', 'es'], 200);

  runs.runs(['disk'], 300, { isAll: false });
  const unknown = runs.known('es')?.missingSince;
  runs.runs(['disk'], 400, { others: ['es'] });
  runs.prune(1e9);

  expect([unknown, runs.known('es')?.missingSince]).toEqual([null, null]);
  expect(runs.held).toBe(20);
});

test('a full spool releases the oldest pages that only a removed sink needs, and counts its losses', () => {
  const runs = new Runs(10_000);
  runs.runs(['disk', 'es'], 0);
  runs.hold(2, { pad: 500, pages: 20 });
  runs.pass('es', 3);
  runs.runs(['disk'], 100);
  runs.prune(100);
  const whileNeeded = runs.held;
  runs.pass('disk', 16);

  runs.prune(100);

  const { oldest, bytes } = runs.store.gauge();
  expect(whileNeeded).toBe(40);
  // No page that the sink of the config needs, though the bound is still exceeded.
  expect([oldest, bytes > 10_000]).toEqual([16, true]);
  expect(runs.known('es')).toMatchObject({ releasedTo: 16, released: 13, keeps: true });

  runs.pass('disk');
  runs.prune(100);
  const after = runs.store.gauge();
  expect(after.bytes).toBeLessThan(10_000);
  expect(runs.known('es')).toMatchObject({ releasedTo: after.oldest, released: after.oldest - 3 });
  expect(runs.store.knownSinks.gaps(['es'], after.oldest)).toEqual([
    { sink: 'es', from: 3, until: after.oldest },
  ]);
});

test('events that were set aside for a removed sink go with it', () => {
  const given = withoutEs();
  const expired = withoutEs();
  for (const runs of [given, expired]) {
    runs.setAside('es', 4);
    runs.setAside('disk', 3);
  }
  const pending = (runs: Runs) => {
    const present = { present: ['disk'], removedSinksMs };
    return removedSinksOf(readState(runs.dir), present).map((one) => one.pending);
  };
  const before = pending(given);

  const { events } = given.store.transaction(() => removeSink(given.store, 'es', ['disk']));
  expired.prune(1_100);

  expect([before, events]).toEqual([[24], 24]);
  for (const runs of [given, expired]) {
    expect([runs.asideOf('es'), runs.asideOf('disk')]).toEqual([0, 3]);
  }
  expect(expired.store.knownSinks.unreported()).toEqual([
    { sink: 'es', events: 24, why: 'expired' },
  ]);
});

test('a full spool releases events set aside for a removed sink first, oldest first', () => {
  const runs = new Runs(10_000);
  runs.runs(['disk', 'es'], 0);
  runs.hold(2, { pad: 500, pages: 6 });
  runs.setAside('disk', 2);
  runs.setAside('es', 20);
  const whileThere = runs.store.gauge().bytes;
  runs.runs(['disk'], 100);

  runs.prune(100);

  const left = runs.asideOf('es');
  expect(whileThere).toBeGreaterThan(10_000);
  expect(runs.store.gauge().bytes).toBeLessThan(10_000);
  expect(left).toBeGreaterThan(0);
  expect([runs.asideOf('disk'), runs.held]).toEqual([2, 12]);
  expect(runs.known('es')).toMatchObject({ released: 20 - left, keeps: true });
  expect(runs.store.aside.read('es', null, { after: 0, most: 1 })[0]?.offset).toBe(20 - left);
});

test('events set aside for a sink of the config count where pages of a removed one are released', () => {
  const runs = new Runs(10_000);
  runs.runs(['disk', 'es'], 0);
  runs.hold(2, { pad: 500, pages: 6 });
  runs.setAside('disk', 10);
  runs.pass('disk');
  runs.runs(['disk'], 100);
  const before = runs.store.gauge().bytes;

  runs.prune(100);

  expect(before).toBeGreaterThan(10_000);
  expect(runs.store.gauge().bytes).toBeLessThan(10_000);
  expect(runs.asideOf('disk')).toBe(10);
  expect(runs.held).toBeGreaterThan(0);
});

test('a full spool releases nothing that a sink of another process needs', () => {
  const runs = new Runs(10_000);
  runs.runs(['disk'], 0, { others: ['es'] });
  runs.hold(2, { pad: 500, pages: 20 });
  runs.pass('disk');

  runs.prune(1e9);

  expect([runs.held, runs.store.passed()]).toEqual([40, 0]);
  expect(runs.store.knownSinks.unreported()).toEqual([]);
});

test('a page for another sink alone counts for no removed one', () => {
  const runs = new Runs(5_000);
  runs.runs(['disk', 'es'], 0);
  const only = { ...aPage({ ids: ['a', 'b'], pad: 500 }), onlySink: 'disk' };
  runs.store.transaction(() => runs.store.hold(only, 0));
  runs.hold(2, { pad: 500, pages: 5 });
  runs.pass('disk');
  runs.runs(['disk'], 100);

  runs.prune(100);

  const { oldest } = runs.store.gauge();
  expect(oldest).toBeGreaterThan(2);
  expect(runs.known('es')).toMatchObject({ released: oldest - 2 });
});

test('a sink that was missing before the register existed is listed and keeps no pages', () => {
  const runs = new Runs();
  // An older version: positions, and nothing registered.
  runs.pass('disk', 0);
  runs.hold(10, { pages: 3 });
  runs.pass('old', 10);
  runs.pass('disk', 20);
  runs.restart();
  runs.runs(['disk'], 100);

  runs.prune(100);

  expect(runs.store.gauge().oldest).toBe(20);
  expect([...readState(runs.dir).sinks.keys()].sort()).toEqual(['disk', 'old']);
  expect(runs.known('old')).toBeUndefined();
  expect(runs.store.knownSinks.gaps(['old', 'new'], 20)).toEqual([
    { sink: 'old', from: 10, until: 20 },
  ]);
});

test('a kill between a release and its report loses no report and repeats none', () => {
  const runs = withoutEs();
  runs.prune(1_100);

  runs.kill();
  const after = runs.store.knownSinks.unreported();
  for (const one of after) runs.store.transaction(() => runs.store.knownSinks.reported(one, 1_200));
  runs.kill();
  runs.prune(1_300);

  expect(after).toEqual([{ sink: 'es', events: 20, why: 'expired' }]);
  expect(runs.store.knownSinks.unreported()).toEqual([]);
});

test('releases during a report stay to be reported', () => {
  const runs = withoutEs();
  const { knownSinks } = runs.store;
  const release = (to: number, events: number) => {
    const es = runs.known('es');
    if (es !== undefined) knownSinks.release(es, { to, events }, 200);
  };
  release(20, 10);
  const [first] = knownSinks.unreported();
  release(30, 10);

  if (first !== undefined) knownSinks.reported(first, 300);

  expect(first).toEqual({ sink: 'es', events: 10, why: 'full' });
  expect(knownSinks.unreported()).toEqual([first]);
});

test('a row that cannot be read counts as a sink that a process has', () => {
  const runs = withoutEs();
  runs.store.note('known_sink', 'es', '{"missingSince":"soon","keeps":1,"begun":-0.5}', 0);

  runs.prune(1e9);

  expect(runs.known('es')).toMatchObject({ missingSince: null, keeps: true, begun: 0 });
  expect(runs.held).toBe(20);
});

test('a sink that is given up leaves nothing but its dead letters', () => {
  const runs = withoutEs();
  const deadLetter = { offset: 1, uid: '00', reason: 'r', record: Buffer.from('{}') };
  const { context } = aPage({ ids: ['x'] });
  runs.store.transaction(() => runs.store.deadLetters.add('es', { ...deadLetter, context }, 0));
  for (const sink of ['es', 'disk']) runs.store.note('sink', sink, '{"type":"file"}', 0);

  runs.store.transaction(() => runs.store.knownSinks.forget('es'));
  runs.prune(100);

  expect([runs.known('es'), runs.held]).toEqual([undefined, 0]);
  expect(runs.store.positions().has('es')).toBe(false);
  expect([...runs.store.noted('sink').keys()]).toEqual(['disk']);
  expect(runs.store.deadLetters.counts().get('es')).toBe(1);
});
