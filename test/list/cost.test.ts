// What reading a list costs: the requests of a poll that finds nothing, in each order and style of paging, and of the walks
// that are due now and then. And that a list which has not grown teaches no order, so that no walk goes to the wrong end.

import { expect, test } from 'vitest';
import type { ListBehaviour } from '../../src/sandbox/sandbox.ts';
import { LOGS, WEB } from '../sandbox/client.ts';
import { answeredBy } from '../support/made-up-list.ts';
import {
  aList,
  checkpointOf,
  differences,
  hourMs,
  ledgerTexts,
  minuteMs,
  none,
  standingSandbox,
} from './reading.ts';

type Order = NonNullable<ListBehaviour['order']>;

interface Kind {
  readonly style: 'cursor' | 'offset';
  readonly order: Order;
  readonly ids?: 'text' | 'none';
}

/** A list of six pages, whose requests are counted; those named in `failing` get no answer. */
async function counted(
  { style, order, ids = 'text' }: Kind,
  failing: ReadonlySet<number> = new Set(),
) {
  const world = await standingSandbox({ events: 60 });
  const { sandbox, clock } = world;
  const path = style === 'cursor' ? LOGS : WEB;
  const lists = [{ path, order, ids }];
  const rules = [{ path, fault: 500 }];
  sandbox.control.setFaults({ lists });
  let requests = 0;
  const list = await aList(world, {
    type: 'logs',
    settings: {
      path: path.replace('c-1', '{company_id}'),
      pagination: { style },
      id: ids === 'none' ? null : 'id',
    },
    wrap: (stream) =>
      answeredBy(stream, (request, signal) => {
        requests += 1;
        if (failing.has(requests)) sandbox.control.setFaults({ lists, rules });
        else sandbox.control.setFaults({ lists });
        return stream.upstream.get(request, signal);
      }),
  });
  return {
    list,
    clock,
    grow: (count: number) => sandbox.control.grow(path, count),
    /** Requests of a poll to the tail, after a wait. */
    async cost(waitMs: number) {
      await clock.advance(waitMs);
      const before = requests;
      await list.readToTail();
      return requests - before;
    },
    order: async () => (await checkpointOf(list)).growth.order,
    async differences() {
      const held = (await list.records()).map(({ text }) => text);
      return differences(held, ledgerTexts(sandbox, path));
    },
  };
}

// By offset the end is a position that shows nothing at all, which takes a second request. If records have come in
// through the end it is proven, so that the whole list of seven pages is read once a day and not each hour; by offset
// there is no step back, so a full scan finds late records.
test.for<Kind & { unknown: number; learned: number; quarter: number; hour: number; day: number }>([
  { style: 'cursor', order: 'oldest_first', unknown: 2, learned: 1, quarter: 3, hour: 4, day: 11 },
  { style: 'cursor', order: 'newest_first', unknown: 2, learned: 1, quarter: 4, hour: 12, day: 12 },
  { style: 'offset', order: 'oldest_first', unknown: 3, learned: 2, quarter: 2, hour: 13, day: 13 },
  { style: 'offset', order: 'newest_first', unknown: 3, learned: 1, quarter: 5, hour: 17, day: 17 },
])(
  'a poll that finds nothing takes $learned: $style, $order; $unknown while that is not known',
  async ({ unknown, learned, quarter, hour, day, ...kind }) => {
    const { list, cost, grow, order, differences: found } = await counted(kind);
    await list.readToTail();

    const before = [await cost(minuteMs), await cost(minuteMs)];
    for (const count of [3, 3]) {
      grow(count);
      await list.readToTail();
    }
    const after = [await cost(minuteMs), await cost(minuteMs)];
    await cost(hourMs);
    const due = [await cost(15 * minuteMs), await cost(hourMs), await cost(24 * hourMs)];
    list.restart();

    expect(before).toEqual([unknown, unknown]);
    expect(after).toEqual([learned, learned]);
    expect(due).toEqual([quarter, hour, day]);
    expect(await cost(minuteMs)).toBe(learned);
    expect(await order()).toBe(kind.order);
    expect(await found()).toEqual(none);
  },
);

test.for(
  (['cursor', 'offset'] as const).flatMap((style) =>
    (['oldest_first', 'newest_first'] as const).flatMap((order) =>
      [1, 4].map((failing) => ({ style, order, failing })),
    ),
  ),
)(
  'a list that has not grown has no order, however it was read: $style, $order, request $failing fails',
  async ({ failing, ...kind }) => {
    const {
      list,
      clock,
      cost,
      order,
      differences: found,
    } = await counted({ ...kind, ids: 'none' }, new Set([failing]));

    const failed = await list.poll();
    await clock.advance(1_000);
    await list.readToTail();
    await cost(minuteMs);
    list.restart();
    await cost(2 * hourMs);

    expect(failed.outcome).toBe('retry');
    expect(await order()).toBe('unknown');
    expect(await found()).toEqual(none);
  },
);
