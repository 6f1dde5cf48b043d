// Fields that differ at each reading: counters and clocks are learned, reported once and left out; a change beside them is
// reported at the latest two readings after it was first seen. Rule R3, in every kind of collection.

import { describe, expect, test } from 'vitest';
import { sources } from '../../connectors/sources/index.ts';
import { forgetLeft } from '../../src/collection/left.ts';
import { readCollectionCheckpoint } from '../../src/collection/state.ts';
import type { CollectionReading } from '../../src/contracts/definition.ts';
import type { CollectionStream } from '../../src/contracts/source.ts';
import type { Spool } from '../../src/contracts/spool.ts';
import type { Upstream } from '../../src/contracts/upstream.ts';
import { changeState } from '../../src/hold/store.ts';
import { contentHash } from '../../src/poll/canonical.ts';
import { resetStream } from '../../src/run/checkpoint-moves.ts';
import { readState } from '../../src/watch/state.ts';
import { aCollection, aSpool, minuteMs, quickly } from '../list/reading.ts';
import { okOf, pagination } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { settingsOf } from '../support/plain-upstream.ts';
import { tempDir } from '../support/temp.ts';

const careful: CollectionReading = { ...quickly, confirmAfterMs: 30_000, settleMs: 10 * minuteMs };
type Entity = Record<string, unknown> & { readonly id: string };

interface World {
  /** The entities at a reading, numbered from 0. */
  at(reading: number): readonly Entity[];
}

async function watched(world: World, reading: Partial<CollectionReading> = {}, held?: Spool) {
  const clock = manualClock();
  let n = -1;
  const records: Record<string, unknown>[] = [];
  const stream: CollectionStream = {
    kind: 'collection',
    ...{ name: 'src', source: 'src', paths: [], fingerprint: 'made up', resource: 'things' },
    entity: { kind: 'thing', ids: ['id'] },
    list: {
      ...{ name: 'src', request: { path: '/x', template: '/x', query: [] }, sorting: [], id: 'id' },
      ...{ pageLimit: null, pagination: { ...pagination, style: 'shown' }, ignore: ['updated_at'] },
      upstream: { get: async () => okOf(JSON.stringify({ data: world.at(n) })) },
    },
  };
  const rules = { ...careful, ...reading };
  const spool = held ?? (await aSpool());
  const collection = await aCollection(clock, stream, { reading: rules, spool });
  if (held !== undefined) await collection.changes();
  return {
    collection,
    clock,
    /** Reads so often; what each reading reported. */
    async read(times: number) {
      const reported: string[][] = [];
      for (let i = 0; i < times; i += 1) {
        n += 1;
        await clock.advance(minuteMs);
        await collection.poll();
        const changes = await collection.changes();
        records.push(...changes.map(({ text }) => JSON.parse(text)));
        reported.push(
          changes.flatMap(({ change, entity_id, changed }) =>
            change === 'baseline' ? [] : [`${change} ${entity_id} ${changed?.join() ?? ''}`.trim()],
          ),
        );
      }
      return reported;
    },
    /** What was reported in full. */
    records,
    async checkpoint() {
      const { checkpoint } = await spool.recall('src');
      return readCollectionCheckpoint('src', checkpoint, 'made up');
    },
    volatile: () =>
      collection.found.filter(({ condition }) => condition === 'source.volatile_fields'),
  };
}

const many = (count: number, of: (i: number) => object): Entity[] =>
  Array.from({ length: count }, (_, i) => ({ id: `e-${i}`, ...of(i) }));
const minuteOf = (n: number) => new Date(Date.UTC(2026, 10, 20, 9, n)).toISOString();
/** Different each time, in no direction. */
const noise = (n: number, i: number) => ((n * 7919 + i * 104729) % 9973) + (n % 2) * 10_000;

describe('R3.1: a value is confirmed by itself', () => {
  test('beside a counter that moves at each reading it is reported by the next one', async () => {
    const { read, volatile } = await watched({
      at: (n) => many(5, (i) => ({ action: i === 2 && n >= 2 ? 'ACCEPT' : 'DENY', hits: n * 7 })),
    });

    const reported = await read(9);

    expect(reported).toEqual([[], [], [], ['updated e-2 action'], [], [], [], [], []]);
    expect(volatile()).toHaveLength(1);
  });

  test('an unconfirmed change keeps the reported value in the event', async () => {
    const { read, records } = await watched({
      at: (n) => [{ id: 'e-0', a: n >= 1 ? 'new' : 'old', b: n >= 2 ? 'new' : 'old' }],
    });

    const reported = await read(5);

    expect(reported).toEqual([[], [], ['updated e-0 a'], ['updated e-0 b'], []]);
    expect(records.slice(1).map(({ before, after }) => [before, after])).toEqual([
      [
        { id: 'e-0', a: 'old', b: 'old' },
        { id: 'e-0', a: 'new', b: 'old' },
      ],
      [
        { id: 'e-0', a: 'new', b: 'old' },
        { id: 'e-0', a: 'new', b: 'new' },
      ],
    ]);
  });

  test('two looks closer together than confirm_after confirm nothing', async () => {
    const { read } = await watched(
      { at: (n) => [{ id: 'e-0', a: n >= 1 ? 'new' : 'old' }] },
      { confirmAfterMs: 90_000 },
    );

    expect(await read(5)).toEqual([[], [], [], ['updated e-0 a'], []]);
  });

  test.for([
    ['with ids', (n: number, rule: object) => ({ id: `r-${n}`, ...rule })],
    ['without ids', (_: number, rule: object) => rule],
  ] as const)('a rule in a list of an entity, beside counters of all rules: %s', async ([, of]) => {
    const { read, volatile, records } = await watched({
      at: (n) =>
        many(4, (i) => ({
          rules: [0, 1, 2].map((r) =>
            of(r, { hits: n * 3 + r, action: i === 1 && r === 2 && n >= 6 ? 'ACCEPT' : 'DENY' }),
          ),
        })),
    });

    const reported = await read(10);

    expect(reported.flat()).toEqual(['updated e-1 rules']);
    expect(reported[7]).toHaveLength(1);
    expect(volatile()).toMatchObject([{ details: { path: 'rules.hits', entities: 4 } }]);
    expect(records.at(-1)).toMatchObject({ after: { rules: [{ hits: 21 }, { hits: 22 }, {}] } });
  });
});

describe('R3.2, R3.3: the learned fields', () => {
  test.for<readonly [string, number, (n: number, i: number) => object, string]>([
    ['a counter on three', 3, (n, i) => ({ v: n * (i + 1) }), 'v'],
    ['a counter on the only one', 1, (n) => ({ v: n }), 'v'],
    ['a counter on all that have it', 9, (n, i) => (i < 2 ? { v: n } : {}), 'v'],
    ['a counter that falls', 3, (n) => ({ v: -n }), 'v'],
    ['numbers in quotes beyond 2^53', 3, (n) => ({ v: `9007199254740993${n}` }), 'v'],
    ['a clock', 3, (n) => ({ stats: { last_seen: minuteOf(n) } }), 'stats.last_seen'],
    ['a gauge on most', 5, (n, i) => (i < 4 ? { v: noise(n, i) } : { v: 1 }), 'v'],
    ['texts on most of ten', 12, (n, i) => (i < 11 ? { v: `t-${n}-${i}` } : { v: 'x' }), 'v'],
  ])('%s', async ([, count, of, path]) => {
    const { read, volatile, records } = await watched({
      at: (n) => many(count, (i) => ({ ...of(n, i), name: i === 0 && n >= 12 ? 'new' : 'old' })),
    });

    const reported = await read(16);

    expect(reported.flat()).toEqual(['updated e-0 name']);
    expect(volatile()).toMatchObject([
      { details: { path, kind: 'thing', ignore: `ignore: ["updated_at", "${path}"]` } },
    ]);
    const [, { after }] = records.slice(-2) as [unknown, { after: unknown }];
    // The values as of that reading.
    expect(after).toEqual({ id: 'e-0', ...of(13, 0), name: 'new' });
  });

  test.for<readonly [string, number, (n: number, i: number) => object]>([
    ['booleans', 20, (n) => ({ v: n % 2 === 0 })],
    ['texts on nine', 9, (n, i) => ({ v: `t-${n}-${i}` })],
    ['texts that come back', 20, (n) => ({ v: `t-${n % 3}` })],
    ['a gauge on half', 6, (n, i) => ({ v: i < 3 ? noise(n, i) : 1 })],
    ['one that moves, beside others that rest', 9, (n, i) => ({ v: i === 0 ? n : 1 })],
    ['two that move, beside others that rest', 9, (n, i) => ({ v: i < 2 ? n : 1 })],
  ])('not %s', async ([, count, of]) => {
    const { read, volatile } = await watched({ at: (n) => many(count, (i) => of(n, i)) });

    await read(12);

    expect(volatile()).toEqual([]);
  });

  test('a learned path that rests and moves again makes no update, over restarts', async () => {
    const { read, collection } = await watched({
      at: (n) => many(4, () => ({ hits: n < 8 ? n : n < 14 ? 8 : n })),
    });

    const first = await read(8);
    collection.restart();
    const later = await read(12);

    expect([...first, ...later].flat()).toEqual([]);
    expect(collection.found).toHaveLength(1);
  });

  test('entities whose counter rests at times are left out with it', async () => {
    const { read } = await watched({
      at: (n) => many(20, (i) => ({ hits: i < 4 ? n : Math.floor((n + 1) / 3) })),
    });

    expect((await read(12)).flat()).toEqual([]);
  });

  test('never_ignore: the field is not learned, and each of its values is reported in the end', async () => {
    const { read, volatile } = await watched(
      { at: (n) => many(3, () => ({ stats: { hits: n } })) },
      { neverIgnore: ['stats'] },
    );

    const reported = await read(8);

    expect(volatile()).toEqual([]);
    expect(reported.map(({ length }) => length)).toEqual([0, 0, 0, 3, 0, 0, 3, 0]);
  });

  test('never_ignore set later brings a learned path back', async () => {
    const before = await watched({ at: (n) => many(3, () => ({ hits: n })) });
    await before.read(7);
    const { spool } = before.collection;

    const at = () => many(3, () => ({ hits: 6 }));
    const after = await watched({ at }, { neverIgnore: ['hits'] }, spool);
    const reported = await after.read(4);

    expect(before.volatile()).toHaveLength(1);
    expect(reported.flat().toSorted()).toEqual([0, 1, 2].map((i) => `updated e-${i} hits`));
  });
});

describe('R3.3: a source that leaves the config and returns', () => {
  const at = (n: number) => many(3, () => ({ hits: n }));
  const own = { name: 'src', streams: [{ kind: 'collection', name: 'src' } as CollectionStream] };

  test('learns again, and resumes at the reported values', async () => {
    const before = await watched({ at });
    const { spool } = before.collection;
    await forgetLeft(spool, [own]);
    await before.read(7);
    const learned = (await before.checkpoint()).volatile;

    await forgetLeft(spool, [own]);
    const kept = (await before.checkpoint()).volatile;
    await forgetLeft(spool, []);
    const { volatile, generation } = await before.checkpoint();
    await forgetLeft(spool, [own]);
    const after = await watched({ at: (n) => at(n + 20) }, {}, spool);
    const reported = await after.read(7);

    expect(learned).toMatchObject([{ path: 'hits' }]);
    expect(kept).toEqual(learned);
    expect(volatile).toBeUndefined();
    expect(generation).toBe(7);
    expect(reported.flat()).toEqual([]);
    expect(after.volatile()).toHaveLength(1);
  });

  test('a company that leaves while its source stays keeps what its stream has learned', async () => {
    const before = await watched({ at });
    const { spool } = before.collection;
    const other = { kind: 'collection', name: 'src/c-2' } as CollectionStream;
    const both = { name: 'src', streams: [...own.streams, other] };
    const without = { name: 'src', streams: [other] };
    await forgetLeft(spool, [both]);
    await before.read(7);

    await forgetLeft(spool, [without]);
    await forgetLeft(spool, [without]);
    const away = (await before.checkpoint()).volatile;
    await forgetLeft(spool, []);
    const { volatile } = await before.checkpoint();

    expect(away).toMatchObject([{ path: 'hits' }]);
    expect(volatile).toBeUndefined();
  });

  test('a change of its path at the return is reported, as the list starts with none', async () => {
    const before = await watched({ at });
    const { spool } = before.collection;
    await forgetLeft(spool, [own]);
    await before.read(7);
    await forgetLeft(spool, []);

    const after = await watched({ at: () => at(50) }, {}, spool);
    const reported = await after.read(3);

    expect(reported.flat().toSorted()).toEqual([0, 1, 2].map((i) => `updated e-${i} hits`));
  });

  test('checkpoint reset starts with none, too', async () => {
    const dir = tempDir('volatile-');
    const before = await watched({ at }, {}, await aSpool(dir));
    await before.read(7);
    await before.collection.spool.close();
    const learned = readState(dir).streams.get('src')?.checkpoint?.compared;
    changeState({ dir, sync: 'normal', keepMs: 0 }, (store) => resetStream(store, 'src', false));

    const after = await watched({ at: () => at(50) }, {}, await aSpool(dir));
    await after.read(3);

    expect(learned).toMatchObject({ volatile: [{ path: 'hits' }] });
    expect((await after.checkpoint()).volatile).toBeUndefined();
  });
});

describe('R3.4: no path hides a change for ever', () => {
  test('a value that differs at each reading is reported after the third, and is unstable', async () => {
    const { read, checkpoint } = await watched({
      at: (n) => many(9, (i) => ({ v: i === 0 && n > 0 ? `t-${n}` : 'x' })),
    });

    const reported = await read(8);

    expect(reported).toEqual([[], [], [], ['updated e-0 v'], [], [], ['updated e-0 v'], []]);
    expect(await checkpoint()).toMatchObject({
      unstable: { entities: 1, examples: [{ kind: 'thing', id: 'e-0', path: 'v' }] },
    });
  });

  test('once it rests it is stable again', async () => {
    const { read, checkpoint } = await watched({
      at: (n) => many(9, (i) => ({ v: i === 0 ? `t-${Math.min(n, 5)}` : 'x' })),
    });

    const reported = await read(9);

    expect(reported.flat()).toEqual(['updated e-0 v', 'updated e-0 v']);
    expect((await checkpoint()).unstable).toBeUndefined();
  });

  test('a number that turns at the third reading is no counter, and reported there', async () => {
    const { read } = await watched({ at: (n) => [{ id: 'e-0', v: [1, 2, 3, 0, 0, 0][n] ?? 0 }] });

    expect(await read(5)).toEqual([[], [], [], ['updated e-0 v'], []]);
  });
});

describe('R3.5, R3.6', () => {
  test('a return to the reported value is a flap: counted, and not reported', async () => {
    const { read, checkpoint } = await watched({
      at: (n) => [{ id: 'e-0', v: n === 1 ? 'B' : 'A', hits: n }],
    });

    expect((await read(6)).flat()).toEqual([]);
    expect((await checkpoint()).flaps).toBe(1);
  });

  test('so is a return within settle after it was reported, beside a counter', async () => {
    const { read, checkpoint } = await watched({
      at: (n) => [{ id: 'e-0', v: n === 1 || n === 2 ? 'B' : 'A', hits: n }],
    });

    const reported = await read(14);

    expect(reported.slice(0, 11).flat()).toEqual(['updated e-0 v']);
    expect(reported.slice(11).flat()).toEqual(['updated e-0 v']);
    expect((await checkpoint()).flaps).toBe(1);
  });

  test('with more than 64 differences an entity has changed as a whole', async () => {
    const { read, volatile } = await watched({
      at: (n) =>
        many(3, (i) =>
          Object.fromEntries(
            Array.from({ length: 70 }, (_, k) => [`k${k}`, i === 0 && n >= 1 ? 1 : 0]),
          ),
        ),
    });

    const reported = await read(4);

    expect(reported.map(({ length }) => length)).toEqual([0, 0, 1, 0]);
    expect(volatile()).toEqual([]);
  });

  test('a new field that counts is a new form of the server, not a change of each entity', async () => {
    const { read, collection } = await watched({
      at: (n) => many(6, () => (n < 2 ? {} : { added: 'x', hits: n })),
    });

    expect((await read(12)).flat()).toEqual([]);
    expect(collection.found.map(({ condition }) => condition).toSorted()).toEqual([
      'schema_drift',
      'source.volatile_fields',
    ]);
  });
});

/** What a source's own streams report of a world that counts, by its defaults. */
async function ofSource(
  type: string,
  resource: string,
  bodyAt: (path: string, n: number) => unknown,
) {
  const source = sources.find((one) => one.type === type);
  if (source === undefined) throw new Error(`there is no source ${type}`);
  const clock = manualClock();
  let n = -1;
  const upstream: Upstream = {
    ...{ name: 'ops', api: 'services', baseUrl: 'https://x', companies: ['c-1'] },
    get: async ({ path }) => okOf(JSON.stringify(bodyAt(path, n))),
  };
  const settings = settingsOf(source);
  const streams = source.streams(settings, { name: 'src', upstream });
  const stream = streams.find(({ name }) => name.endsWith(resource));
  const reading = source.collection?.(settings);
  if (stream?.kind !== 'collection' || reading === undefined) throw new Error(`no ${resource}`);
  const dir = tempDir('volatile-');
  const collection = await aCollection(clock, stream, { reading, spool: await aSpool(dir) });
  const reported: string[] = [];
  for (n = 0; n < 14; n += 1) {
    await clock.advance(minuteMs);
    await collection.poll();
    const changes = await collection.changes();
    reported.push(
      ...changes
        .filter(({ change }) => change === 'updated')
        .map(
          ({ entity_kind, entity_id, changed }) => `${n} ${entity_kind} ${entity_id} ${changed}`,
        ),
    );
  }
  return {
    reported,
    found: collection.found,
    state: readState(dir).streams.get(stream.name),
  };
}

describe('in the sources', () => {
  const counting = (n: number, i: number) => ({
    hits: n * (i + 1),
    last_seen: minuteOf(n),
    state: i === 1 && n >= 8 ? 'block' : 'allow',
  });

  test.for<readonly [string, string]>([
    ['hosts', 'host_id'],
    ['block_list', 'entry_id'],
    ['exclusion_list', 'entry_id'],
    ['tickets', 'ticket_id'],
    ['sites', 'id'],
    ['web_categories', 'id'],
  ])('%s', async ([type, id]) => {
    const { reported, found, state } = await ofSource(type, '', (path, n) => {
      const all = [0, 1, 2, 3].map((i) => ({ [id]: `e-${i}`, ...counting(n, i) }));
      const asked = /\/e-(\d)$/.exec(path)?.[1];
      return asked === undefined ? { data: all } : all[Number(asked)];
    });

    expect(reported).toEqual([expect.stringMatching(/^9 \w+ e-1 state$/)]);
    expect(found.map(({ details }) => details?.path).toSorted()).toEqual(['hits', 'last_seen']);
    expect(state?.checkpoint?.compared).toMatchObject({
      volatile: [{ path: 'hits', entities: 4 }, { path: 'last_seen' }],
      unstable: { entities: 0 },
    });
  });

  test('firewall objects', async () => {
    const { reported, found } = await ofSource('firewall', 'objects', (_, n) => ({
      data: [0, 1, 2].map((i) => ({ id: `o-${i}`, ...counting(n, i) })),
    }));

    expect(reported).toEqual(['9 object o-1 state']);
    expect(found).toHaveLength(2);
  });

  test('firewall policies and their rules, which count by themselves', async () => {
    const policy = (id: string, n: number) => ({
      ...{ id, name: id, matched: n },
      forward_rules: [0, 1, 2].map((r) => ({
        id: `${id}-r${r}`,
        hits: n * (r + 1),
        action: id === 'p-1' && r === 2 && n >= 8 ? 'ACCEPT' : 'DENY',
        match: {
          services: [
            { name: 'ssh', used: n },
            { name: 'rdp', used: 2 * n },
          ],
        },
      })),
    });
    const { reported, found } = await ofSource('firewall', 'policies', (path, n) => {
      const id = /policies\/(.+)$/.exec(path)?.[1];
      if (id !== undefined) return policy(id, n);
      return { data: ['p-1', 'p-2', 'p-3'].map((one) => ({ id: one, matched: n })) };
    });

    expect(reported).toEqual(['9 rule p-1-r2 action']);
    expect(found.map(({ details }) => [details?.kind, details?.path]).toSorted()).toEqual([
      ['policy', 'matched'],
      ['rule', 'hits'],
      ['rule', 'match.services.used'],
    ]);
  });
});

test('an entity that an older version has seen to differ is confirmed, and its flaps are known', async () => {
  const spool = await aSpool();
  const world = { at: (n: number) => [{ id: 'e-0', v: n === 0 ? 'A' : 'B' }] };
  const before = await watched(world, {}, spool);
  await before.read(2);
  const [[key = '', body = '']] = [...(await spool.entities('src', { after: '', max: 1 }))] as [
    [string, string],
  ];
  const text = '{"id":"e-0","v":"B"}';
  const at = before.clock.now();
  const old = { ...JSON.parse(body), pending: { hash: contentHash(text, careful), at } };
  await spool.append({
    stream: 'src',
    pages: [],
    entities: { put: [[key, JSON.stringify(old)]], drop: [] },
  });

  const after = await watched({ at: () => [{ id: 'e-0', v: 'B' }] }, {}, spool);
  await after.clock.advance(at + minuteMs - after.clock.now());

  expect((await after.read(1)).flat()).toEqual(['updated e-0 v']);
});

test('never_ignore and ignore of one path are a flaw', () => {
  const hosts = sources.find(({ type }) => type === 'hosts');
  if (hosts === undefined) throw new Error('there is no source of hosts');
  const settings = settingsOf(hosts, { never_ignore: ['updated_at'] });

  const flaw = hosts.flaw?.(settings, { api: 'services', companies: ['c-1'] });

  expect(flaw).toBe('never_ignore and ignore both name updated_at: remove it from one of the two');
});
