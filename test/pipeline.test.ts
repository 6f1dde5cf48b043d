// The three stages joined: if one of them fails by a bug of ours, the others end in order and the failure is reported;
// and if the plan changes while they run, a part that cannot be opened leaves all as it was.

import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { defineSink } from '../src/contracts/definition.ts';
import type { Sink } from '../src/contracts/sink.ts';
import type { ListStream } from '../src/contracts/source.ts';
import type { PlannedSource } from '../src/fetch/polled-stream.ts';
import { openSpool } from '../src/hold/spool.ts';
import { Pipeline } from '../src/pipeline.ts';
import type { PlannedSink } from '../src/send/sending.ts';
import { answerWith, cursorIn, madeUpList } from './support/made-up-list.ts';
import { testTools } from './support/sink-opening.ts';
import { tempDir, waitUntil } from './support/temp.ts';

/** A list without end. */
const stream = madeUpList(
  async (request) => {
    const n = Number(cursorIn(request) ?? 0);
    return answerWith([{ id: String(n), pad: 'x'.repeat(2_000) }], { next_cursor: String(n + 1) });
  },
  { name: 'audit', source: 'audit' },
);

function aSink(name: string, sink: Partial<Sink>, encode: () => string): PlannedSink {
  return {
    name,
    definition: defineSink({
      type: name,
      summary: '',
      fields: {},
      carries: ['json'],
      usualFormat: 'json',
      sample: { to: null, lines: () => [] },
      inFlightMax: 1,
      assurance: () => 'answered',
      open: async () => ({
        send: async () => ({ outcome: 'delivered' }),
        close: async () => undefined,
        ...sink,
      }),
      probe: async () => undefined,
    }),
    settings: { type: name },
    format: { name, contentType: 'x', encode },
    formatKey: name,
    bounds: { eventsMax: 10, bytesMax: 1e6 },
    waitMs: 0,
    retry: { minMs: 1, maxMs: 1 },
  };
}

function sourceOf(one: ListStream): PlannedSource {
  const list = {
    order: 'oldest_first' as const,
    start: 'beginning' as const,
    lookbackMs: 1e9,
    rewindEveryMs: 1e9,
    reconcileEveryMs: 1e9,
    onCursorInvalid: 'halt' as const,
  };
  return {
    name: 'audit',
    streams: [one],
    reading: { id: 'id', time: [] },
    list,
    collection: null,
    upstream: 'edge',
    schedule: { everyMs: 1_000 },
  };
}

/** A pipeline from the list to a good sink and one whose format throws, which none may. */
async function faulty(bytesMax: number) {
  const closed: string[] = [];
  const sinks = [
    aSink('good', { close: async () => void closed.push('good') }, () => 'line'),
    aSink('bad', { close: async () => void closed.push('bad') }, () => {
      throw new TypeError('x is not a function');
    }),
  ];
  const spool = await openSpool({
    dir: tempDir(),
    sync: 'normal',
    keepMs: 0,
    sinks: ['good', 'bad'],
    bytesMax,
  });
  const pipeline = new Pipeline(
    { sources: [sourceOf(stream)], sinks, routes: [] },
    { spool, tools: testTools(), random: () => 0 },
  );
  return { pipeline, spool, closed };
}

test('pipeline ends with the failure of a sender, after the others have settled', async () => {
  const { pipeline, spool, closed } = await faulty(1e9);

  const running = pipeline.run(new AbortController().signal, 2_000);

  await expect(running).rejects.toThrow('x is not a function');
  expect(closed.sort()).toEqual(['bad', 'good']);
  const good = pipeline.state.sinks.find(({ name }) => name === 'good');
  expect((await spool.progress('good')).position).toBe(good?.position);
  await spool.close();
});

test('pipeline that reads once does not wait for room that a failed sender will never make', async () => {
  const { pipeline, spool, closed } = await faulty(10_000);

  const once = pipeline.once(new AbortController().signal, 2_000);

  await expect(once).rejects.toThrow('x is not a function');
  expect(closed.sort()).toEqual(['bad', 'good']);
  await spool.close();
});

/** A pipeline that runs with the sinks `kept` and `changed`; `opened` and `closed` list their fates. */
async function running(openChanged: (time: number) => unknown) {
  const reported: string[] = [];
  let times = 0;
  const sinkOf = (name: string): PlannedSink => {
    const sink = aSink(
      name,
      { close: async () => void reported.push(`${name} closed`) },
      () => 'line',
    );
    const { open } = sink.definition;
    const opening: typeof open = async (...args) => {
      if (name === 'changed') {
        times += 1;
        await openChanged(times);
      }
      reported.push(`${name} opened`);
      return open(...args);
    };
    return { ...sink, definition: { ...sink.definition, open: opening } };
  };
  const sinks = ['kept', 'changed'].map(sinkOf);
  const spool = await openSpool({
    ...{ dir: tempDir(), sync: 'normal', keepMs: 0, bytesMax: 1e9 },
    sinks: ['kept', 'changed'],
  });
  const plan = { sources: [sourceOf(stream)], sinks, routes: [] };
  const pipeline = new Pipeline(plan, { spool, tools: testTools(), random: () => 0 });
  const stop = new AbortController();
  const ended = pipeline.run(stop.signal, 2_000);
  const kept = { streams: new Set<string>(), sinks: new Set(['kept']) };
  const sent = async () => {
    const from = pipeline.state.sinks.map(({ position }) => position);
    const isMoving = () => pipeline.state.sinks.every((sink, i) => sink.position > (from[i] ?? 0));
    await waitUntil(isMoving, { what: 'both sinks to get more' });
  };
  const end = async () => {
    stop.abort(new Error('the test is over'));
    await ended.finally(() => spool.close());
  };
  return { pipeline, plan, kept, told: reported, sent, end, ended, spool, stop };
}

test('pipeline that cannot open a sink of another plan continues as before', async () => {
  const run = await running((time) => {
    if (time === 2) throw new Error('no such topic');
  });
  await run.sent();

  const change = run.pipeline.change(run.plan, run.kept, 1_000);

  await expect(change).rejects.toThrow('no such topic');
  await run.sent();
  await run.end();
  expect(run.told).toEqual([
    ...['kept opened', 'changed opened', 'changed closed', 'changed opened'],
    ...['kept closed', 'changed closed'],
  ]);
});

test('pipeline ends where neither the new sink nor the old one can be opened', async () => {
  const run = await running((time) => {
    if (time >= 2) throw new Error('no such topic');
  });
  await run.sent();

  const change = run.pipeline.change(run.plan, run.kept, 1_000);

  await expect(change).rejects.toThrow('no such topic');
  await expect(run.ended).rejects.toThrow('no such topic');
  await run.spool.close();
});

test('pipeline that is stopped in the middle of a change ends the parts that the change has started', async () => {
  const run = await running((time) => {
    if (time !== 2) return;
    run.stop.abort(new Error('stopping'));
    // As long as it takes a run that does not wait for the change to end.
    return Promise.race([run.ended, setTimeout(100)]);
  });
  await run.sent();

  await run.pipeline.change(run.plan, run.kept, 1_000);
  await run.end();

  expect(run.told.filter((line) => line === 'changed closed')).toHaveLength(2);
  expect(run.told.lastIndexOf('changed opened')).toBeLessThan(run.told.indexOf('kept closed'));
  await expect(run.pipeline.change(run.plan, run.kept, 1_000)).rejects.toThrow(
    'a running pipeline',
  );
});
