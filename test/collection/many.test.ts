// Collections of many entities: reported content is in the database and only digests in memory, entities are requested
// by their ids in rotation, and state of earlier versions is resumed. The reports, put together, always equal the
// content of the collection.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { firewallSource } from '../../connectors/sources/firewall.ts';
import type { Answer } from '../../src/contracts/answer.ts';
import type { CollectionReading } from '../../src/contracts/definition.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { CollectionStream } from '../../src/contracts/source.ts';
import type { Body, Upstream } from '../../src/contracts/upstream.ts';
import {
  aCollection,
  aSpool,
  hourMs,
  minuteMs,
  quickly,
  type ToldChange,
} from '../list/reading.ts';
import { okOf, pagination } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { streamsOf } from '../support/plain-upstream.ts';

const brief = (changes: readonly ToldChange[]) =>
  changes.map(({ change, entity_id }) => `${change} ${entity_id}`);

function failed(status: number): Answer<Body> {
  const cause = new ExportError('upstream_refused', `upstream answered ${status}`, { next: '' });
  return { outcome: status === 403 ? 'denied' : 'refused', status, cause };
}

/** What upstream has. */
interface World {
  /** Elements of the list by id, as JSON. */
  listed: Map<string, string>;
  /** Responses for single entities; undefined: as listed, with one more member. */
  detail?: (id: string) => Answer<Body> | null;
  /** Elements a page; undefined: all. */
  page?: number;
  /** The list leads on for ever. */
  isEndless?: boolean;
}

/** A stream of this world, and the ids requested since `asked` was emptied last. */
function worldStream(world: World, isDetailed: boolean) {
  const asked: string[] = [];
  const get: Upstream['get'] = async ({ path, query }) => {
    const [, id] = /^\/things\/(.+)$/.exec(path) ?? [];
    if (id !== undefined) {
      asked.push(id);
      const given = world.detail?.(id) ?? null;
      if (given !== null) return given;
      const text = world.listed.get(id);
      return text === undefined ? failed(404) : okOf(text.replace(/}$/, ',"more":true}'));
    }
    const from = Number(query.find(([name]) => name === 'cursor')?.[1] ?? 0);
    const to = from + (world.page ?? world.listed.size);
    const data = [...world.listed.values()].slice(from, to);
    if (world.isEndless === true)
      return okOf(`{"data":[{"id":"e${from}"}],"next_cursor":"${from + 1}"}`);
    const next = to < world.listed.size ? `"${to}"` : null;
    return okOf(`{"data":[${data}],"next_cursor":${next}}`);
  };
  const name = 'src';
  const request = { path: '/things', template: '/things', query: [] };
  const stream: CollectionStream = {
    kind: 'collection',
    ...{ name, source: name, paths: [], fingerprint: 'made up', resource: 'things' },
    entity: { kind: 'thing', ids: ['id'] },
    list: {
      ...{ name, upstream: { get }, request, sorting: [], id: 'id', pageLimit: null },
      pagination: { ...pagination, style: 'shown' },
    },
    ...(isDetailed && { detail: { request: (id) => ({ ...request, path: `/things/${id}` }) } }),
  };
  return { stream, asked };
}

const thing = (id: string, content: unknown = 1) => [id, JSON.stringify({ id, content })] as const;
const things = (count: number) =>
  new Map(Array.from({ length: count }, (_, n) => thing(`t${String(n).padStart(5, '0')}`)));

async function reading(
  world: World,
  choices: Partial<CollectionReading> & { detailed?: boolean } = {},
) {
  const { detailed = false, ...rules } = choices;
  const clock = manualClock();
  const { stream, asked } = worldStream(world, detailed);
  const spool = await aSpool();
  const rows: number[] = [];
  const entities = spool.entities.bind(spool);
  spool.entities = (of, which) => {
    rows.push('after' in which ? which.max : which.length);
    return entities(of, which);
  };
  const collection = await aCollection(clock, stream, {
    spool,
    reading: { ...quickly, ...rules },
  });
  /** The ids that one reading requests. */
  const asks = async () => {
    asked.length = 0;
    const polled = await collection.poll();
    return { ids: asked.slice(), polled };
  };
  return { clock, collection, asks, rows };
}

describe('in memory', () => {
  test('a reading without changes queries the database for no entity, and one with some for those', async () => {
    const world: World = { listed: things(500), page: 100 };
    const { collection, rows } = await reading(world);
    await collection.poll();
    await collection.changes();

    rows.length = 0;
    await collection.poll();
    const unchanged = rows.slice();
    world.listed.set(...thing('t00007', 2));
    world.listed.set(...thing('t00107', 2));
    await collection.poll();

    expect(unchanged).toEqual([]);
    expect(rows).toEqual([1, 1]);
    expect(brief(await collection.changes())).toEqual(['updated t00007', 'updated t00107']);
  });

  test('a commit that fails leaves nothing that was not reported', async () => {
    const world: World = { listed: things(3) };
    const { collection } = await reading(world);
    await collection.poll();
    await collection.changes();
    world.listed.set(...thing('new'));
    const { spool } = collection;
    const cause = new ExportError('disk_full', 'no space', { next: 'wait' });

    spool.append = () => Promise.reject(cause);
    const failing = await collection.poll();
    Reflect.deleteProperty(spool, 'append');
    await collection.poll();

    expect(failing).toMatchObject({ outcome: 'retry', cause });
    expect(brief(await collection.changes())).toEqual(['created new']);
  });

  test('a baseline larger than the memory for one part is one all the same', async () => {
    const filler = 'x'.repeat(4_000);
    const listed = new Map([...things(1_000).keys()].map((id) => thing(id, filler)));
    const { collection } = await reading({ listed, page: 100 }, { baseline: 'full' });

    await collection.poll();
    const states = await collection.changes();
    await collection.poll();

    expect(states.map(({ entity_id }) => entity_id).toSorted()).toEqual([...listed.keys()]);
    expect(new Set(states.map(({ change, epoch }) => `${change} ${epoch}`)).size).toBe(1);
    expect(await collection.changes()).toEqual([]);
  });

  test('the reported changes, put together, equal the content of the list, whatever happens between', async () => {
    const worlds = fc.array(
      fc.record({
        things: fc.dictionary(
          fc.constantFrom('a', 'b', 'c', 'd', 'e'),
          fc.integer({ min: 0, max: 2 }),
        ),
        restarts: fc.boolean(),
        page: fc.integer({ min: 1, max: 5 }),
      }),
      { minLength: 1, maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(worlds, fc.boolean(), async (steps, detailed) => {
        const world: World = { listed: new Map() };
        const brake = { share: 1, count: 100 };
        const rules = { removalsAfter: 1, brake, baseline: 'full', detailed } as const;
        const { collection } = await reading(world, rules);
        const reported = new Map<string, unknown>();
        for (const step of steps) {
          world.listed = new Map(Object.entries(step.things).map(([id, n]) => thing(id, n)));
          world.page = step.page;
          if (step.restarts) collection.restart();
          // Everything missing is believed at the third reading only.
          for (let readings = 0; readings < 3; readings += 1) await collection.poll();
          for (const { change, entity_id: id, after, before } of await collection.changes()) {
            expect(before).toEqual(reported.get(id));
            if (change === 'deleted') reported.delete(id);
            else reported.set(id, after);
          }
          const there = Object.entries(step.things).map(([id, content]) => {
            return [id, { id, content, ...(detailed ? { more: true } : {}) }];
          });
          expect(Object.fromEntries(reported)).toEqual(Object.fromEntries(there));
        }
      }),
      { numRuns: 12 },
    );
  });
});

describe('by their ids', () => {
  test('few are all requested with each reading', async () => {
    const { asks } = await reading({ listed: things(300) }, { detailed: true });

    expect((await asks()).ids).toHaveLength(300);
    expect((await asks()).ids).toHaveLength(300);
  });

  test('of many, new and changed ones are at once, and all others within the sweep', async () => {
    const world: World = { listed: things(2_400) };
    const { clock, asks, collection } = await reading(world, { detailed: true });
    const all = [...world.listed.keys()];
    expect((await asks()).ids).toHaveLength(2_400);
    expect((await asks()).ids).toEqual([]);
    await collection.changes();

    world.listed.set(...thing('t00001', 2));
    world.listed.set(...thing('new'));
    expect((await asks()).ids.toSorted()).toEqual(['new', 't00001']);
    expect(brief(await collection.changes())).toEqual(['created new', 'updated t00001']);

    const inTurn: string[][] = [];
    for (let hour = 0; hour < 24; hour += 1) {
      await clock.advance(hourMs);
      if (hour % 5 === 0) collection.restart();
      inTurn.push((await asks()).ids);
    }
    // The changed one is requested once more: a value that moves again may be a counter.
    expect(inTurn.flat().toSorted()).toEqual([...all, 't00001', 'new'].toSorted());
    expect(Math.max(...inTurn.map(({ length }) => length))).toBeLessThan(200);
    expect(await collection.changes()).toEqual([]);
  });

  test('a change that only its own response shows is reported when its turn comes', async () => {
    const world: World = { listed: things(1_200) };
    const { clock, asks, collection } = await reading(world, {
      detailed: true,
      sweepMs: 2 * hourMs,
    });
    await asks();
    await collection.changes();
    world.detail = (id) =>
      id === 't00500' ? okOf('{"id":"t00500","content":1,"more":false}') : null;

    const reported: string[] = [];
    for (let turn = 0; turn < 2; turn += 1) {
      await clock.advance(hourMs);
      await asks();
      reported.push(...brief(await collection.changes()));
    }

    expect(reported).toEqual(['updated t00500']);
  });

  test('no reading requests more than its bound, and the rest is requested at once', async () => {
    const world: World = { listed: things(7_000) };
    const { asks, collection } = await reading(world, { detailed: true });

    const first = await asks();
    const early = await collection.changes();
    const second = await asks();

    expect(first.ids).toHaveLength(5_000);
    expect(first.polled).toMatchObject({ outcome: 'done', more: true });
    expect(early).toEqual([]);
    expect(second.ids).toHaveLength(2_000);
    expect(second.polled).toMatchObject({ outcome: 'done', more: false });
    expect(await collection.changes()).toMatchObject([{ change: 'baseline', count: 7_000 }]);
  });

  test('one of many that is gone from the list is requested by its id, and those not requested stay', async () => {
    const world: World = { listed: things(1_200) };
    const { asks, collection } = await reading(world, { detailed: true });
    await asks();
    await collection.changes();
    world.listed.delete('t00042');

    await asks();
    const { ids } = await asks();

    expect(ids).toEqual(['t00042']);
    expect(brief(await collection.changes())).toEqual(['deleted t00042']);
  });

  test('one whose 403 has a wait is denied only after the usual wait', async () => {
    const world: World = { listed: things(5) };
    const { clock, asks, collection } = await reading(world, { detailed: true });
    await asks();
    await collection.changes();
    world.detail = (id) => (id === 't00002' ? { ...failed(403), wait: { ms: 3_000 } } : null);

    for (let minutes = 0; minutes < 14; minutes += 1) {
      await clock.advance(minuteMs);
      await asks();
    }
    const before = await collection.conditions();
    for (let hours = 0; hours < 30; hours += 1) {
      await clock.advance(hourMs);
      await asks();
    }

    expect([before, await collection.conditions()]).toEqual([[], ['source.scope_lost']]);
    expect(await collection.changes()).toEqual([]);
  });

  test('one that is denied is reported once and requested seldom, and the others continue', async () => {
    const world: World = { listed: things(5) };
    const { clock, asks, collection } = await reading(world, { detailed: true });
    await asks();
    await collection.changes();
    world.detail = (id) => (id === 't00002' ? failed(403) : null);
    world.listed.delete('t00004');

    await asks();
    const { ids, polled } = await asks();
    const reported = brief(await collection.changes());
    const inADay = new Set<string>();
    for (let hour = 0; hour < 25; hour += 1) {
      await clock.advance(hourMs);
      for (const id of (await asks()).ids) if (id === 't00002') inADay.add(`${hour}`);
    }
    delete world.detail;
    for (let hour = 0; hour < 25; hour += 1) {
      await clock.advance(hourMs);
      await asks();
    }

    expect(ids).toEqual(['t00000', 't00001', 't00003', 't00004']);
    expect(polled).toMatchObject({ outcome: 'done' });
    expect(reported).toEqual(['deleted t00004']);
    expect(inADay.size).toBe(1);
    expect(await collection.conditions()).toEqual(['source.scope_lost']);
    expect(await collection.changes()).toEqual([]);
  });

  test('one that is denied and listed again starts its count of absences again', async () => {
    const world: World = { listed: things(5) };
    const removalsAfter = 2;
    const { asks, collection } = await reading(world, { detailed: true, removalsAfter });
    await asks();
    await collection.changes();
    world.detail = (id) => (id === 't00002' && world.listed.has(id) ? failed(403) : null);
    await asks();
    const [id, text] = thing('t00002');

    for (let time = 0; time < 3; time += 1) {
      world.listed.delete(id);
      await asks();
      world.listed.set(id, text);
      await asks();
    }
    const whileItWasBack = await collection.changes();
    world.listed.delete(id);
    await asks();
    await asks();

    expect(whileItWasBack).toEqual([]);
    expect(brief(await collection.changes())).toEqual([`deleted ${id}`]);
  });

  test('a field that is new on all from the middle of a reading on is no change of some', async () => {
    let left = Number.POSITIVE_INFINITY;
    const detail = (id: string) => {
      left -= 1;
      return okOf(JSON.stringify({ id, content: 1, more: true, ...(left < 0 && { extra: 1 }) }));
    };
    const world: World = { listed: things(50), detail };
    const rules = { detailed: true, confirmAfterMs: 30_000 };
    const { asks, collection, clock } = await reading(world, rules);
    await asks();
    await collection.changes();
    left = 42;

    for (let time = 0; time < 4; time += 1) {
      await asks();
      await clock.advance(minuteMs);
    }

    expect(await collection.changes()).toEqual([]);
    expect(new Set(await collection.conditions())).toEqual(new Set(['schema_drift']));
  });

  test('a new one that is denied is reported as the list shows it', async () => {
    const world: World = { listed: things(3) };
    const { asks, collection } = await reading(world, { detailed: true });
    await asks();
    await collection.changes();
    world.listed.set(...thing('secret'));
    world.detail = (id) => (id === 'secret' ? failed(403) : null);

    await asks();

    const [created] = await collection.changes();
    expect(created).toMatchObject({ change: 'created', after: { id: 'secret', content: 1 } });
  });

  test('where all are denied, nothing is known of any', async () => {
    const world: World = { listed: things(3) };
    const { asks, collection } = await reading(world, { detailed: true });
    await asks();
    await collection.changes();
    world.detail = () => failed(403);

    const { polled } = await asks();

    expect(polled.outcome).toBe('retry');
    expect(await collection.conditions()).toEqual([]);
  });

  test('a list that stays a part is said to be one, at each reading', async () => {
    const world: World = { listed: things(3), detail: () => okOf('{"id":"another"}') };
    const { asks } = await reading(world, { detailed: true });

    const polled = [];
    for (let poll = 0; poll < 4; poll += 1) polled.push((await asks()).polled);

    expect(polled.map(({ outcome }) => outcome)).toEqual(['retry', 'retry', 'done', 'done']);
    expect(polled.at(-1)).toMatchObject({ doubt: { code: 'upstream_nonsense' } });
  });

  test.each([403, 404])(
    'if all stay %i, they are reported as the list shows them',
    async (status) => {
      const world: World = { listed: things(3), detail: () => failed(status) };
      const { clock, asks, collection } = await reading(world, {
        detailed: true,
        baseline: 'full',
      });

      const outcomes = [];
      for (let poll = 0; poll < 3; poll += 1) outcomes.push((await asks()).polled.outcome);
      const reported = brief(await collection.changes());
      await clock.advance(hourMs);
      const { polled } = await asks();

      expect(outcomes).toEqual(['retry', 'retry', 'done']);
      expect(reported).toEqual(['state t00000', 'state t00001', 'state t00002']);
      expect(polled).toMatchObject({ outcome: 'done', fresh: 0 });
      expect(await collection.conditions()).toEqual(['source.scope_lost']);
      expect(await collection.changes()).toEqual([]);
    },
  );
});

describe('lists', () => {
  test('a field that is renamed on everything is reported once as drift, and any other change as a change', async () => {
    const world: World = { listed: things(20) };
    const { collection } = await reading(world);
    await collection.poll();
    await collection.changes();
    for (const id of world.listed.keys()) {
      const state = id === 't00007' ? { id, state: 1, more: 2 } : { id, state: 1 };
      world.listed.set(id, JSON.stringify(state));
    }

    await collection.poll();

    expect(brief(await collection.changes())).toEqual(['updated t00007']);
    expect(await collection.conditions()).toEqual(['schema_drift']);
  });

  test('a field that is new on all that is left is drift, also where most have just gone', async () => {
    const world: World = { listed: things(20) };
    const { collection } = await reading(world);
    await collection.poll();
    await collection.changes();
    world.listed = new Map([...world.listed.keys()].slice(0, 5).map((id) => thing(id)));
    for (const id of world.listed.keys()) {
      world.listed.set(id, JSON.stringify({ id, content: 1, more: 2 }));
    }

    await collection.poll();

    const changes = await collection.changes();
    expect(changes.some(({ change }) => change === 'updated')).toBe(false);
    expect(await collection.conditions()).toEqual(['schema_drift', 'removals_held']);
  });

  test('one without an end is reported once, and removes nothing', async () => {
    const world: World = { listed: things(3) };
    const { collection } = await reading(world, { removalsAfter: 1 });
    await collection.poll();
    await collection.changes();
    world.isEndless = true;

    await collection.poll();
    await collection.poll();

    const changes = await collection.changes();
    expect(changes.some(({ change }) => change === 'deleted')).toBe(false);
    expect(await collection.conditions()).toEqual(['source.paging_suspected']);
  });

  test('thousands that disappear at once are each reported once, at the reading that is believed', async () => {
    const world: World = { listed: things(3_000) };
    const { collection } = await reading(world);
    await collection.poll();
    await collection.changes();
    world.listed = things(10);

    const reported: string[][] = [];
    for (let readings = 0; readings < 4; readings += 1) {
      await collection.poll();
      reported.push(brief(await collection.changes()));
    }

    expect(reported.map(({ length }) => length)).toEqual([0, 0, 2_990, 0]);
    expect(new Set(reported.flat()).size).toBe(2_990);
    expect(await collection.conditions()).toEqual(['removals_held']);
  });

  test('with removals false, missing entities are forgotten and not reported', async () => {
    const world: World = { listed: things(4) };
    const { collection } = await reading(world, { removals: false });
    await collection.poll();
    await collection.changes();
    world.listed.delete('t00003');
    for (let readings = 0; readings < 3; readings += 1) await collection.poll();

    expect(await collection.changes()).toEqual([]);
    expect((await collection.spool.entities('src', { after: '', max: 10 })).size).toBe(3);
  });
});

describe('state of 0.1', () => {
  const { now, world, streams } = JSON.parse(
    readFileSync(new URL('rows-0.1.json', import.meta.url), 'utf8'),
  ) as {
    now: number;
    world: { objects: string[]; policies: string[]; p1: string; p2: string };
    streams: Record<string, { checkpoint: object; entities: [string, string][] }>;
  };
  const base = '/api/firewall/v1/companies/c-1';

  async function goneOn(resource: 'objects' | 'policies') {
    const served = { ...world, objects: [...world.objects] };
    const upstream: Upstream = {
      ...{ name: 'ops', api: 'services', baseUrl: 'https://svc.example.com', companies: ['c-1'] },
      async get({ path }) {
        if (path === `${base}/objects`) return okOf(`{"data":[${served.objects}]}`);
        if (path === `${base}/policies`) return okOf(`{"data":[${served.policies}]}`);
        return okOf(path.endsWith('p1') ? served.p1 : served.p2);
      },
    };
    const own = streamsOf(firewallSource, upstream).map((stream) => ({ ...stream, source: 'fw' }));
    const found = own.find(({ name }) => name === `src/c-1/${resource}`) as CollectionStream;
    const name = `fw/c-1/${resource}`;
    const stream = { ...found, name, list: { ...found.list, name } };
    const { checkpoint, entities = [] } = streams[name] ?? {};
    const spool = await aSpool();
    await spool.append({
      ...{ stream: name, pages: [], checkpoint: checkpoint as never },
      entities: { put: entities, drop: [] },
    });
    const clock = manualClock(now + minuteMs);
    const rules = { ...quickly, confirmAfterMs: 30_000 };
    return {
      served,
      clock,
      collection: await aCollection(clock, stream, { spool, reading: rules }),
    };
  }

  test('resumes: waiting changes are reported, and nothing twice', async () => {
    const { served, clock, collection } = await goneOn('objects');

    await collection.poll();
    const first = await collection.changes();
    await clock.advance(hourMs);
    collection.restart();
    await collection.poll();
    const second = await collection.changes();
    served.objects[0] = '{"id":"o1","name":"n","x":1.5}';
    await collection.poll();
    await clock.advance(minuteMs);
    await collection.poll();

    expect(first).toMatchObject([
      { change: 'updated', entity_id: 'o2', entity_version: 2, before: { x: 1 }, after: { x: 2 } },
      { change: 'deleted', entity_id: 'o3', entity_version: 2 },
    ]);
    expect(second).toEqual([]);
    expect(await collection.changes()).toMatchObject([
      { change: 'updated', entity_id: 'o1', before: { x: 1 }, after: { x: 1.5 }, changed: ['x'] },
    ]);
  });

  test('resumes with policies and their rules', async () => {
    const { served, clock, collection } = await goneOn('policies');

    await collection.poll();
    const same = await collection.changes();
    served.p2 = '{"id":"p2","forward_rules":[{"id":"r1","port":1}]}';
    await collection.poll();
    await clock.advance(minuteMs);
    await collection.poll();

    expect(same).toEqual([]);
    expect(await collection.changes()).toMatchObject([
      {
        change: 'updated',
        entity_kind: 'rule',
        entity_id: 'r1',
        parent_id: 'p2',
        entity_version: 2,
      },
    ]);
  });
});
