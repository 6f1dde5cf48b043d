// States made of others: whatever sinks had and had not of several databases, each gets from the new one what it lacked, in
// order and once, and streams find what they knew.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from '../../src/contracts/json.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { type Origin, regroup } from '../../src/hold/regroup.ts';
import { Store } from '../../src/hold/store.ts';
import { withBlocksMoved } from '../../src/list/checkpoint.ts';
import { selectionOf } from '../../src/send/page-encoder.ts';
import { aPage } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';
import { APair } from './pair-rules/a-pair.ts';

const sinks = ['a', 'b', 'c'] as const;
const takes = { a: 'events', b: 'events', c: 'pages' } as const;

/** What one database holds: of each page how many records, and for whom; and how far each sink has come. */
const aState = fc.record({
  pages: fc.array(
    fc.record({
      stream: fc.constantFrom('s', 't'),
      count: fc.integer({ min: 1, max: 4 }),
      as: fc.constantFrom('events', 'events', 'of sink', 'answer', 'only a'),
    }),
    { maxLength: 6 },
  ),
  had: fc.tuple(...sinks.map(() => fc.integer({ min: 0, max: 8 }))),
});

type State = typeof aState extends fc.Arbitrary<infer S> ? S : never;

function filled({ pages, had }: State, name: string): string {
  const dir = tempDir();
  const store = new Store({ dir, sync: 'none', keepMs: 0 });
  store.transaction(() => {
    for (const [index, { stream, count, as }] of pages.entries()) {
      const ids = Array.from(
        { length: as === 'answer' ? 1 : count },
        (_, n) => `${name}-${index}-${n}`,
      );
      const page = aPage({ stream: `${stream}-${name}`, ids });
      const context = {
        ...page.context,
        ...(as === 'answer' && { kind: 'answer' as const }),
        ...(as === 'of sink' && { isOfSink: true as const }),
      };
      const onlySink = { answer: '', 'only a': 'a', events: null, 'of sink': null }[as];
      store.hold({ ...page, context, ...(onlySink !== null && { onlySink }) }, index);
    }
  });
  const end = store.end;
  store.transaction(() => {
    for (const [index, sink] of sinks.entries()) {
      store.acknowledge(sink, { position: Math.round(((had[index] ?? 0) / 8) * end) }, 0);
    }
  });
  store.close();
  return dir;
}

/** What a sink is still to get, by the streams of its events. */
function owed(dir: string): Record<string, string[]> {
  const store = new Store({ dir, sync: 'none', keepMs: 0 });
  try {
    return Object.fromEntries(
      sinks.flatMap((sink) => {
        const reader = {
          ...{ sink, takesPages: takes[sink] === 'pages' },
          selectionFor: () => ({}) as never,
        };
        const { position } = store.progress(sink);
        const meant = store
          .read(position, 1e9)
          .filter((page) => selectionOf(page, reader) !== null)
          .flatMap((page) => uidsOf(page).map((uid, n) => ({ uid, page, at: page.first + n })))
          .filter(({ at }) => at >= position);
        const streams = Map.groupBy(meant, ({ page }) => page.context.stream);
        return [...streams].map(([stream, of]) => [`${sink} ${stream}`, of.map(({ uid }) => uid)]);
      }),
    );
  } finally {
    store.close();
  }
}

const uidsOf = ({ uids }: HeldPage) =>
  Array.from({ length: uids.length / 32 }, (_, n) =>
    Buffer.from(uids.subarray(n * 32, n * 32 + 32)).toString('hex'),
  );

function made(from: readonly Origin[]): string {
  const to = tempDir();
  const all = { sinks: new Map(Object.entries(takes)), markOf: () => null, counts: true };
  regroup({ ...all, from, to, checkpoint: (_, held, by) => withBlocksMoved(held, by) });
  return to;
}

const all = () => true;

test('of several each sink lacks the events it lacked of each, and of parts of one as well', () => {
  fc.assert(
    fc.property(fc.array(aState, { minLength: 1, maxLength: 3 }), (states) => {
      const dirs = states.map((state, index) => filled(state, String(index)));
      const before = Object.assign({}, ...dirs.map(owed));

      const joined = made(dirs.map((dir) => ({ dir, keeps: all, sends: all })));

      expect(owed(joined)).toEqual(before);
      const part = (stream: string) => {
        const sends = (name: string) => name.startsWith(stream);
        return owed(made([{ dir: joined, keeps: sends, sends }]));
      };
      expect({ ...part('s'), ...part('t') }).toEqual(before);
    }),
    { numRuns: 25 },
  );
});

test('streams, dead letters and requests of both are there, with numbers of their own', () => {
  const dirs = ['one', 'two'].map((name) => {
    const dir = tempDir();
    const store = new Store({ dir, sync: 'none', keepMs: 0 });
    store.transaction(() => {
      const page = aPage({ stream: name, ids: ['x', 'y'], pad: 2 ** 20 });
      const identities = Buffer.alloc(20, name);
      const trail = [{ cursor: `at ${name}`, at: 1 }];
      store.append({ stream: name, pages: [page], checkpoint: { of: name }, identities, trail }, 1);
      store.receipts.reached(name, 5, 5);
      const context = page.context;
      const deadLetter = { uid: name, offset: 1, reason: 'no', context, record: Buffer.from('{}') };
      store.acknowledge('a', { position: 2, deadLetters: [deadLetter] }, 2);
    });
    store.transaction(() => {
      const [deadLetter] = store.deadLetters.list('a');
      const letters = [[deadLetter?.id ?? 0, name]] as const;
      store.requests.ask('a', { what: 'letters', does: 'retry', letters }, 3);
    });
    store.close();
    return dir;
  });

  const store = new Store({
    dir: made(dirs.map((dir) => ({ dir, keeps: all, sends: all }))),
    sync: 'none',
    keepMs: 0,
  });

  expect(store.recall('two')).toEqual({
    checkpoint: { of: 'two' },
    identities: [{ block: 2, bytes: new Uint8Array(Buffer.alloc(20, 'two')) }],
  });
  expect(store.streams.trail('two')).toEqual([{ cursor: 'at two', at: 1 }]);
  expect(store.streams.nextBlock).toBe(3);
  const letters = store.deadLetters.list('a').map(({ id, uid }) => [id, uid]);
  expect(letters).toHaveLength(2);
  const asked = store.requests
    .all()
    .flatMap(({ wish }) => (wish.what === 'letters' ? wish.letters : []));
  expect(asked).toEqual(letters);
  expect(store.progress('a').position).toBe(store.end);
  expect(store.progress('b').position).toBe(0);
  expect([...store.receipts.moments().values()].flat()).toEqual([
    { at: 5, end: 2 },
    { at: 5, end: 4 },
  ]);
  store.close();
});

test('events that several databases keep for a removed sink are kept in the new one, by its numbers', () => {
  const withGone = (fill: (store: Store) => void) => {
    const dir = tempDir();
    const store = new Store({ dir, sync: 'none', keepMs: 0, removedSinksMs: 1_000 });
    store.retainFor(['a']);
    store.transaction(() => fill(store));
    store.close();
    return { dir, keeps: all, sends: all };
  };
  const hold = (store: Store, name: string, pages: number) => {
    for (let page = 0; page < pages; page += 1) {
      const ids = [`${name}-${store.end}`, `${name}-${store.end + 1}`];
      store.hold(aPage({ stream: name, ids }), 0);
    }
    store.acknowledge('a', { position: store.end }, 0);
  };
  const settle = (store: Store, own: readonly string[], now: number) =>
    store.knownSinks.settle({ own, others: [], isAll: true }, store.gauge().oldest, now);
  const from = [
    // It has passed some events.
    withGone((store) => {
      settle(store, ['a', 'gone'], 0);
      hold(store, 'one', 4);
      store.acknowledge('gone', { position: 3 }, 0);
      settle(store, ['a'], 100);
    }),
    // It has accepted nothing.
    withGone((store) => {
      hold(store, 'two', 3);
      store.prune(0);
      settle(store, ['a', 'gone'], 10);
      hold(store, 'two', 2);
      settle(store, ['a'], 120);
    }),
    // It is not known.
    withGone((store) => hold(store, 'three', 2)),
  ];
  const to = tempDir();
  const rest = {
    markOf: () => null,
    counts: true,
    checkpoint: (_: string, held: Json) => held,
  };
  regroup({ ...rest, from, to, sinks: new Map([['a', 'events']]) });
  const alone = tempDir();
  regroup({ ...rest, from: from.slice(1, 2), to: alone, sinks: new Map([['a', 'events']]) });

  const seen = [to, alone].map((dir) => {
    const store = new Store({ dir, sync: 'none', keepMs: 0, removedSinksMs: 1_000 });
    store.retainFor(['a']);
    store.transaction(() => settle(store, ['a'], 900));
    store.transaction(() => store.prune(1_119));
    const { missingSince, keeps } = store.knownSinks.all().get('gone') ?? {};
    const { position } = store.progress('gone');
    const kept = store.read(position, 1e9).reduce((sum, page) => {
      return sum + page.first + page.count - Math.max(page.first, position);
    }, 0);
    store.transaction(() => store.prune(1_120));
    const released = store.knownSinks.unreported();
    const left = store.held().events;
    store.close();
    return { missingSince, keeps, kept, released, left };
  });

  const same = { missingSince: 120, keeps: true, left: 0 };
  const released = (events: number) => [{ sink: 'gone', events, why: 'expired' }];
  expect(seen).toEqual([
    { ...same, kept: 9, released: released(9) },
    { ...same, kept: 4, released: released(4) },
  ]);
});

test('a record that another version stands for finds it under its new number', () => {
  const pair = new APair({ patienceMs: 1_000, overlapMs: 10_000 });
  const [a, b] = [
    { id: 7, text: 'A' },
    { id: 7, text: 'B' },
  ];
  pair.shows('old', [{ id: 6, text: 'A' }]);
  pair.shows('new', [{ id: 6, text: 'B' }]);
  // Its row is gone, so that the rows after it get other numbers.
  pair.until(13_000);
  pair.shows('old', [a]);
  pair.shows('new', [b]);
  pair.until(15_000);
  const before = pair.waitingBytes;

  pair.moveTo((dir) => made([{ dir, keeps: all, sends: all }]));
  const after = pair.waitingBytes;
  pair.shows('new', [a]);
  pair.tick();

  expect([before > 0, after]).toEqual([true, before]);
  expect([pair.texts('text').at(-1), pair.waitingBytes]).toEqual(['B', 0]);
  pair.close();
});
