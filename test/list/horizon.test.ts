// What was forgotten: a bounded number of records is remembered, and in a list that is longer the forgotten ones must not
// look new when it is read again. Forgetting takes half a million records, so here a spool begins with what is left then.

import { describe, expect, test } from 'vitest';
import { identityBytes } from '../../src/contracts/spool.ts';
import { joinedChange, noHorizon, remember } from '../../src/list/checkpoint.ts';
import { LOGS } from '../sandbox/client.ts';
import { answeredBy } from '../support/made-up-list.ts';
import {
  aList,
  aSpool,
  checkpointOf,
  differences,
  hourMs,
  minuteMs,
  none,
  standingSandbox,
} from './reading.ts';

const fresh = { remembered: [], horizon: null };

/** The memory after pages of 50,000 records, each with its latest time. */
function memoryAfter(latest: readonly (number | null)[]) {
  return latest.reduce<Parameters<typeof remember>[0]>(
    (memory, time) => remember(memory, 50_000, time),
    fresh,
  );
}

describe('remember', () => {
  test('forgets nothing of half a million records', () => {
    const { remembered, horizon } = memoryAfter([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);

    expect(horizon).toBeNull();
    expect(remembered.map(({ count }) => count)).toEqual(Array(5).fill(100_000));
  });

  test('moves the horizon to the latest time that may be forgotten, and never back', () => {
    expect(memoryAfter([7, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]).horizon).toBe(7);
    expect(memoryAfter([7, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]).horizon).toBe(7);
    expect(memoryAfter([1, 1, 7, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]).horizon).toBe(7);
  });

  test('has no horizon to go by where something without a time may be forgotten', () => {
    expect(memoryAfter([1, null, 3, 4, 5, 6, 7, 8, 9, 10, 11]).horizon).toBe(noHorizon);
  });
});

describe('a list that is longer than the memory', () => {
  /** A list of 60 whose reader remembers no more than the last 20, with this horizon. */
  async function longList(
    ids: 'text' | 'none',
    order: 'oldest_first' | 'newest_first' | 'unknown',
    horizonOf: (times: readonly number[]) => number,
  ) {
    const world = await standingSandbox({ events: 60 });
    const { sandbox } = world;
    const served = order === 'unknown' ? 'oldest_first' : order;
    sandbox.control.setFaults({ lists: [{ path: LOGS, ids, order: served }] });
    const choices = {
      type: 'logs',
      settings: {
        path: '/api/logs/v1/companies/{company_id}/events',
        id: ids === 'none' ? null : 'id',
        lookback: '1m',
      },
    };
    const first = await aList(world, choices);
    await first.readToTail();
    const stream = first.stream.name;
    const { identities } = await first.spool.recall(stream);
    const checkpoint = await checkpointOf(first);
    const times = (await first.records()).map(({ text }) => Date.parse(JSON.parse(text).timestamp));
    const spool = await aSpool();
    const left = Buffer.concat(identities.map(({ bytes }) => bytes)).subarray(-20 * identityBytes);
    await spool.append({
      stream,
      pages: [],
      checkpoint: joinedChange(checkpoint, {
        growth: { order },
        memory: { horizon: horizonOf(times) },
      }),
      identities: left,
    });
    let requests = 0;
    const list = await aList(world, {
      ...choices,
      spool,
      wrap: (one) =>
        answeredBy(one, (request, signal) => {
          requests += 1;
          return one.upstream.get(request, signal);
        }),
    });
    return { ...world, list, times, requests: () => requests };
  }

  test.for([
    { ids: 'text', order: 'unknown' },
    { ids: 'none', order: 'unknown' },
    { ids: 'text', order: 'oldest_first' },
  ] as const)(
    'is read again without storing forgotten records again: order $order, ids $ids',
    async ({ ids, order }) => {
      const { sandbox, clock, list, requests } = await longList(
        ids,
        order,
        (times) => times[39] ?? 0,
      );
      const before = [...sandbox.ledger().list(LOGS).records()].length;

      await clock.advance(2 * hourMs);
      sandbox.control.grow(LOGS, 5);
      await list.readToTail();
      await clock.advance(2 * hourMs);
      await list.readToTail();

      const served = [...sandbox.ledger().list(LOGS).records()].map(({ text }) => text);
      const held = (await list.records()).map(({ text }) => text);
      expect(requests()).toBeGreaterThan(6);
      expect(differences(held, served.slice(before))).toEqual(none);
    },
  );

  test('that grows at its start stores again only records that may be late', async () => {
    const { clock, list, times } = await longList('text', 'newest_first', (all) =>
      Math.max(...all),
    );

    await list.readToTail();
    await clock.advance(2 * hourMs);
    await list.readToTail();

    const newest = Math.max(...times);
    const again = (await list.records()).map(({ text }) => JSON.parse(text).timestamp);
    expect(again.filter((time) => Date.parse(time) < newest - minuteMs)).toEqual([]);
  });

  test('that grows at its start leaves no search to a full scan, which takes some late records for known', async () => {
    const { clock, list, requests } = await longList('text', 'newest_first', (all) =>
      Math.max(...all),
    );
    await list.readToTail();
    await clock.advance(2 * hourMs);
    const before = requests();

    await list.readToTail();

    // The scan has seven pages after the first request; the search for late records and the other end are not left to it.
    expect(requests() - before).toBeGreaterThan(8);
  });

  test('is not read again if forgotten records have no time', async () => {
    const { sandbox, clock, list, requests } = await longList(
      'text',
      'oldest_first',
      () => noHorizon,
    );
    sandbox.control.grow(LOGS, 5);

    for (const wait of [0, 2 * hourMs, 25 * hourMs]) {
      await clock.advance(wait);
      await list.readToTail();
    }

    expect((await list.records()).length).toBe(5);
    expect(requests()).toBeLessThan(12);
  });
});
