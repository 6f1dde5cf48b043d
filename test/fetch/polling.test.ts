// All streams of a config together: they do not start at once, and no more than a fixed number polls at a time, however
// many there are.

import { expect, test } from 'vitest';
import type { ListStream } from '../../src/contracts/source.ts';
import type { HttpClient, InFlight } from '../../src/contracts/tools.ts';
import type { PlannedSource } from '../../src/fetch/polled-stream.ts';
import { Polling } from '../../src/fetch/polling.ts';
import { aSpool, minuteMs } from '../list/reading.ts';
import { answerWith, madeUpList, pagination } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest } from '../support/temp.ts';

const streams = 100;
const answerMs = 5_000;

/** A source of lists that are polled every ten minutes. */
function sourceOf(lists: readonly ListStream[]): PlannedSource {
  return {
    name: 'src',
    streams: lists,
    reading: { id: 'id', time: [] },
    list: {
      ...{ order: 'auto', start: 'beginning', lookbackMs: 0, rewindEveryMs: minuteMs },
      ...{ reconcileEveryMs: minuteMs, onCursorInvalid: 'rewalk' },
    },
    collection: null,
    upstream: 'edge',
    schedule: { everyMs: 10 * minuteMs },
  };
}

const http: HttpClient = {
  request: () => Promise.reject(new Error('no stream here asks over HTTP')),
  close: async () => undefined,
};

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
  const source = sourceOf(Array.from({ length: streams }, (_, n) => streamOf(`src/${n}`)));
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

test('a poll of a list counts the bodies that it gets until it ends', async () => {
  const seen: string[] = [];
  const list = madeUpList(async () => {
    seen.push('a page');
    return answerWith([]);
  });
  const inFlight = {
    during: async (poll: () => Promise<unknown>) => {
      seen.push('begins');
      return await poll().finally(() => seen.push('ends'));
    },
    landing: () => () => undefined,
  } as unknown as InFlight;
  const tools = { clock: manualClock(), log: silent, http: { ...http, inFlight } };
  const polling = new Polling({ spool: await aSpool(), tools, random: () => 0 });

  polling.add([sourceOf([list])]);
  const failed = await polling.once(new AbortController().signal);

  expect(failed).toEqual([]);
  expect([seen[0], seen.at(-1)]).toEqual(['begins', 'ends']);
  expect(seen).toContain('a page');
});
