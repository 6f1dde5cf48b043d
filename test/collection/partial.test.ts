// A 200 that reports errors beside its data, where a collection is read: what it shows is compared, what it does not show
// is unknown and never deleted. Lists in pages, details, single objects, firewall policies, look-ups.

import { expect, test } from 'vitest';
import { askStream } from '../../src/commands/shared/ask-upstream.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { CollectionStream } from '../../src/contracts/source.ts';
import { Lookups } from '../../src/fetch/lookups.ts';
import {
  aCollection,
  aSpool,
  firewallStream,
  hourMs,
  quickly,
  standingSandbox,
} from '../list/reading.ts';
import { okOf, pagination } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { noLog } from '../support/plain-upstream.ts';

const report = {
  title: 'Partial content',
  trace_id: 't',
  errors: [{ message: 'shard 3 timed out' }],
};
const never = new AbortController().signal;

const notFound = {
  outcome: 'refused',
  status: 404,
  cause: new ExportError('upstream_refused', 'not found', { next: 'Look.' }),
} as const;

interface World {
  list: Record<string, unknown>;
  details?: Record<string, unknown>;
  partial?: 'retry' | 'accept';
}

function streamOf(world: World, kind: 'list' | 'detail' | 'single'): CollectionStream {
  const get = async ({ path }: { readonly path: string }) => {
    const id = path.slice('/hosts/'.length);
    const asked = id === '' ? world.list : world.details?.[id];
    return asked === undefined ? notFound : okOf(JSON.stringify(asked));
  };
  const request = (path: string) => ({ path, template: path, query: [] });
  return {
    kind: 'collection',
    ...{ name: 'src', source: 'src', paths: [], fingerprint: 'made up', resource: 'hosts' },
    entity: { kind: 'host', ids: ['id'] },
    list: {
      ...{ name: 'src', upstream: { get }, request: request('/hosts/'), sorting: [], id: 'id' },
      ...{ pageLimit: null, pagination: { ...pagination, style: 'shown' } },
      ...(world.partial && { partial: world.partial }),
    },
    single: kind === 'single',
    ...(kind === 'detail' && { detail: { request: (id) => request(`/hosts/${id}`) } }),
  };
}

const hosts = [1, 2, 3, 4].map((id) => ({ id: `h-${id}`, name: `host ${id}` }));

async function aKnown(world: World, kind: 'list' | 'detail' | 'single' = 'list') {
  const clock = manualClock();
  const collection = await aCollection(clock, streamOf(world, kind));
  await collection.poll();
  await collection.changes();
  return {
    collection,
    /** Reads so often and gives what was reported. */
    async changes(times: number) {
      const results = [];
      for (let n = 0; n < times; n += 1) {
        results.push(await collection.poll());
        await clock.advance(hourMs);
      }
      const reported = await collection.changes();
      return {
        results,
        reported: reported.map(({ change, entity_id }) => `${change} ${entity_id}`),
      };
    },
  };
}

test.for([report, { partial: true }, { timed_out: true }, { success: false }])(
  'a part of a list is no deletion, and its entries are compared: %o',
  async (said) => {
    const world: World = { list: { data: hosts } };
    const { changes } = await aKnown(world);

    world.list = { data: [{ id: 'h-1', name: 'renamed' }, { id: 'h-9' }], ...said };
    const part = await changes(6);
    world.list = { data: [{ id: 'h-1', name: 'renamed' }, { id: 'h-9' }, hosts[1]] };
    const whole = await changes(3);

    expect(part.reported.toSorted()).toEqual(['created h-9', 'updated h-1']);
    expect(part.results[0]).toMatchObject({
      outcome: 'retry',
      cause: { message: expect.stringContaining('upstream answered 200 with') },
    });
    if (said === report) {
      expect(part.results[0]).toMatchObject({ cause: { details: { trace_id: 't' } } });
    }
    expect(part.results.at(-1)).toMatchObject({ outcome: 'done', doubt: expect.any(Error) });
    expect(whole.reported.toSorted()).toEqual(['deleted h-3', 'deleted h-4']);
  },
);

test('an empty list of errors is none, and accept makes a part complete', async () => {
  const world: World = { list: { data: hosts } };
  const { changes } = await aKnown(world);
  world.list = { data: hosts.slice(0, 3), errors: [] };
  const empty = await changes(3);
  const accepting: World = { list: { data: hosts }, partial: 'accept' };
  const accepted = await aKnown(accepting);
  accepting.list = { data: hosts.slice(0, 3), ...report };

  expect(empty.reported).toEqual(['deleted h-4']);
  expect((await accepted.changes(3)).reported).toEqual(['deleted h-4']);
});

test.for([
  ['around it', (host: object) => ({ data: host, ...report })],
  ['within it', (host: object) => ({ ...host, ...report })],
] as const)('a part of a detail leaves its entity as it was: %s', async ([, wrapped]) => {
  const details = Object.fromEntries(hosts.map((host) => [host.id, { ...host, tags: ['a'] }]));
  const world: World = { list: { data: hosts }, details };
  const { changes } = await aKnown(world, 'detail');

  world.details = { ...details, 'h-2': wrapped({ id: 'h-2', name: 'host 2' }) };
  world.list = { data: hosts.slice(0, 3) };
  const part = await changes(4);
  const { 'h-4': _, ...left } = details;
  world.details = { ...left, 'h-2': { ...hosts[1], tags: ['b'] } };
  const whole = await changes(3);

  expect(part.reported).toEqual([]);
  expect(part.results[0]).toMatchObject({ cause: { details: { trace_id: 't' } } });
  expect(whole.reported.toSorted()).toEqual(['deleted h-4', 'updated h-2']);
});

test('errors of an entity itself are its content', async () => {
  const details = { 'h-1': { id: 'h-1', errors: ['E1'], success: false } };
  const world: World = { list: { data: hosts.slice(0, 1) }, details };
  const { changes } = await aKnown(world, 'detail');

  world.details = { 'h-1': { id: 'h-1', errors: ['E1', 'E2'], success: false } };

  expect((await changes(1)).reported).toEqual(['updated h-1']);
});

test('a single object in part is no change', async () => {
  const world: World = { list: { id: 'c-1', name: 'Acme', seats: 5 } };
  const { changes, collection } = await aKnown(world, 'single');

  world.list = { id: 'c-1', name: 'Acme', ...report };
  const part = await changes(2);
  world.list = { ...report };
  const nothing = await changes(2);

  expect([part.reported, nothing.reported]).toEqual([[], []]);
  expect(part.results[0]).toMatchObject({
    outcome: 'retry',
    cause: { details: { trace_id: 't' } },
  });
  await expect(askStream(collection.stream, never)).rejects.toThrow('shard 3 timed out');
});

test('a policy in part deletes no rule, and is no change of its rules', async () => {
  const { sandbox, clock } = await standingSandbox();
  const whole = firewallStream(sandbox, 'policies');
  let isTorn = false;
  const get: CollectionStream['list']['upstream']['get'] = async (request, signal) => {
    const answer = await whole.list.upstream.get(request, signal);
    const isDetail = /policies\/./.test(request.path);
    if (!isTorn || !isDetail || answer.outcome !== 'ok') return answer;
    const policy = JSON.parse(Buffer.from(answer.body).toString());
    const rules = { forward_rules: policy.forward_rules.slice(1), nat_rules: [] };
    return { ...answer, body: Buffer.from(JSON.stringify({ ...policy, ...rules, ...report })) };
  };
  const stream = { ...whole, list: { ...whole.list, upstream: { get } } };
  const collection = await aCollection(clock, stream, {
    reading: { ...quickly, brake: { share: 1, count: 1_000 } },
  });
  await collection.poll();
  await collection.changes();

  isTorn = true;
  const results = [];
  for (let n = 0; n < 5; n += 1) {
    results.push(await collection.poll());
    await clock.advance(hourMs);
  }

  expect(await collection.changes()).toEqual([]);
  expect(results[0]).toMatchObject({ outcome: 'retry', cause: { details: { trace_id: 't' } } });
});

test('a look-up in part stays as it was', async () => {
  const spool = await aSpool();
  const clock = manualClock();
  let rows = [6, 17].map((number) => ({ number, name: `protocol ${number}` }));
  let said = {};
  const get = async () => okOf(JSON.stringify({ data: rows, ...said }));
  const upstream = { name: 'ops', api: 'services', baseUrl: '', companies: [], get } as const;
  const lookups = new Lookups(upstream, ['ip_protocols']);
  await lookups.renew({ spool, clock, log: noLog }, never);
  const before = lookups.names;

  await clock.advance(25 * hourMs);
  [rows, said] = [rows.slice(1), report];
  await lookups.renew({ spool, clock, log: noLog }, never);

  expect(before).not.toEqual({});
  expect(lookups.names).toEqual(before);
});

test('a look-up that was read by a clock of the future is renewed', async () => {
  const spool = await aSpool();
  const clock = manualClock();
  const rows = [{ number: 6, name: 'tcp' }];
  const get = async () => okOf(JSON.stringify({ data: rows }));
  const upstream = { name: 'ops', api: 'services', baseUrl: '', companies: [], get } as const;
  const lookups = new Lookups(upstream, ['ip_protocols']);
  clock.jump(10 * 365 * 24 * hourMs);
  await lookups.renew({ spool, clock, log: noLog }, never);
  const before = lookups.names.ip_protocols?.get(6);
  clock.jump(-10 * 365 * 24 * hourMs);
  rows.splice(0, 1, { number: 6, name: 'TCP' });

  await lookups.renew({ spool, clock, log: noLog }, never);

  expect([before, lookups.names.ip_protocols?.get(6)]).toEqual(['tcp', 'TCP']);
});
