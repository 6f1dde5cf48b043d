// Lists read to their tail whatever the server's order, tail and paging: each record once, none missing, none invented; and
// what is new is found where it turns up.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AUDIT, LOGS, WEB } from '../sandbox/client.ts';
import {
  aList,
  differences,
  hourMs,
  ledgerIds,
  ledgerTexts,
  none,
  standingSandbox,
} from './reading.ts';

const orders = ['oldest_first', 'newest_first', 'mixed'] as const;
const tails = ['null', 'same', 'missing'] as const;

describe('cursor lists', () => {
  test.for(orders.flatMap((order) => tails.map((tail) => ({ order, tail }))))(
    'A02 A03 A04: each id is held once: $order, tail $tail, over growth and restarts',
    async ({ order, tail }) => {
      const world = await standingSandbox();
      const { sandbox, clock } = world;
      sandbox.control.setFaults({ lists: [{ path: AUDIT, order, tail }] });
      const list = await aList(world);

      await list.readToTail();
      for (const count of [1, 3, 25, 2]) {
        sandbox.control.grow(AUDIT, count);
        await clock.advance(30_000);
        if (count === 3) list.restart();
        await list.readToTail();
      }
      // The end that is not known to grow is looked at once an hour.
      await clock.advance(hourMs);
      await list.readToTail();

      const held = (await list.records()).map(({ id }) => id);
      expect(differences(held, ledgerIds(sandbox))).toEqual(none);
    },
  );

  test('each id is held once by a server of any kind', async () => {
    const server = fc.record({
      order: fc.constantFrom(...orders),
      tail: fc.constantFrom(...tails),
      limit: fc.integer({ min: 1, max: 50 }),
      empty_every: fc.option(fc.integer({ min: 2, max: 4 }), { nil: undefined }),
      repeat_last: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
      ids: fc.constantFrom('text' as const, 'integer' as const),
      growth: fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 4 }),
    });

    await fc.assert(
      fc.asyncProperty(server, async ({ limit, growth, empty_every, repeat_last, ...rest }) => {
        const behaviour = {
          path: AUDIT,
          ...rest,
          ...(empty_every === undefined ? {} : { empty_every }),
          ...(repeat_last === undefined ? {} : { repeat_last }),
        };
        const world = await standingSandbox();
        const { sandbox, clock } = world;
        sandbox.control.setFaults({ lists: [behaviour] });
        const list = await aList(world, { settings: { page_limit: limit } });

        await list.readToTail();
        for (const count of growth) {
          sandbox.control.grow(AUDIT, count);
          await clock.advance(30_000);
          await list.readToTail();
        }
        await clock.advance(hourMs);
        await list.readToTail();
        const held = (await list.records()).map(({ id }) => id);
        await Promise.all([list.spool.close(), sandbox.close()]);

        expect(differences(held, ledgerIds(sandbox))).toEqual(none);
      }),
      { numRuns: 15 },
    );
  });
});

describe('records without ids', () => {
  test.for(orders)('twins stay two and nothing comes twice: %s', async (order) => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ lists: [{ path: LOGS, order, twins_every: 7, ids: 'none' }] });
    const path = '/api/logs/v1/companies/{company_id}/events';
    const list = await aList(world, { type: 'logs', settings: { path, id: null } });

    await list.readToTail();
    for (const count of [1, 4, 25, 2]) {
      sandbox.control.grow(LOGS, count);
      await clock.advance(16 * 60_000);
      if (count === 4) list.restart();
      await list.readToTail();
    }
    await clock.advance(hourMs);
    await list.readToTail();

    const held = await list.records();
    const texts = held.map(({ text }) => text);
    expect(differences(texts, ledgerTexts(sandbox, LOGS))).toEqual(none);
    expect(new Set(held.map(({ uid }) => uid)).size).toBe(held.length);
  });
});

describe('offset lists', () => {
  const settings = {
    path: '/api/logs/v1/companies/{company_id}/web',
    pagination: { style: 'offset' },
  };

  test.for(orders)('each id is held once over growth and restarts: %s', async (order) => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ lists: [{ path: WEB, order }] });
    const list = await aList(world, { type: 'logs', settings });

    await list.readToTail();
    for (const count of [1, 3, 25, 2]) {
      sandbox.control.grow(WEB, count);
      await clock.advance(30 * 60_000);
      if (count === 3) list.restart();
      await list.readToTail();
    }
    await clock.advance(hourMs);
    await list.readToTail();

    const held = (await list.records()).map(({ id }) => id);
    expect(differences(held, ledgerIds(sandbox, WEB))).toEqual(none);
  });
});
