// A stream that is expected to bring records, with a manual clock: its silence is reported once, with the result of its
// polls, survives a restart, and is over with the next record.

import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Spool } from '../../src/contracts/spool.ts';
import type { PlannedSource } from '../../src/fetch/polled-stream.ts';
import { Polling } from '../../src/fetch/polling.ts';
import { SilenceWatch, silenceKey, silentSince } from '../../src/fetch/silence.ts';
import { aSpool, heldIn, hourMs, minuteMs } from '../list/reading.ts';
import { answerWith, madeUpList, pagination } from '../support/made-up-list.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

interface Upstream {
  records: { id: string }[];
  answers: 'well' | 'fails' | 'never';
}

function polls(spool: Spool, clock: ManualClock, upstream: Upstream, expectMs = hourMs) {
  const stream = madeUpList(
    async (_request, signal) => {
      if (upstream.answers === 'never') await clock.sleep(1e9, signal);
      const cause = new ExportError('upstream_unreachable', 'asking: refused', { next: 'wait' });
      return upstream.answers === 'fails'
        ? { outcome: 'retry', cause }
        : answerWith(upstream.records);
    },
    {
      name: 'src/c-1',
      company: 'c-1',
      pagination: { ...pagination, style: 'none' },
      pageLimit: null,
    },
  );
  const source: PlannedSource = {
    ...{ name: 'src', streams: [stream], reading: { id: 'id', time: [] }, collection: null },
    list: {
      ...{ order: 'auto', start: 'beginning', lookbackMs: 0, rewindEveryMs: minuteMs },
      ...{ reconcileEveryMs: minuteMs, onCursorInvalid: 'rewalk' },
    },
    ...{ upstream: 'edge', schedule: { everyMs: minuteMs }, expectMs },
  };
  const http = { request: () => Promise.reject(new Error('unused')), close: async () => undefined };
  const found: string[] = [];
  const polling = new Polling({
    ...{ spool, tools: { clock, log: silent, http }, random: () => 0 },
    found: ({ condition }) => found.push(condition),
  });
  afterThisTest(() => polling.stop());
  polling.add([source]);
  return { polling, found };
}

/** Lets time pass in steps of a poll, so that what is read from disk comes in between. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += minuteMs / 2) {
    await clock.advance(minuteMs / 2);
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
}

async function reported(spool: Spool) {
  const held = await heldIn(spool);
  return held.filter(({ kind }) => kind === 'condition').map(({ text }) => JSON.parse(text));
}

test('a silence is reported once, also over a restart, and is over with the next record', async () => {
  const [clock, dir] = [manualClock(), tempDir('silence-')];
  const upstream: Upstream = { records: [{ id: 'a' }], answers: 'well' };
  const first = await aSpool(dir);
  const before = polls(first, clock, upstream);
  before.polling.start();
  await pass(clock, 50 * minuteMs);
  expect(await reported(first)).toEqual([]);
  await before.polling.stop();
  await first.close();

  // No poll for two hours, which proves nothing about upstream before the next poll.
  clock.jump(2 * hourMs);
  const second = await aSpool(dir);
  const after = polls(second, clock, upstream);
  after.polling.start();
  await pass(clock, 70 * minuteMs);
  expect(await reported(second)).toMatchObject([
    {
      condition: 'source.silent',
      source: 'src',
      stream: 'src/c-1',
      details: { expect_every: '1h', polls: 'succeeding' },
    },
  ]);
  const { checkpoint } = await second.recall(silenceKey('src/c-1'));
  expect(silentSince(checkpoint)).toBeLessThan(clock.now() - hourMs);
  await after.polling.stop();
  await second.close();

  const third = await aSpool(dir);
  const last = polls(third, clock, upstream);
  last.polling.start();
  await pass(clock, 3 * hourMs);
  expect(await reported(third)).toHaveLength(1);
  upstream.records.push({ id: 'b' });
  await pass(clock, 10 * minuteMs);
  const conditions = await reported(third);
  expect(conditions.map(({ condition }) => condition)).toEqual(['source.silent', 'source.heard']);
  expect(conditions[1].details.since).toBe(conditions[0].details.since);
  expect([...after.found, ...last.found]).toEqual(['source.silent', 'source.heard']);
  const held = await heldIn(third);
  expect(new Set(held.map(({ uid }) => uid)).size).toBe(held.length);
});

test.each([
  ['fails', 'failing', /its polls fail: asking: refused/],
  ['never', 'unfinished', /no poll has come to its end/],
] as const)('a silence says that upstream %s', async (answers, word, message) => {
  const clock = manualClock();
  const spool = await aSpool();
  const { polling } = polls(spool, clock, { records: [], answers });
  polling.start();
  await pass(clock, 70 * minuteMs);
  const [condition, ...others] = await reported(spool);
  expect(others).toEqual([]);
  expect(condition).toMatchObject({ condition: 'source.silent', details: { polls: word } });
  expect(condition.message).toMatch(message);
});

test('runs that end by themselves report it, too', async () => {
  const [clock, spool] = [manualClock(), await aSpool()];
  const upstream: Upstream = { records: [{ id: 'a' }], answers: 'well' };
  const once = async () => {
    await polls(spool, clock, upstream, hourMs).polling.once(new AbortController().signal);
  };
  await once();
  clock.jump(2 * hourMs);
  await once();
  await once();
  expect(await reported(spool)).toMatchObject([{ condition: 'source.silent' }]);
});

/** A check of a stream with this state, which has polls at times. */
function aWatch(spool: Spool, clock: ManualClock, expectMs = hourMs) {
  const state = { records: 0, polls: 1, caughtUpAt: null, error: null, isEnded: false };
  const stream = { name: 'src/c-1', source: 'src', company: 'c-1' };
  const deps = { stream, spool, clock, log: silent, expectMs };
  return { state, watch: new SilenceWatch(deps, () => state as never) };
}

test('a stream whose API has ended is not expected to bring records', async () => {
  const [clock, spool] = [manualClock(), await aSpool()];
  const { state, watch } = aWatch(spool, clock);
  state.isEnded = true;
  await watch.look();
  clock.jump(2 * hourMs);
  await watch.look();
  expect(await reported(spool)).toEqual([]);

  state.isEnded = false;
  await watch.look();

  expect(await reported(spool)).toMatchObject([{ condition: 'source.silent' }]);
});

test('a record counts once: without another one the stream is silent, and the event has its company', async () => {
  const [clock, spool] = [manualClock(), await aSpool()];
  const { state, watch } = aWatch(spool, clock);
  state.records = 1;
  await watch.look();
  clock.jump(2 * hourMs);

  await watch.look();

  expect(await reported(spool)).toMatchObject([{ condition: 'source.silent' }]);
  const [page] = await spool.read(0, 1e6);
  expect(page?.context.company).toBe('c-1');
});

test('a check runs every 30 seconds at least, and every 50 milliseconds at most', async () => {
  const [clock, spool] = [manualClock(), await aSpool()];

  const every = [1, 60_000, 24 * hourMs].map((ms) => aWatch(spool, clock, ms).watch.everyMs);

  expect(every).toEqual([50, 3_000, 30_000]);
});

test('a silence that begins when a clock of the future is set right is reported', async () => {
  const [clock, dir] = [manualClock(), tempDir('silence-')];
  const upstream: Upstream = { records: [{ id: 'a' }], answers: 'well' };
  const spool = await aSpool(dir);
  const { polling } = polls(spool, clock, upstream);
  clock.jump(87_600 * hourMs);
  polling.start();
  await pass(clock, 10 * minuteMs);
  clock.jump(-87_600 * hourMs);

  await pass(clock, 80 * minuteMs);

  expect(await reported(spool)).toMatchObject([{ condition: 'source.silent' }]);
  await polling.stop();
  await spool.close();
});
