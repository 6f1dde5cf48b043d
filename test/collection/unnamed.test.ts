// Rules and entries without ids, with counters: a counter makes no entity and deletes none, and a change beside it is an
// update of the one entity. What upstream adds or removes is still reported. Rule R3, behaviours.md 2.3.6.

import { describe, expect, test } from 'vitest';
import type { CollectionReading } from '../../src/contracts/definition.ts';
import type { CollectionStream } from '../../src/contracts/source.ts';
import { aCollection, aSpool, minuteMs, quickly } from '../list/reading.ts';
import { okOf, pagination } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';

const careful: CollectionReading = {
  ...quickly,
  ...{ confirmAfterMs: 30_000, settleMs: minuteMs, brake: { share: 1, count: 1_000 } },
};

type Rule = Readonly<Record<string, unknown>>;

interface World {
  /** The elements at a reading, numbered from 0. */
  at(reading: number): readonly Rule[];
  /** Within each of two policies, or else listed themselves. */
  readonly isRules: boolean;
  readonly said?: (reading: number) => object;
}

async function watched({ at, isRules, said = () => ({}) }: World) {
  const clock = manualClock();
  let n = -1;
  const get = async ({ path }: { readonly path: string }) => {
    const policy = (id: string) => ({ id, rules: at(n) });
    const list = isRules ? [{ id: 'p-1' }, { id: 'p-2' }] : at(n);
    const body = path === '/' ? { data: list, ...said(n) } : policy(path.slice(1));
    return okOf(JSON.stringify(body));
  };
  const request = (path: string) => ({ path, template: path, query: [] });
  const stream: CollectionStream = {
    kind: 'collection',
    ...{ name: 'src', source: 'src', paths: [], fingerprint: 'made up', resource: 'things' },
    entity: { kind: isRules ? 'policy' : 'entry', ids: ['id'] },
    list: {
      ...{ name: 'src', request: request('/'), sorting: [], id: 'id', upstream: { get } },
      ...{ pageLimit: null, pagination: { ...pagination, style: 'shown' }, ignore: ['updated_at'] },
    },
    ...(isRules && {
      detail: {
        request: (id) => request(`/${id}`),
        parts: { kind: 'rule', ids: ['id'], isList: (name) => name === 'rules' },
      },
    }),
  };
  const spool = await aSpool();
  const collection = await aCollection(clock, stream, { reading: careful, spool });
  return {
    collection,
    /** Reads so often; what each reading reported. */
    async read(times: number) {
      const reported: string[][] = [];
      for (let i = 0; i < times; i += 1) {
        n += 1;
        await clock.advance(minuteMs);
        await collection.poll();
        const changes = await collection.changes();
        reported.push(
          changes.flatMap(({ change, entity_kind, changed }) =>
            change === 'baseline' ? [] : [`${change} ${entity_kind} ${changed ?? ''}`.trim()],
          ),
        );
      }
      return reported;
    },
    keys: async () => [...(await spool.entities('src', { after: '', max: 1_000 })).keys()],
    volatile: () =>
      collection.found.flatMap(({ condition, details }) =>
        condition === 'source.volatile_fields' ? [`${details?.kind} ${details?.path}`] : [],
      ),
  };
}

/** Each holds for both policies, where there are such. */
const each = (isRules: boolean, changes: readonly string[]) =>
  isRules ? changes.flatMap((one) => [one, one]) : changes;
const names = ['ssh', 'rdp', 'dns', 'smtp'];
const counting = (n: number) =>
  names.map((name, i) => ({ name, action: 'DENY', hits: n * (i + 1) }));

describe.for([
  ['rules of a policy', true],
  ['entries of a list', false],
] as const)('%s', ([, isRules]) => {
  const kind = isRules ? 'rule' : 'entry';

  test('counters alone make nothing, keep each key, and are learned; over restarts', async () => {
    const { read, keys, volatile, collection } = await watched({ isRules, at: counting });

    const first = await read(1);
    const before = await keys();
    const reported = await read(4);
    collection.restart();
    const later = await read(6);

    expect([...first, ...reported, ...later].flat()).toEqual([]);
    expect(await keys()).toEqual(before);
    expect(volatile()).toEqual([`${kind} hits`]);
  });

  test.for([3, 9])(
    'an element that is added or removed beside counters: reading %i',
    async (when) => {
      const { read } = await watched({
        isRules,
        at: (n) => [
          ...counting(n).slice(n >= when ? 1 : 0),
          ...(n >= when ? [{ name: 'new', action: 'DENY', hits: n }] : []),
        ],
      });

      const reported = (await read(16)).flat().filter((one) => !one.includes('policy'));

      expect(reported.toSorted()).toEqual(
        each(isRules, [`created ${kind}`, `deleted ${kind}`]).toSorted(),
      );
    },
  );

  test('without counters keys are those of the content, also for equal elements', async () => {
    const rules = [{ v: 'a' }, { v: 'a' }, { v: 'b', n: 1 }];
    const { read, keys } = await watched({ isRules, at: () => rules });

    await read(1);
    const before = await keys();
    const reported = await read(3);

    expect(reported.flat()).toEqual([]);
    expect(await keys()).toEqual(before);
    expect(before.filter((key) => key.includes('sha256:'))).toHaveLength(isRules ? 6 : 3);
    expect(before.some((key) => key.includes('sha256:') && key.includes('#2'))).toBe(true);
  });

  test('a number that changes once is an update', async () => {
    const { read } = await watched({
      isRules,
      at: (n) => names.map((name) => ({ name, port: name === 'dns' && n >= 2 ? 5353 : 1 })),
    });

    expect((await read(8)).flat()).toEqual(each(isRules, [`updated ${kind} port`]));
  });

  test('equal elements that only count make nothing', async () => {
    const { read } = await watched({
      isRules,
      at: (n) => [0, 1, 2].map((i) => ({ action: 'DENY', hits: i * 1000 + n * (i + 1) })),
    });

    expect((await read(12)).flat()).toEqual([]);
  });
});

test('an action that changes beside a counter is one update of the rule', async () => {
  for (const when of [2, 9]) {
    const { read } = await watched({
      isRules: true,
      at: (n) =>
        counting(n).map((rule, i) => (i === 2 && n >= when ? { ...rule, action: 'ACCEPT' } : rule)),
    });

    const reported = await read(14);

    expect(reported[when + 1]).toEqual(['updated rule action', 'updated rule action']);
    expect(reported.flat()).toHaveLength(2);
  }
});

test('an entry whose text changes beside a counter is reported, as another entry', async () => {
  const { read } = await watched({
    isRules: false,
    at: (n) =>
      counting(n).map((one, i) => (i === 2 && n >= 8 ? { ...one, action: 'ACCEPT' } : one)),
  });

  expect((await read(16)).flat()).toEqual(['created entry', 'deleted entry']);
});

test('of numbers that are the content, one removed and one added are just that', async () => {
  const at = (n: number) =>
    [1, 2, 3, 4, 5].map((asn) => ({ asn: asn === 3 && n >= 2 ? 99 : asn, list: 'x' }));
  const { read } = await watched({ isRules: false, at });

  expect((await read(8)).flat().toSorted()).toEqual(['created entry', 'deleted entry']);
});

test('in a part of a list nothing is paired that is only alike', async () => {
  const { read } = await watched({
    isRules: false,
    at: (n) => (n === 2 ? [{ name: 'ssh', port: 2222 }] : [{ name: 'ssh', port: 22 }]),
    said: (n) => (n === 2 ? { partial: true } : {}),
  });

  expect((await read(6)).flat()).toEqual([]);
});
