// A past time read from the sandbox's lists, beside a live stream that has read them: the same uids, nothing outside it, and
// nothing twice, in every order and style of paging, and after a cut.

import { describe, expect, test } from 'vitest';
import type { ListStream } from '../../src/contracts/source.ts';
import { Backfill, type BackfillDeps } from '../../src/list/backfill.ts';
import { AUDIT, LOGS, WEB } from '../sandbox/client.ts';
import { answeredBy } from '../support/made-up-list.ts';
import { noLog } from '../support/plain-upstream.ts';
import { aList, type HeldRecord, type ListChoices, standingSandbox } from './reading.ts';

const never = new AbortController().signal;
const records = 60;
const lookbackMs = 1_000;

/** How the sandbox serves the list. */
type Behaviour = NonNullable<
  Parameters<
    Awaited<ReturnType<typeof standingSandbox>>['sandbox']['control']['setFaults']
  >[0]['lists']
>[number];

/** A list that its live stream has read, and a sixth of its time. */
async function aReadList(behaviour: Behaviour, choices: ListChoices = {}) {
  const world = await standingSandbox({ events: records });
  world.sandbox.control.setFaults({ lists: [behaviour] });
  const list = await aList(world, choices);
  await list.readToTail();
  const live = await list.records();
  const times = live.map(timeOf).toSorted((a, b) => a - b);
  const span = { fromMs: times[25] ?? 0, toMs: times[35] ?? 0 };
  const isWithin = (at: number) => at >= span.fromMs && at < span.toMs;
  const deps: BackfillDeps = {
    ...{ stream: list.stream, spool: list.spool, span, clock: world.clock, log: noLog },
    list: { order: 'auto', lookbackMs },
    key: `${list.stream.name}#backfill-1`,
    pace: async () => undefined,
  };
  return {
    ...world,
    deps,
    /** Of the events of that time, as the live stream gave them. */
    uids: live.filter((record) => isWithin(timeOf(record))).map(({ uid }) => uid),
    /** Of what was held since. */
    past: async () => (await list.records()).slice(live.length).map(({ uid }) => uid),
  };
}

function timeOf({ text }: HeldRecord): number {
  return Date.parse(JSON.parse(text).timestamp);
}

/** The same stream, counting its requests; after `cutAfter` requests it aborts the caller. */
function counting(stream: ListStream, cutAfter = Number.POSITIVE_INFINITY) {
  const cut = new AbortController();
  const counted = {
    requests: 0,
    cut: cut.signal,
    stream: answeredBy(stream, async (request, signal) => {
      counted.requests += 1;
      if (counted.requests > cutAfter) cut.abort(new Error('cut'));
      cut.signal.throwIfAborted();
      return await stream.upstream.get(request, signal);
    }),
  };
  return counted;
}

describe('a backfill', () => {
  const kinds: readonly (readonly [string, Behaviour, ListChoices])[] = [
    ['oldest first', { path: AUDIT, order: 'oldest_first' }, {}],
    ['newest first', { path: AUDIT, order: 'newest_first' }, {}],
    ['mixed', { path: AUDIT, order: 'mixed' }, {}],
    [
      'by offset',
      { path: WEB },
      {
        type: 'logs',
        settings: {
          path: '/api/logs/v1/companies/{company_id}/web',
          pagination: { style: 'offset' },
        },
      },
    ],
    [
      'without ids, with twins',
      { path: LOGS, twins_every: 5, ids: 'none' },
      { type: 'logs', settings: { path: '/api/logs/v1/companies/{company_id}/events', id: null } },
    ],
  ];

  test.for(kinds)(
    'gives each event of that time the uid of the live stream: %s',
    async ([, ...how]) => {
      const { deps, uids, past } = await aReadList(...how);
      const backfill = new Backfill(deps);

      const result = await backfill.poll(never);

      expect(result).toMatchObject({ outcome: 'done', more: false });
      expect((await past()).toSorted()).toEqual(uids.toSorted());
      expect(backfill.state).toMatchObject({ held: uids.length, untimed: 0, share: 1 });
    },
  );

  test.for(kinds)('resumes after a cut with nothing lost or repeated: %s', async ([, ...how]) => {
    const { deps, uids, past } = await aReadList(...how);
    const first = counting(deps.stream, 3);
    await expect(new Backfill({ ...deps, stream: first.stream }).poll(first.cut)).rejects.toThrow(
      'cut',
    );
    const early = await past();

    const backfill = new Backfill(deps);
    await backfill.poll(never);

    expect(early.length).toBeLessThan(uids.length);
    expect((await past()).toSorted()).toEqual(uids.toSorted());
    expect(backfill.state.held).toBe(uids.length);
  });

  test('leaves the checkpoint and the repeats of the live stream as they are', async () => {
    const { deps } = await aReadList({ path: AUDIT });
    const before = await deps.spool.recall(deps.stream.name);

    await new Backfill(deps).poll(never);

    expect(await deps.spool.recall(deps.stream.name)).toEqual(before);
  });

  test('holds and counts records without a readable time', async () => {
    const { deps, past } = await aReadList({ path: AUDIT }, { settings: { time: ['nowhere'] } });
    const backfill = new Backfill(deps);

    await backfill.poll(never);

    expect(await past()).toHaveLength(records);
    expect(backfill.state).toMatchObject({ held: records, untimed: records, reachedAt: null });
  });

  test.for(['oldest_first', 'newest_first'] as const)(
    'ends past its time where the order is known: %s',
    async (order) => {
      const { deps, uids, past } = await aReadList({ path: AUDIT, order });
      const list = { order, lookbackMs };
      const asked = counting(deps.stream);

      await new Backfill({ ...deps, stream: asked.stream, list }).poll(never);

      expect((await past()).toSorted()).toEqual(uids.toSorted());
      // Of six pages.
      expect(asked.requests).toBe(5);
    },
  );

  test('walks again, without repeats, if upstream has forgotten its position', async () => {
    const { deps, uids, past, clock } = await aReadList({ path: AUDIT, cursor_lifetime_s: 60 });
    const first = counting(deps.stream, 3);
    await new Backfill({ ...deps, stream: first.stream }).poll(first.cut).catch(() => undefined);
    await clock.advance(120_000);
    const backfill = new Backfill(deps);

    expect(await backfill.poll(never)).toMatchObject({ outcome: 'retry' });
    expect(await backfill.poll(never)).toMatchObject({ outcome: 'done', more: false });

    expect((await past()).toSorted()).toEqual(uids.toSorted());
  });

  test('is halted if its list is requested in another way than before', async () => {
    const { deps } = await aReadList({ path: AUDIT });
    await new Backfill(deps).poll(never);
    const stream = { ...deps.stream, fingerprint: 'another' };

    const result = await new Backfill({ ...deps, stream }).poll(never);

    expect(result).toMatchObject({ outcome: 'refused', cause: { code: 'checkpoint_mismatch' } });
    expect(result).toMatchObject({ cause: { next: expect.stringContaining('--restart') } });
  });
});
