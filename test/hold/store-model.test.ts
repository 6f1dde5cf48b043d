// The database against plain lists: in any order of appends, reads, acknowledgements, dead letters put back, prunings,
// failed transactions, reopenings and crashes, it has the content of the lists, and no commit is ever undone. A crash
// is the files as they are on disk at that moment. SLUICE_SPOOL_RUNS and SLUICE_SPOOL_SEED set more runs.

import { cpSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { identityBytes } from '../../src/contracts/spool.ts';
import { Store } from '../../src/hold/store.ts';
import { anAppend, aPage } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

const sinks = ['a', 'b'] as const;
type Sink = (typeof sinks)[number];
const streams = ['audit', 'logs'] as const;
type Stream = (typeof streams)[number];
const keepMs = 100;
const bytesMax = 8_000;

type Action =
  | { readonly do: 'append'; readonly stream: Stream; readonly pages: readonly number[] }
  | { readonly do: 'acknowledge'; readonly sink: Sink; readonly share: number }
  | { readonly do: 'refuse'; readonly sink: Sink }
  | { readonly do: 'put back' }
  | { readonly do: 'read'; readonly share: number; readonly bytes: number }
  | { readonly do: 'prune'; readonly afterMs: number }
  | { readonly do: 'fail' }
  | { readonly do: 'reopen' }
  | { readonly do: 'crash'; readonly within: boolean };

const share = fc.nat(1_000).map((n) => n / 1_000);
const sink = fc.constantFrom(...sinks);
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      stream: fc.constantFrom(...streams),
      pages: fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 3 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('acknowledge' as const), sink, share }) },
  fc.record({ do: fc.constant('refuse' as const), sink }),
  fc.record({ do: fc.constant('put back' as const) }),
  fc.record({ do: fc.constant('read' as const), share, bytes: fc.nat(4_000) }),
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('prune' as const), afterMs: fc.nat(2 * keepMs) }),
  },
  fc.record({ do: fc.constant('fail' as const) }),
  fc.record({ do: fc.constant('reopen' as const) }),
  fc.record({ do: fc.constant('crash' as const), within: fc.boolean() }),
);

interface Page {
  readonly first: number;
  readonly end: number;
  readonly body: Uint8Array;
  readonly onlySink: string | undefined;
  readonly heldAt: number;
}

interface StreamModel {
  last: string | null;
  identities: number;
  trail: string[];
}

/** What the store should hold. */
class Model {
  pages: Page[] = [];
  end = 0;
  now = 1_000;
  readonly positions: Record<Sink, number> = { a: 0, b: 0 };
  readonly marks: Record<Sink, unknown> = { a: null, b: null };
  letters: { readonly sink: Sink; readonly uid: string }[] = [];
  readonly streams: Record<Stream, StreamModel> = {
    audit: { last: null, identities: 0, trail: [] },
    logs: { last: null, identities: 0, trail: [] },
  };

  get bytes(): number {
    return this.pages.reduce((sum, { body }) => sum + body.length, 0);
  }

  add(body: Uint8Array, count: number, onlySink?: string): void {
    const [first, heldAt] = [this.end, this.now];
    this.pages.push({ first, end: first + count, body, onlySink, heldAt });
    this.end += count;
  }

  prune(): void {
    const passed = Math.min(...Object.values(this.positions));
    for (let page = this.pages[0]; page !== undefined; page = this.pages[0]) {
      const requested = page.heldAt > this.now - keepMs && this.bytes <= bytesMax * 0.8;
      if (requested || page.end > passed) return;
      this.pages.shift();
    }
  }
}

function open(dir: string): Store {
  const store = new Store({ dir, sync: 'normal', keepMs, bytesMax });
  store.retainFor(sinks);
  return store;
}

/** The files as a crash leaves them. */
function crashed(dir: string): string {
  const to = tempDir();
  for (const name of ['sluice.db', 'sluice.db-wal']) cpSync(join(dir, name), join(to, name));
  return to;
}

/** A store, its model, and one action on both. */
class Run {
  readonly model = new Model();
  #dir = tempDir();
  #store = open(this.#dir);

  do(step: Action): void {
    const store = this.#store;
    const { model } = this;
    switch (step.do) {
      case 'append':
        this.#append(step.stream, step.pages);
        break;
      case 'acknowledge': {
        const position = Math.round(step.share * model.end);
        const mark = position % 2 === 0 ? { mark: { position } } : {};
        store.transaction(() => store.acknowledge(step.sink, { position, ...mark }, model.now));
        model.positions[step.sink] = Math.max(model.positions[step.sink], position);
        if (position % 2 === 0) model.marks[step.sink] = { position };
        break;
      }
      case 'refuse':
        this.#refuse(step.sink);
        break;
      case 'put back':
        this.#putBack();
        break;
      case 'read':
        this.#read(Math.round(step.share * model.end), step.bytes);
        break;
      case 'prune':
        model.now += step.afterMs;
        store.transaction(() => store.prune(model.now));
        model.prune();
        break;
      case 'fail':
        expect(() =>
          store.transaction(() => {
            this.#neverCommitted();
            throw new Error('cut off');
          }),
        ).toThrow('cut off');
        break;
      case 'reopen':
        store.close();
        this.#store = open(this.#dir);
        break;
      case 'crash':
        this.#crash(step.within);
        break;
    }
  }

  #append(name: Stream, sizes: readonly number[]): void {
    const { model } = this;
    const stream = model.streams[name];
    const pages = sizes.map((size, i) => {
      const ids = Array.from({ length: size }, (_, n) => `${model.end} ${i} ${n}`);
      return aPage({ stream: name, ids, pad: (size * 397) % 900 });
    });
    const count = sizes.reduce((sum, size) => sum + size, 0);
    const last = `${name} ${model.end} ${count}`;
    const cursor = `c${model.end}`;
    const entry = {
      stream: name,
      pages,
      checkpoint: { last },
      identities: new Uint8Array(count * identityBytes).fill(count),
      // Not so many that the older ones are thinned out.
      ...(stream.trail.length < 15 ? { trail: [{ cursor, at: model.now }] } : {}),
    };
    this.#store.transaction(() => this.#store.append(entry, model.now));
    if (stream.trail.length < 15) stream.trail.push(cursor);
    for (const [i, page] of pages.entries()) model.add(page.body, sizes[i] ?? 0);
    stream.last = last;
    stream.identities += count;
  }

  #refuse(by: Sink): void {
    const { model } = this;
    const position = model.positions[by];
    if (position >= model.end) return;
    const uid = String(position).padStart(64, by);
    const { context } = aPage({ ids: [] });
    const deadLetter = { uid, offset: position, reason: 'no', context, record: Buffer.from('{}') };
    const step = { position: position + 1, deadLetters: [deadLetter] };
    this.#store.transaction(() => this.#store.acknowledge(by, step, model.now));
    model.positions[by] = position + 1;
    model.letters.push({ sink: by, uid });
  }

  /** As `dead-letters retry` does it, over a connection of its own. */
  #putBack(): void {
    const { model } = this;
    const other = open(this.#dir);
    const [deadLetter] = other.deadLetters.list(null);
    if (deadLetter !== undefined) {
      other.transaction(() => other.putBack(deadLetter, model.now));
      model.letters = model.letters.slice(1);
      model.add(Buffer.from('[{}]'), 1, deadLetter.sink);
    }
    other.close();
    this.#store.refresh();
  }

  #read(from: number, bytes: number): void {
    const read = this.#store.read(from, bytes);
    const after = this.model.pages.filter(({ end }) => end > from);
    expect(read.map(({ first }) => first)).toEqual(after.slice(0, read.length).map((p) => p.first));
    // One page at least, and no more than needed to reach the requested bytes.
    expect(read.length === 0).toBe(after.length === 0);
    const early = read.slice(0, -1).reduce((sum, { body }) => sum + body.length, 0);
    expect(early === 0 || early < bytes).toBe(true);
  }

  #neverCommitted(): void {
    this.#store.append({ ...anAppend({ ids: ['never'] }), identities: new Uint8Array(20) }, 0);
    this.#store.acknowledge('a', { position: this.model.end + 1, mark: 'never' }, 0);
  }

  #crash(within: boolean): void {
    const old = this.#store;
    let dir = '';
    try {
      old.transaction(() => {
        if (within) this.#neverCommitted();
        dir = crashed(this.#dir);
        throw new Error('the lights went out');
      });
    } catch {
      old.close();
    }
    this.#dir = dir;
    this.#store = open(dir);
  }

  /** The store says what its model says. */
  check(): void {
    const { model } = this;
    const store = this.#store;
    const held = store.read(0, 1e9);
    expect(held.map(({ first, count, onlySink }) => [first, first + count, onlySink])).toEqual(
      model.pages.map(({ first, end, onlySink }) => [first, end, onlySink]),
    );
    const isSame = held.map(({ body }, i) =>
      Buffer.from(body).equals(model.pages[i]?.body ?? Buffer.of()),
    );
    expect(isSame).toEqual(held.map(() => true));
    const oldest = model.pages[0]?.first ?? model.end;
    expect(store.gauge()).toEqual({ bytes: model.bytes, oldest, end: model.end, waiting: 0 });
    expect(store.passed()).toBe(Math.min(model.end, ...Object.values(model.positions)));
    for (const each of sinks) {
      const progress = { position: model.positions[each], mark: model.marks[each] };
      expect(store.progress(each)).toEqual(progress);
    }
    const letters = store.deadLetters.list(null).map(({ sink, uid }) => ({ sink, uid }));
    expect(letters).toEqual(model.letters);
    for (const name of streams) {
      const { last, identities, trail } = model.streams[name];
      const memory = store.streams.recall(name);
      const known = memory.identities.reduce((sum, { bytes }) => sum + bytes.length, 0);
      expect(memory.checkpoint).toEqual(last === null ? null : { last });
      expect(known / identityBytes).toBe(identities);
      expect(store.streams.trail(name).map(({ cursor }) => cursor)).toEqual(trail);
    }
  }

  end(): void {
    this.#store.close();
  }
}

test('store has the content of the model’s lists', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 30, size: 'max' }), (actions) => {
      const run = new Run();
      for (const step of actions) {
        run.do(step);
        run.check();
      }
      run.end();
    }),
    {
      numRuns: Number(process.env.SLUICE_SPOOL_RUNS ?? 30),
      seed: Number(process.env.SLUICE_SPOOL_SEED ?? 1),
    },
  );
});
