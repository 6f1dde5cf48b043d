// Lasting rejections by upstream: of the sorting that a source requests, and of a company. Reading continues as far as
// possible, the sinks get one report, and learned facts outlive a restart.

import { describe, expect, test } from 'vitest';
import { AUDIT, LOGS, WEB } from '../sandbox/client.ts';
import { answeredBy } from '../support/made-up-list.ts';
import {
  aList,
  checkpointOf,
  differences,
  type ListUnderTest,
  ledgerIds,
  minuteMs,
  none,
  standingSandbox,
} from './reading.ts';

const idsOf = async (list: ListUnderTest) => (await list.records()).map(({ id }) => id);

describe('A32: a sorting that is refused', () => {
  const sorted = (orderBy: string) => ({
    type: 'logs',
    settings: {
      path: '/api/logs/v1/companies/{company_id}/web',
      pagination: { style: 'offset' },
      order_by: orderBy,
      order: 'oldest_first',
    },
  });

  test('is left out, the page limit is unchanged, and the order is learned', async () => {
    const world = await standingSandbox();
    const { sandbox } = world;
    const list = await aList(world, sorted('ts'));
    await list.readToTail();
    const before = await checkpointOf(list);

    sandbox.control.grow(WEB, 3);
    await list.readToTail();

    expect(before).toMatchObject({
      server: { unsorted: true, limitMax: null },
      growth: { order: 'unknown' },
    });
    expect((await checkpointOf(list)).growth).toMatchObject({ order: 'oldest_first' });
    expect(differences(await idsOf(list), ledgerIds(sandbox, WEB))).toEqual(none);
    expect(await list.conditions()).toEqual([]);
  });

  test('once it was accepted, costs a full scan, which is reported', async () => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    let taken = true;
    const list = await aList(world, {
      ...sorted('timestamp'),
      // The sorting that upstream accepts at first is the one it rejects then.
      wrap: (stream) =>
        answeredBy(stream, ({ query, ...request }, signal) => {
          const refused = query.map(([name, value]): [string, string] =>
            name === 'order_by' ? [name, 'ts'] : [name, value],
          );
          return stream.upstream.get({ ...request, query: taken ? query : refused }, signal);
        }),
    });
    await list.readToTail();

    taken = false;
    sandbox.control.grow(WEB, 13);
    await clock.advance(minuteMs);
    await list.readToTail();
    list.restart();
    await list.poll();
    await list.readToTail();

    expect(differences(await idsOf(list), ledgerIds(sandbox, WEB))).toEqual(none);
    expect(await list.reported()).toMatchObject([
      {
        condition: 'source.checkpoint_reset',
        message: expect.stringContaining('no longer accepts the sorting'),
      },
    ]);
  });

  test('is not requested again after a restart', async () => {
    const world = await standingSandbox();
    const { sandbox } = world;
    const list = await aList(world, sorted('ts'));
    await list.readToTail();
    list.restart();
    sandbox.control.resetRequests();

    await list.readToTail();

    expect(sandbox.control.requests()[WEB]?.statuses).toEqual({ 200: expect.any(Number) });
  });

  test('together with everything else is no matter of the sorting', async () => {
    const world = await standingSandbox();
    const list = await aList(world, sorted('timestamp'));
    const { sandbox } = world;
    sandbox.control.setFaults({ rules: [{ path: WEB, fault: { kind: 'status', status: 400 } }] });
    const polled = await list.poll();

    sandbox.control.setFaults({});
    await list.readToTail();

    expect(polled).toMatchObject({ outcome: 'refused', cause: { code: 'upstream_refused' } });
    const { server } = await checkpointOf(list);
    expect(server).toMatchObject({ unsorted: false, limitMax: null });
    expect(differences(await idsOf(list), ledgerIds(sandbox, WEB))).toEqual(none);
  });
});

describe('2.8: a company that is denied or gone', () => {
  test.for([403, 404])(
    'is reported once per loss that lasts, and the others are read on: %d',
    async (status) => {
      const world = await standingSandbox();
      const { sandbox, clock } = world;
      const logs = {
        type: 'logs',
        settings: { path: '/api/logs/v1/companies/{company_id}/events' },
      };
      const [list, other] = [
        await aList(world, logs),
        await aList(world, { ...logs, company: 'c-2' }),
      ];
      await list.readToTail();
      await other.readToTail();
      const rules = [{ path: LOGS, fault: { kind: 'status' as const, status } }];
      const lose = async () => {
        sandbox.control.setFaults({ rules });
        sandbox.control.grow(LOGS, 3);
        await clock.advance(minuteMs);
        const polled = await list.poll();
        await clock.advance(2_000);
        await list.poll();
        await clock.advance(3_000);
        await list.poll();
        return polled;
      };
      const comeBack = async () => {
        sandbox.control.setFaults({});
        await clock.advance(minuteMs);
        await list.readToTail();
      };

      const first = await lose();
      list.restart();
      await lose();
      const reportedOnce = await list.reported();
      const read = await other.poll();
      await comeBack();
      await lose();
      await comeBack();

      expect(first).toMatchObject({ outcome: 'denied' });
      expect(read).toMatchObject({ outcome: 'done' });
      expect(reportedOnce).toMatchObject([
        {
          condition: 'source.scope_lost',
          details: { reason: expect.stringContaining(`${status}`) },
        },
      ]);
      expect(await list.conditions()).toEqual(['source.scope_lost', 'source.scope_lost']);
      expect(differences(await idsOf(list), ledgerIds(sandbox, LOGS))).toEqual(none);
    },
  );

  const [events, web] = ['events', 'web'].map((name) => ({
    type: 'logs',
    settings: { path: `/api/logs/v1/companies/{company_id}/${name}` },
  }));
  const offset = { ...web, settings: { ...web?.settings, pagination: { style: 'offset' } } };
  test.for([
    { what: 'a cursor', list: events, path: LOGS, outcome: 'retry' },
    { what: 'an offset', list: offset, path: WEB, outcome: 'refused' },
  ])('is not the meaning of a 404 for $what', async ({ list: choices, path, outcome }) => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    const fault = { kind: 'status' as const, status: 404 };
    sandbox.control.setFaults({ rules: [{ path, only: 'following', after: 1, fault }] });
    const list = await aList(world, choices);

    const polled = await list.poll();
    sandbox.control.setFaults({});
    await clock.advance(minuteMs);
    await list.readToTail();

    expect(polled).toMatchObject({ outcome });
    expect(await list.conditions()).toEqual([]);
    expect(differences(await idsOf(list), ledgerIds(sandbox, path))).toEqual(none);
  });

  test.for([403, 404])('is not a rejection that passes within seconds: %d', async (status) => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    const list = await aList(world, {
      type: 'logs',
      settings: { path: '/api/logs/v1/companies/{company_id}/events' },
    });
    sandbox.control.setFaults({ rules: [{ path: LOGS, fault: { kind: 'status', status } }] });
    await list.poll();
    await clock.advance(2_000);
    await list.poll();
    sandbox.control.setFaults({});

    await list.readToTail();

    expect(await list.conditions()).toEqual([]);
    expect(differences(await idsOf(list), ledgerIds(sandbox, LOGS))).toEqual(none);
  });

  test('is not a rejected path without a company', async () => {
    const world = await standingSandbox();
    const { sandbox } = world;
    const list = await aList(world);
    await list.readToTail();
    sandbox.control.setFaults({ rules: [{ path: AUDIT, fault: { kind: 'status', status: 404 } }] });

    const polled = await list.poll();

    expect(polled).toMatchObject({ outcome: 'refused' });
    expect(await list.conditions()).toEqual([]);
  });
});

test('a checkpoint says since when the order is known, and not that it is where it is in doubt', async () => {
  const world = await standingSandbox();
  const { sandbox, clock } = world;
  const list = await aList(world);
  await list.readToTail();
  const fresh = await checkpointOf(list);
  await clock.advance(minuteMs);
  sandbox.control.grow(AUDIT, 3);
  await list.readToTail();
  const learnedAt = clock.now();
  await clock.advance(minuteMs);
  await list.readToTail();

  expect(fresh.growth).toEqual({ order: 'unknown', learnedAt: null });
  expect((await checkpointOf(list)).growth).toEqual({ order: 'oldest_first', learnedAt });
});
