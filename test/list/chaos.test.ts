// Lists read from servers that do all they may do at once: any order and paging, records with and without ids, growth in the
// middle of a walk, faults, and a reader that is killed at any request. Once all is well again, each record is held once.
// A failing run prints its seed; runs that found faults stay as tests.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ListBehaviour } from '../../src/sandbox/sandbox.ts';
import { LOGS, WEB } from '../sandbox/client.ts';
import { answeredBy } from '../support/made-up-list.ts';
import {
  aList,
  differences,
  hourMs,
  ledgerTexts,
  minuteMs,
  none,
  standingSandbox,
} from './reading.ts';

const faults = fc.constantFrom(
  500 as const,
  'html' as const,
  'cut_json' as const,
  'expired_cursor' as const,
  'reset' as const,
);

/** One run: a server, and what happens at each request. */
const run = fc.record({
  style: fc.constantFrom('cursor' as const, 'offset' as const),
  order: fc.constantFrom('oldest_first' as const, 'newest_first' as const, 'mixed' as const),
  tail: fc.constantFrom('null' as const, 'same' as const, 'missing' as const),
  ids: fc.constantFrom('text' as const, 'none' as const, 'integer' as const),
  pinned: fc.boolean(),
  limit: fc.integer({ min: 2, max: 30 }),
  fault: faults,
  faultEvery: fc.integer({ min: 3, max: 12 }),
  polls: fc.integer({ min: 2, max: 12 }),
  /** At each request: records that come meanwhile; below 0 the reader is killed. */
  meanwhile: fc.infiniteStream(fc.constantFrom(0, 0, 0, 0, 1, 2, 9, -1)),
});

async function differencesAfter(given: Run) {
  const { style, order, tail, ids, pinned, limit, fault, faultEvery, polls, meanwhile } = given;
  const world = await standingSandbox({ events: 30 });
  const { sandbox, clock } = world;
  const path = style === 'cursor' ? LOGS : WEB;
  const lists: ListBehaviour[] = [{ path, order, tail, ids }];
  sandbox.control.setFaults({ lists, rules: [{ path, every: faultEvery, fault }] });
  let chaos = true;
  let stop = new AbortController();
  const list = await aList(world, {
    type: 'logs',
    settings: {
      path: path.replace('c-1', '{company_id}'),
      pagination: { style },
      page_limit: limit,
      id: ids === 'none' ? null : 'id',
      order: pinned && order !== 'mixed' ? order : 'auto',
    },
    wrap: (stream) =>
      answeredBy(stream, (request, signal) => {
        const what = chaos ? (meanwhile.next().value ?? 0) : 0;
        if (what > 0) sandbox.control.grow(path, what);
        if (what < 0) stop.abort(new Error('killed'));
        return stream.upstream.get(request, signal);
      }),
  });
  for (let n = 0; n < polls; n += 1) {
    stop = new AbortController();
    await list.poll(stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) throw error;
      list.restart();
    });
    await clock.advance(7 * minuteMs);
  }

  chaos = false;
  sandbox.control.setFaults({ lists });
  for (let n = 0; n < 3; n += 1) {
    await list.readToTail();
    await clock.advance(hourMs);
  }
  await list.readToTail();
  const held = (await list.records()).map(({ text }) => text);
  const served = ledgerTexts(sandbox, path);
  await Promise.all([list.spool.close(), sandbox.close()]);
  return differences(held, served);
}

type Run = typeof run extends fc.Arbitrary<infer R> ? R : never;

describe('lists under chaos', () => {
  test('each record is held once, once all is well again', async () => {
    await fc.assert(
      fc.asyncProperty(run, async (given) => {
        expect(await differencesAfter(given)).toEqual(none);
      }),
      { numRuns: Number(process.env.SLUICE_CHAOS_RUNS ?? 15) },
    );
  });

  test('a walk that dies behind the tail has held records without ids, and they are not held again', async () => {
    const meanwhile = [9, 0, 0, 0, 9, 0, 9, 9, 9, 0, 1, 1, 0, 0, 0, 2, 1] as const;

    const found = await differencesAfter({
      style: 'offset',
      order: 'oldest_first',
      tail: 'null',
      ids: 'none',
      pinned: false,
      limit: 24,
      fault: 500,
      faultEvery: 9,
      polls: 4,
      meanwhile: fc.stream(meanwhile.values()),
    });

    expect(found).toEqual(none);
  });
});
