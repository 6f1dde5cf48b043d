// A configuration reported as its changes: seen content is reported, unseen content is not reported as deleted, and
// nothing is reported twice. Against the sandbox's firewall, and against scripted readings where a server would have to
// misbehave.

import { describe, expect, test } from 'vitest';
import type { Failure } from '../../src/contracts/answer.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { CollectionStream } from '../../src/contracts/source.ts';
import type { Upstream } from '../../src/contracts/upstream.ts';
import {
  aCollection,
  type CollectionUnderTest,
  firewallStream,
  hourMs,
  minuteMs,
  quickly,
  standingSandbox,
} from '../list/reading.ts';
import { OBJECTS, POLICIES } from '../sandbox/client.ts';
import { okOf, pagination } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';

const company = 'c-1';
const reported = (changes: Awaited<ReturnType<CollectionUnderTest['changes']>>) =>
  changes.map(({ change, entity_kind, entity_id }) => `${change} ${entity_kind} ${entity_id}`);

async function objects() {
  const { sandbox, clock } = await standingSandbox();
  const collection = await aCollection(clock, firewallStream(sandbox, 'objects'));
  return { sandbox, clock, collection };
}

describe('against the sandbox', () => {
  test('2.3.7: the first reading is one summary, and a second one says nothing', async () => {
    const { sandbox, collection } = await objects();

    const first = await collection.poll();
    const baseline = await collection.changes();
    const second = await collection.poll();

    const count = sandbox.ledger().firewall(company).objects.length;
    expect(first).toEqual({ outcome: 'done', fresh: 1, more: false });
    expect(baseline).toMatchObject([{ change: 'baseline', entity_kind: 'objects', count }]);
    expect(second).toEqual({ outcome: 'done', fresh: 0, more: false });
  });

  test('2.3.7: with baseline full, each entity is reported as it is', async () => {
    const { sandbox, clock } = await standingSandbox();
    const stream = firewallStream(sandbox, 'policies');
    const collection = await aCollection(clock, stream, {
      reading: { ...quickly, baseline: 'full' },
    });

    await collection.poll();

    const { policies } = sandbox.ledger().firewall(company);
    const rules = policies.flatMap((policy) => [...policy.forward_rules, ...policy.nat_rules]);
    const states = reported(await collection.changes());
    expect(states.toSorted()).toEqual(
      [
        ...policies.map(({ id }) => `state policy ${id}`),
        ...rules.map(({ id }) => `state rule ${id}`),
      ].sort(),
    );
  });

  test('objects added, changed and removed are reported once each, with before and after', async () => {
    const { sandbox, clock, collection } = await objects();
    await collection.poll();
    await collection.changes();
    const change = (op: 'add' | 'change' | 'remove') =>
      sandbox.control.changeFirewall(company, { kind: 'object', op }).id;
    const [added, changed, removed] = [change('add'), change('change'), change('remove')];

    await collection.poll();
    const first = await collection.changes();
    await clock.advance(hourMs);
    collection.restart();
    await collection.poll();
    const second = await collection.changes();
    await collection.poll();

    expect(reported(first).toSorted()).toEqual([
      `created object ${added}`,
      `updated object ${changed}`,
    ]);
    expect(first.find(({ change }) => change === 'updated')).toMatchObject({
      changed: ['description'],
      entity_version: 2,
      generation: 2,
      before: { id: changed },
      after: { id: changed, description: expect.stringContaining('changed') },
    });
    expect(reported(second)).toEqual([`deleted object ${removed}`]);
    expect(await collection.changes()).toEqual([]);
  });

  test('2.3.6: a rule put at the top is one rule and its policy, not a change of every rule below', async () => {
    const { sandbox, clock } = await standingSandbox();
    const collection = await aCollection(clock, firewallStream(sandbox, 'policies'));
    await collection.poll();
    await collection.changes();

    const { id, policyId } = sandbox.control.changeFirewall(company, { kind: 'rule', op: 'add' });
    await collection.poll();
    const added = await collection.changes();
    const moved = sandbox.control.changeFirewall(company, { kind: 'rule', op: 'move' });
    await collection.poll();
    const after = await collection.changes();

    expect(reported(added).toSorted()).toEqual([
      `created rule ${id}`,
      `updated policy ${policyId}`,
    ]);
    const policy = added.find(({ change }) => change === 'updated');
    const { forward_rules: order = [] } = (policy?.after ?? {}) as { forward_rules?: string[] };
    expect(added.find(({ change }) => change === 'created')).toMatchObject({
      parent_id: policyId,
      list: 'forward_rules',
      place: order.indexOf(id) + 1,
    });
    expect(reported(after)).toEqual([`updated policy ${moved.policyId}`]);
    expect(after[0]?.changed).toContain('forward_rules');
  });

  test('a policy that goes takes its rules with it', async () => {
    const { sandbox, clock } = await standingSandbox();
    const reading = { ...quickly, brake: { share: 0.9, count: 100 } };
    const collection = await aCollection(clock, firewallStream(sandbox, 'policies'), { reading });
    await collection.poll();
    await collection.changes();
    const before = sandbox.ledger().firewall(company).policies;
    const { id } = sandbox.control.changeFirewall(company, { kind: 'policy', op: 'remove' });
    const rules = before.find((policy) => policy.id === id);

    await collection.poll();
    const first = await collection.changes();
    await collection.poll();
    const second = reported(await collection.changes());

    const gone = [...(rules?.forward_rules ?? []), ...(rules?.nat_rules ?? [])];
    expect(first).toEqual([]);
    expect(second.toSorted()).toEqual(
      [`deleted policy ${id}`, ...gone.map((rule) => `deleted rule ${rule.id}`)].sort(),
    );
  });

  test.for([
    'html',
    'empty_body',
    'error_in_200',
    'truncated',
    500,
    { kind: 'short' },
    { kind: 'wrong_total', total: 0 },
    { kind: 'wrong_shape', shape: 'data_null' },
  ] as const)(
    '2.3.1: entities that a reading with %j does not show are not deleted',
    async (fault) => {
      const { sandbox, clock, collection } = await objects();
      await collection.poll();
      await collection.changes();
      sandbox.control.setFaults({ rules: [{ path: OBJECTS, fault }] });

      for (let readings = 0; readings < 6; readings += 1) {
        await collection.poll();
        await clock.advance(hourMs);
      }

      expect(await collection.changes()).toEqual([]);
    },
  );

  test.for([403, 404] as const)(
    'A47 2.3.4: %i on the company is reported once and deletes nothing',
    async (status) => {
      const { sandbox, clock, collection } = await objects();
      await collection.poll();
      await collection.changes();
      sandbox.control.setFaults({ rules: [{ path: OBJECTS, fault: status }] });

      const denied = await collection.poll();
      await clock.advance(hourMs);
      await collection.poll();
      sandbox.control.setFaults({});
      const back = await collection.poll();

      expect(denied).toMatchObject({ outcome: 'denied' });
      expect(back).toMatchObject({ outcome: 'done', fresh: 0 });
      expect(await collection.conditions()).toEqual(['source.scope_lost']);
      expect(await collection.changes()).toEqual([]);
    },
  );

  test('A41: a policy that is listed and cannot be read is unknown, and others are reported', async () => {
    const { sandbox, clock } = await standingSandbox();
    const collection = await aCollection(clock, firewallStream(sandbox, 'policies'));
    await collection.poll();
    await collection.changes();
    const [torn, other] = sandbox.ledger().firewall(company).policies;
    sandbox.control.setFaults({ rules: [{ path: `${POLICIES}/${torn?.id}`, fault: 404 }] });
    sandbox.control.changeFirewall(company, { kind: 'policy', op: 'change', id: other?.id ?? '' });

    const results = [];
    for (let readings = 0; readings < 4; readings += 1) {
      results.push((await collection.poll()).outcome);
      await clock.advance(hourMs);
    }

    expect(reported(await collection.changes())).toEqual([`updated policy ${other?.id}`]);
    expect(results).toEqual(['retry', 'retry', 'done', 'done']);
  });

  test('A47 2.3.6: a field that appears on everything is reported once as drift, and a change in it as a change', async () => {
    const { sandbox, collection } = await objects();
    await collection.poll();
    await collection.changes();
    sandbox.control.setFaults({ rules: [{ path: OBJECTS, fault: 'extra_field' }] });
    const { id } = sandbox.control.changeFirewall(company, { kind: 'object', op: 'change' });

    await collection.poll();
    const first = reported(await collection.changes());
    await collection.poll();

    expect(first).toEqual([`updated object ${id}`]);
    expect(await collection.changes()).toEqual([]);
    expect(await collection.conditions()).toEqual(['schema_drift']);
  });

  test('A39 2.3.5: a change is read a second time before it is reported', async () => {
    const { sandbox, clock } = await standingSandbox();
    const reading = { ...quickly, confirmAfterMs: 30_000 };
    const collection = await aCollection(clock, firewallStream(sandbox, 'objects'), { reading });
    await collection.poll();
    await collection.changes();
    const { id } = sandbox.control.changeFirewall(company, { kind: 'object', op: 'change' });

    const first = await collection.poll();
    const unconfirmed = await collection.changes();
    await clock.advance(30_000);
    const second = await collection.poll();

    expect(first).toEqual({ outcome: 'done', fresh: 0, more: false, againMs: 30_000 });
    expect(unconfirmed).toEqual([]);
    expect(second).toEqual({ outcome: 'done', fresh: 1, more: false });
    expect(reported(await collection.changes())).toEqual([`updated object ${id}`]);
  });
});

/** What upstream has of the entities at a reading. */
interface World {
  /** Texts by id, or why there is no answer. */
  now: ReadonlyMap<string, string> | Failure;
  /** The list says that it has more than it shows. */
  isPart?: boolean;
  /** What a question for one that is not listed is answered with. */
  there?: 'there' | 'gone' | 'unknown';
}

/** A stream of a world's entities, each requested by its id. */
function madeUp(world: World): CollectionStream {
  const upstream: Pick<Upstream, 'get'> = {
    async get({ path }) {
      const { now, isPart = false, there = 'gone' } = world;
      if (!(now instanceof Map)) return now as Failure;
      const id = path.slice('/objects/'.length);
      const texts = [...now.values()];
      const total = isPart ? texts.length + 1 : texts.length;
      if (id === '') return okOf(`{"data":[${texts.join(',')}],"total":${total}}`);
      const text = now.get(id) ?? (there === 'there' ? JSON.stringify({ id }) : null);
      if (text !== null) return okOf(text);
      const cause = new ExportError('upstream_refused', 'no', { next: 'wait' });
      return there === 'gone'
        ? { outcome: 'refused', status: 404, cause }
        : { outcome: 'retry', cause };
    },
  };
  const request = (path: string) => ({ path, template: path, query: [] });
  const name = 'src/c-1/objects';
  return {
    kind: 'collection',
    ...{ name, source: 'src', company, paths: [], fingerprint: 'made up', resource: 'objects' },
    entity: { kind: 'object', ids: ['id'] },
    list: {
      ...{ name, upstream, request: request('/objects/'), sorting: [], id: 'id', pageLimit: null },
      pagination: { ...pagination, style: 'shown' },
    },
    detail: { request: (id) => request(`/objects/${id}`) },
  };
}

const object = (id: string, content: unknown = 1) => [id, JSON.stringify({ id, content })] as const;
const whole = (...entities: readonly (readonly [id: string, text: string])[]) => new Map(entities);

describe('readings', () => {
  async function reader(reading = quickly) {
    const clock = manualClock();
    const world: World = { now: whole(object('a'), object('b'), object('c'), object('d')) };
    const collection = await aCollection(clock, madeUp(world), { reading });
    await collection.poll();
    await collection.changes();
    return { clock, world, collection };
  }

  test('2.3.2: an absence is reported after removals_after complete readings and settle', async () => {
    const { clock, world, collection } = await reader({ ...quickly, settleMs: 10 * minuteMs });
    world.now = whole(object('a'), object('b'), object('c'));

    const after: string[][] = [];
    for (const wait of [0, 5 * minuteMs, 4 * minuteMs, minuteMs]) {
      await clock.advance(wait);
      await collection.poll();
      after.push(reported(await collection.changes()));
    }

    expect(after).toEqual([[], [], [], ['deleted object d']]);
  });

  test('2.3.2: incomplete readings in between neither count nor reset the count', async () => {
    const { world, collection } = await reader();
    const three = [object('a'), object('b'), object('c')];
    world.now = whole(...three);
    await collection.poll();
    Object.assign(world, { now: whole(object('a', 2)), isPart: true });
    await collection.poll();
    const between = reported(await collection.changes());
    Object.assign(world, { now: whole(object('a', 2), object('b'), object('c')), isPart: false });
    await collection.poll();

    expect(between).toEqual(['updated object a']);
    expect(reported(await collection.changes())).toEqual(['deleted object d']);
  });

  test('2.3.2: one that comes back was never gone, and resets its count', async () => {
    const { world, collection } = await reader();
    const all = world.now;
    const less = whole(object('a'), object('b'), object('c'));

    for (const now of [less, all, less]) {
      world.now = now;
      await collection.poll();
    }

    expect(await collection.changes()).toEqual([]);
  });

  test.for(['there', 'unknown'] as const)(
    'A39 2.3.2: one that upstream’s by-id read calls %s is not reported as deleted',
    async (answer) => {
      const { world, collection } = await reader();
      world.there = answer;
      world.now = whole(object('a'), object('b'), object('c'));

      for (let readings = 0; readings < 5; readings += 1) await collection.poll();

      expect(await collection.changes()).toEqual([]);
    },
  );

  test.for([
    { name: 'everything', now: whole() },
    { name: 'more than the brake’s share and count', now: whole(object('a')) },
  ])(
    'A44 2.3.3: $name missing is held until three complete readings, and reported as held once',
    async ({ now }) => {
      const { world, collection } = await reader({ ...quickly, brake: { share: 0.3, count: 2 } });
      world.now = now;

      const counts: number[] = [];
      for (let readings = 0; readings < 4; readings += 1) {
        await collection.poll();
        counts.push((await collection.changes()).length);
      }

      const missing = 4 - now.size;
      expect(counts).toEqual([0, 0, missing, 0]);
      expect(await collection.conditions()).toEqual(['removals_held']);
      expect(collection.found).toMatchObject([
        { condition: 'removals_held', stream: 'src/c-1/objects' },
      ]);
    },
  );

  test('2.3.5: a change that is gone at the second look is not reported', async () => {
    const { clock, world, collection } = await reader({ ...quickly, confirmAfterMs: 30_000 });
    const before = world.now;
    world.now = whole(object('a', 2), object('b'), object('c'), object('d'));

    await collection.poll();
    await clock.advance(30_000);
    world.now = before;
    const second = await collection.poll();
    await collection.poll();

    expect(second).toEqual({ outcome: 'done', fresh: 0, more: false });
    expect(await collection.changes()).toEqual([]);
  });

  test.for(['refused', 'blocked'] as const)(
    'a reading that is %s for now is tried again, and halts nothing',
    async (outcome) => {
      const { world, collection } = await reader();
      const cause = new ExportError('upstream_refused', 'no', { next: 'wait' });
      world.now = { outcome, status: 400, cause };

      const polled = await collection.poll();

      expect(polled).toMatchObject({ outcome: 'retry', cause });
      expect(await collection.changes()).toEqual([]);
    },
  );

  test('2.3.5: where the second look fails, the next reading confirms', async () => {
    const { clock, world, collection } = await reader({ ...quickly, confirmAfterMs: 30_000 });
    const changed = whole(object('a', 2), object('b'), object('c'), object('d'));
    world.now = changed;
    const cause = new ExportError('upstream_unreachable', 'down', { next: 'wait' });

    await collection.poll();
    await clock.advance(30_000);
    world.now = { outcome: 'retry', cause };
    await collection.poll();
    const unconfirmed = await collection.changes();
    world.now = changed;
    await collection.poll();

    expect(unconfirmed).toEqual([]);
    expect(reported(await collection.changes())).toEqual(['updated object a']);
  });

  test('2.3.5: a change that is another one at the second look is not looked at a third time at once', async () => {
    const { clock, world, collection } = await reader({ ...quickly, confirmAfterMs: 30_000 });
    const asks: unknown[] = [];
    const changes: string[][] = [];

    for (const content of [2, 3, 3]) {
      world.now = whole(object('a', content), object('b'), object('c'), object('d'));
      const result = await collection.poll();
      asks.push(result.outcome === 'done' ? result.againMs : result.outcome);
      changes.push(reported(await collection.changes()));
      await clock.advance(30_000);
    }

    expect(asks).toEqual([30_000, undefined, undefined]);
    expect(changes).toEqual([[], [], ['updated object a']]);
  });

  test('2.3.5: after a restart the next reading confirms due changes', async () => {
    const { clock, world, collection } = await reader({ ...quickly, confirmAfterMs: 30_000 });
    world.now = whole(object('a', 2), object('b'), object('c'), object('d'));
    await collection.poll();
    await clock.advance(30_000);

    collection.restart();
    await collection.poll();

    expect(reported(await collection.changes())).toEqual(['updated object a']);
  });

  test('2.3.2: the second look at a change counts for no absence', async () => {
    const { clock, world, collection } = await reader({ ...quickly, confirmAfterMs: 30_000 });
    world.now = whole(object('a', 2), object('b'), object('c'));

    await collection.poll();
    await clock.advance(30_000);
    await collection.poll();
    const soon = reported(await collection.changes());
    await clock.advance(hourMs);
    await collection.poll();

    expect(soon).toEqual(['updated object a']);
    expect(reported(await collection.changes())).toEqual(['deleted object d']);
  });

  test('A39 2.3.5: going back within settle is a flap, and is reported if it stays', async () => {
    const { clock, world, collection } = await reader({ ...quickly, settleMs: 10 * minuteMs });
    const before = world.now;
    world.now = whole(object('a', 2), object('b'), object('c'), object('d'));
    await collection.poll();
    const first = reported(await collection.changes());
    world.now = before;

    await collection.poll();
    const flap = await collection.changes();
    await clock.advance(10 * minuteMs);
    await collection.poll();
    const later = await collection.changes();

    expect(first).toEqual(['updated object a']);
    expect(flap).toEqual([]);
    expect(later).toMatchObject([{ change: 'updated', entity_id: 'a', entity_version: 3 }]);
  });

  test('2.3.8: A to B to A to B is four versions with uids of their own', async () => {
    const { world, collection } = await reader();
    const all = [];
    for (const content of [2, 1, 2]) {
      world.now = whole(object('a', content), object('b'), object('c'), object('d'));
      await collection.poll();
      all.push(...(await collection.changes()));
    }

    expect(all.map(({ entity_version }) => entity_version)).toEqual([2, 3, 4]);
    expect(new Set(all.map(({ uid }) => uid)).size).toBe(3);
  });

  test('a server that prints the same otherwise has changed nothing', async () => {
    const { world, collection } = await reader();
    const reordered = '{ "content": 1,\n "id": "a" }';
    world.now = whole(['a', reordered], object('b'), object('c'), object('d'));

    await collection.poll();

    expect(await collection.changes()).toEqual([]);
  });

  test('digits beyond 2^53 are compared, and reported unchanged', async () => {
    const { world, collection } = await reader();
    const big = (digits: string) => ['a', `{"id":"a","content":${digits}}`] as const;
    const others = [object('b'), object('c'), object('d')];
    world.now = whole(big('9007199254740993001'), ...others);
    await collection.poll();
    await collection.changes();
    world.now = whole(big('9007199254740993002'), ...others);

    await collection.poll();

    const [change] = await collection.changes();
    expect(change?.text).toContain('"before":{"id":"a","content":9007199254740993001}');
    expect(change?.text).toContain('"after":{"id":"a","content":9007199254740993002}');
  });

  test('a first reading that is not whole leaves the baseline open, and creates nothing', async () => {
    const clock = manualClock();
    const world: World = { now: whole(object('a')), isPart: true };
    const collection = await aCollection(clock, madeUp(world));

    const first = await collection.poll();
    const open = await collection.changes();
    Object.assign(world, { now: whole(object('a'), object('b')), isPart: false });
    await collection.poll();

    expect(first.outcome).toBe('retry');
    expect(open).toEqual([]);
    expect(await collection.changes()).toMatchObject([{ change: 'baseline', count: 2 }]);
  });

  test('2.3.7: after a reset the epoch is new and the baseline is reported again', async () => {
    const { clock, world, collection } = await reader();
    await collection.spool.append({ stream: collection.stream.name, pages: [], checkpoint: null });
    const again = await aCollection(clock, madeUp(world), { spool: collection.spool });

    await again.poll();

    const baselines = (await again.changes()).filter(({ change }) => change === 'baseline');
    expect(baselines.map(({ count }) => count)).toEqual([4, 4]);
    expect(new Set(baselines.map(({ epoch }) => epoch)).size).toBe(2);
  });

  test('2.9: a checkpoint of another endpoint halts the stream and is left alone', async () => {
    const { clock, world, collection } = await reader();
    const moved = await aCollection(
      clock,
      { ...madeUp(world), fingerprint: 'other' },
      { spool: collection.spool },
    );

    const polled = await moved.poll();

    expect(polled).toMatchObject({ outcome: 'refused', cause: { code: 'checkpoint_mismatch' } });
  });
});
