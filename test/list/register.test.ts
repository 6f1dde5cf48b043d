// Rows of the ambiguity register about reading lists that fit no other file: each is a server that the upstream
// documents allow; with it nothing is lost, nothing comes twice, and no false report is made.

import { expect, test } from 'vitest';
import { AUDIT, LOGS, WEB } from '../sandbox/client.ts';
import { answeredBy, okOf, queryIn } from '../support/made-up-list.ts';
import {
  aList,
  checkpointOf,
  differences,
  hourMs,
  type ListUnderTest,
  ledgerIds,
  minuteMs,
  none,
  standingSandbox,
} from './reading.ts';

const cursorLogs = {
  type: 'logs',
  settings: { path: '/api/logs/v1/companies/{company_id}/events' },
};
const offsetLogs = {
  type: 'logs',
  settings: { path: '/api/logs/v1/companies/{company_id}/web', pagination: { style: 'offset' } },
};

const idsOf = async (list: ListUnderTest) => (await list.records()).map(({ id }) => id);
const orderOf = async (list: ListUnderTest) => (await checkpointOf(list)).growth.order;

test('A01: a list that is not paged is read whole at each poll, and each record is held once', async () => {
  const world = await standingSandbox({ events: 12 });
  const { sandbox, clock } = world;
  const list = await aList(world, { settings: { pagination: { style: 'none' } } });
  await list.readToTail();

  sandbox.control.grow(AUDIT, 3);
  await clock.advance(minuteMs);
  await list.readToTail();

  expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
});

test('A02: a list that is reversed is recognised at its other end, and learned again', async () => {
  const world = await standingSandbox();
  const { sandbox, clock } = world;
  const list = await aList(world);
  await list.readToTail();
  sandbox.control.grow(AUDIT, 3);
  await list.readToTail();
  const before = await orderOf(list);

  sandbox.control.setFaults({ lists: [{ path: AUDIT, order: 'newest_first' }] });
  sandbox.control.grow(AUDIT, 15);
  await clock.advance(hourMs);
  await list.readToTail();
  const between = await orderOf(list);
  sandbox.control.grow(AUDIT, 3);
  await list.readToTail();

  expect([before, between, await orderOf(list)]).toEqual([
    'oldest_first',
    'unknown',
    'newest_first',
  ]);
  expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
});

/** A list whose cursors hold for the limit that they came from. */
function boundToLimit(world: Awaited<ReturnType<typeof standingSandbox>>) {
  return aList(world, {
    wrap: (stream) =>
      answeredBy(stream, async (request, signal) => {
        const { limit } = queryIn(request);
        const query = request.query.map(([name, value]): [string, string] => {
          const [cursor = '', bound] = value.split('@');
          const isDead = bound !== String(limit);
          return [name, name !== 'cursor' ? value : isDead ? 'no cursor of this server' : cursor];
        });
        const fetched = await stream.upstream.get({ ...request, query }, signal);
        if (fetched.outcome !== 'ok') return fetched;
        const text = Buffer.from(fetched.body).toString();
        return okOf(text.replace(/("next_cursor":"[^"]+)"/, `$1@${limit}"`));
      }),
  });
}

test('A06: where a cursor holds for one limit, another limit costs a new walk and no record', async () => {
  const world = await standingSandbox();
  const { sandbox } = world;
  const list = await boundToLimit(world);
  await list.readToTail();
  sandbox.control.setFaults({ lists: [{ path: AUDIT, limit_max: 60, limit_over: 'refuse' }] });
  sandbox.control.grow(AUDIT, 12);
  await list.readToTail();
  sandbox.control.setFaults({ lists: [{ path: AUDIT, limit_max: 5, limit_over: 'refuse' }] });
  sandbox.control.grow(AUDIT, 12);

  await list.readToTail();

  expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
  expect(await list.conditions()).toEqual(['source.checkpoint_reset']);
});

test('A06 A36: a cursor that is valid for one limit is not given up for a blocked record after it', async () => {
  const world = await standingSandbox();
  const { sandbox } = world;
  const list = await boundToLimit(world);
  await list.readToTail();
  sandbox.control.grow(AUDIT, 12);
  sandbox.control.setFaults({ lists: [{ path: AUDIT, blocked_index: 45 }] });

  const polled = [await list.poll(), await list.poll()];
  sandbox.control.setFaults({});
  await list.readToTail();

  expect(polled).toMatchObject([{ outcome: 'blocked' }, { outcome: 'blocked' }]);
  expect(await list.conditions()).toEqual([]);
  expect(differences(await idsOf(list), ledgerIds(sandbox))).toEqual(none);
});

test.for(['oldest_first', 'newest_first'] as const)(
  'A10: with a time to start at, earlier records are not reported, and later ones are: %s',
  async (order) => {
    const world = await standingSandbox();
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ lists: [{ path: AUDIT, order }] });
    const texts = [...sandbox.ledger().list(AUDIT).records()].map(({ text }) => text);
    const start: string = JSON.parse(texts[30] ?? '').timestamp;
    const list = await aList(world, { settings: { start } });

    await list.readToTail();
    sandbox.control.grow(AUDIT, 3);
    await list.readToTail();
    await clock.advance(2 * hourMs);
    await list.readToTail();

    expect(differences(await idsOf(list), ledgerIds(sandbox).slice(30))).toEqual(none);
  },
);

test('A15: a checkpoint of one base address is never resumed at another', async () => {
  const [here, there] = [await standingSandbox(), await standingSandbox({ events: 3 })];
  const list = await aList(here);
  await list.readToTail();
  const before = await list.spool.recall('src');

  const moved = await aList(there, { spool: list.spool });
  const polled = await moved.poll();

  expect(polled).toMatchObject({ outcome: 'refused', cause: { code: 'checkpoint_mismatch' } });
  expect(there.sandbox.control.requests()).toEqual({});
  expect(await list.spool.recall('src')).toEqual(before);
});

test.for([0, 5, '7', null, 1_000_000])(
  'A30: a total of %j ends no list and lengthens none',
  async (total) => {
    const world = await standingSandbox();
    const { sandbox } = world;
    const rules = [{ path: WEB, fault: { kind: 'wrong_total' as const, total } }];
    sandbox.control.setFaults({ rules });
    const list = await aList(world, offsetLogs);

    await list.readToTail();
    sandbox.control.grow(WEB, 15);
    await list.readToTail();

    expect(differences(await idsOf(list), ledgerIds(sandbox, WEB))).toEqual(none);
  },
);

test('A31: a limit that upstream clamps moves on by the rows that came, whatever it says the limit was', async () => {
  const world = await standingSandbox();
  const { sandbox } = world;
  sandbox.control.setFaults({ lists: [{ path: WEB, limit_max: 7 }] });
  const list = await aList(world, {
    ...offsetLogs,
    wrap: (stream) =>
      answeredBy(stream, async (request, signal) => {
        const fetched = await stream.upstream.get(request, signal);
        if (fetched.outcome !== 'ok') return fetched;
        const text = Buffer.from(fetched.body).toString();
        return okOf(text.replace(/"limit":\d+/, '"limit":500'));
      }),
  });

  await list.readToTail();

  expect(differences(await idsOf(list), ledgerIds(sandbox, WEB))).toEqual(none);
});

test('A32: an order that is requested and ignored is learned from the records', async () => {
  const world = await standingSandbox();
  const { sandbox } = world;
  const list = await aList(world, {
    ...cursorLogs,
    settings: { ...cursorLogs.settings, order_by: 'timestamp', order: 'DESC' },
  });
  await list.readToTail();
  sandbox.control.grow(LOGS, 3);

  await list.readToTail();

  expect(await orderOf(list)).toBe('oldest_first');
  expect(differences(await idsOf(list), ledgerIds(sandbox, LOGS))).toEqual(none);
});

test('A38: each company is a stream of its own, and one that is denied keeps no other from being read', async () => {
  const world = await standingSandbox();
  const { sandbox } = world;
  const second = LOGS.replace('c-1', 'c-2');
  sandbox.control.setFaults({ rules: [{ path: LOGS, fault: 403 }] });
  const denied = await aList(world, cursorLogs);
  const other = await aList(world, { ...cursorLogs, company: 'c-2' });

  const polled = await denied.poll();
  await other.readToTail();

  expect(polled).toMatchObject({ outcome: 'denied' });
  expect([denied.stream.name, other.stream.name]).toEqual(['src/c-1', 'src/c-2']);
  expect(differences(await idsOf(other), ledgerIds(sandbox, second))).toEqual(none);
});
