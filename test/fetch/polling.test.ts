// All streams of a config together: they do not start at once, and no more than a fixed number polls at a time, however
// many there are.

import { expect, test } from 'vitest';
import type { HttpClient } from '../../src/contracts/tools.ts';
import type { PlannedSource } from '../../src/fetch/polled-stream.ts';
import { Polling } from '../../src/fetch/polling.ts';
import { aSpool, minuteMs } from '../list/reading.ts';
import { answerWith, madeUpList, pagination } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest } from '../support/temp.ts';

const streams = 100;
const answerMs = 5_000;

test('A55: a hundred streams start spread over a second, and thirty-two poll at a time', async () => {
  const clock = manualClock();
  const spool = await aSpool();
  const polled = new Set<string>();
  const full = Promise.withResolvers<void>();
  let [inside, most, drawn] = [0, 0, 0];
  const streamOf = (name: string) =>
    madeUpList(
      async (_request, signal) => {
        polled.add(name);
        inside += 1;
        most = Math.max(most, inside);
        if (inside === 32) full.resolve();
        await clock.sleep(answerMs, signal).finally(() => {
          inside -= 1;
        });
        return answerWith([]);
      },
      { name, pagination: { ...pagination, style: 'none' }, pageLimit: null },
    );
  const source: PlannedSource = {
    name: 'src',
    streams: Array.from({ length: streams }, (_, n) => streamOf(`src/${n}`)),
    reading: { id: 'id', time: [] },
    list: {
      ...{ order: 'auto', start: 'beginning', lookbackMs: 0, rewindEveryMs: minuteMs },
      ...{ reconcileEveryMs: minuteMs, onCursorInvalid: 'rewalk' },
    },
    collection: null,
    upstream: 'edge',
    schedule: { everyMs: 10 * minuteMs },
  };
  const http: HttpClient = {
    request: () => Promise.reject(new Error('no stream here asks over HTTP')),
    close: async () => undefined,
  };
  const polling = new Polling({
    spool,
    tools: { clock, log: silent, http },
    // Each stream's own offset within the time in which they start.
    random: () => (drawn++ % streams) / streams,
  });
  afterThisTest(() => polling.stop());

  polling.add([source]);
  polling.start();
  const starts = polling.state.map(({ nextPollAt }) => Math.round((nextPollAt ?? 0) - clock.now()));
  await clock.advance(1_000);
  await full.promise;
  while (polled.size < streams) await clock.advance(answerMs);

  expect(new Set(starts).size).toBe(streams);
  expect([Math.min(...starts), Math.max(...starts)]).toEqual([0, 980]);
  expect(most).toBe(32);
  expect(polled.size).toBe(streams);
});
