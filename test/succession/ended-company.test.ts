// The old API answers 404 for a company for hours, by a clock that stands still: before the cutover the company is lost and
// the stream silent; once the successor delivers, that is the end of the API and no fault.

import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { PlannedSource } from '../../src/fetch/polled-stream.ts';
import { Polling } from '../../src/fetch/polling.ts';
import type { OwnSpool } from '../../src/hold/spool.ts';
import { settlePairs } from '../../src/succession/settle.ts';
import { aSpool, heldIn, hourMs, minuteMs } from '../list/reading.ts';
import { answerWith, madeUpList, pagination } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest } from '../support/temp.ts';

const successions = { overlapMs: 0, patienceMs: minuteMs, fields: {}, ignore: [] };

test.each([
  { phase: 'shadow', conditions: ['source.scope_lost', 'source.silent'] },
  { phase: 'cut_over', conditions: [] },
] as const)('a company that is gone in $phase is $conditions', async ({ phase, conditions }) => {
  const spool = (await aSpool()) as OwnSpool;
  const clock = manualClock();
  let isGone = false;
  let polls = 0;
  const cause = new ExportError('upstream_refused', 'asking: 404', { next: 'look' });
  const gone = { outcome: 'refused', status: 404, cause } as const;
  const source = (name: string, parts: Partial<PlannedSource>): PlannedSource => ({
    ...{ name, reading: { id: 'id', time: [] }, collection: null },
    streams: [
      madeUpList(
        async () => {
          if (name === 'new') polls += 1;
          return isGone && name === 'old' ? gone : answerWith([{ id: 'a' }]);
        },
        {
          ...{ name: `${name}/c-1`, source: name, company: 'c-1', pageLimit: null },
          pagination: { ...pagination, style: 'none' },
        },
      ),
    ],
    list: {
      ...{ order: 'auto', start: 'beginning', lookbackMs: 0, rewindEveryMs: minuteMs },
      ...{ reconcileEveryMs: minuteMs, onCursorInvalid: 'rewalk' },
    },
    ...{ upstream: name, schedule: { everyMs: minuteMs } },
    ...parts,
  });
  const sources = [
    source('old', { expectMs: hourMs }),
    source('new', { succeeds: { source: 'old', ...successions } }),
  ];
  await settlePairs(spool, sources, silent);
  const http = { request: () => Promise.reject(new Error('unused')), close: async () => undefined };
  const polling = new Polling({
    ...{ spool, tools: { clock, log: silent, http }, random: () => 0 },
    ends: { endOf: () => null },
  });
  afterThisTest(() => polling.stop());
  polling.add(sources);
  polling.start();
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += minuteMs) {
      const before = polls;
      await clock.advance(minuteMs);
      // The successor is read each minute: without it the end of the old API is a fault.
      for (let waits = 0; waits < 500 && polls === before; waits += 1) await delay(2);
      await delay(3);
    }
  };
  await pass(3 * minuteMs);
  if (phase === 'cut_over') {
    const turned = await spool.cutOver({ pair: 'new', phase, isForced: true, unread: null });
    expect(turned.isDone).toBe(true);
  }
  isGone = true;
  await pass(2 * hourMs);

  const held = await heldIn(spool);
  const found = held.flatMap(({ kind, text }) =>
    kind === 'condition' ? [JSON.parse(text).condition] : [],
  );
  expect(found.filter((condition) => condition !== 'source.cut_over').toSorted()).toEqual(
    conditions,
  );
});
