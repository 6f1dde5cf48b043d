// A row that upstream does not show (HTTP 451), anywhere in a list whose rows are counted: the rows around it are
// delivered, the gap is reported once with upstream's trace id, and the rest is read.

import { expect, test } from 'vitest';
import { WEB } from '../sandbox/client.ts';
import {
  aList,
  differences,
  heldIn,
  hourMs,
  ledgerIds,
  minuteMs,
  none,
  standingSandbox,
} from './reading.ts';

test.for([
  { at: 0, events: 40, order: 'oldest_first' },
  { at: 7, events: 40, order: 'oldest_first' },
  { at: 8, events: 40, order: 'oldest_first' },
  { at: 39, events: 40, order: 'oldest_first' },
  { at: 451, events: 500, order: 'oldest_first' },
  { at: 451, events: 500, order: 'newest_first' },
] as const)(
  'A36: row $at of $events that is not shown is reported once, and all others are delivered: $order',
  async ({ at, events, order }) => {
    const world = await standingSandbox({ events });
    const { sandbox, clock } = world;
    sandbox.control.setFaults({ lists: [{ path: WEB, order, blocked_index: at }] });
    const list = await aList(world, {
      type: 'logs',
      settings: {
        path: '/api/logs/v1/companies/{company_id}/web',
        pagination: { style: 'offset' },
        page_limit: events / 5,
      },
    });

    await list.readToTail();
    await clock.advance(minuteMs);
    await list.readToTail();
    sandbox.control.grow(WEB, 5);
    list.restart();
    await list.readToTail();
    await clock.advance(hourMs);
    await list.readToTail();

    const held = await heldIn(list.spool);
    const reported = held
      .filter(({ kind }) => kind === 'condition')
      .map(({ text }) => JSON.parse(text));
    const ids = held.filter(({ kind }) => kind === 'log').map(({ id }) => id);
    const shown = ledgerIds(sandbox, WEB).filter((_, index) => index !== at);
    expect(differences(ids, shown)).toEqual(none);
    expect(reported).toMatchObject([
      { condition: 'source.gap', details: { trace_id: expect.stringMatching(/\S/) } },
    ]);
  },
);
