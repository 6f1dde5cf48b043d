// The three stages joined, where one of them fails for a fault of ours: the others end in order, and the failure is told.

import { expect, test } from 'vitest';
import { defineSink } from '../src/contracts/definition.ts';
import type { Sink } from '../src/contracts/sink.ts';
import type { ListStream } from '../src/contracts/source.ts';
import { openSpool } from '../src/hold/spool.ts';
import { Pipeline, type PlannedSink } from '../src/pipeline.ts';
import { aPage } from './support/a-page.ts';
import { testTools } from './support/sink-opening.ts';
import { tempDir } from './support/temp.ts';

/** A list without end. */
const stream: ListStream = {
  kind: 'list',
  name: 'audit',
  source: 'audit',
  records: 'audit',
  immutable: false,
  paging: 'cursor',
  fingerprint: 'here',
  id: 'id',
  time: [],
  pageLimit: 100,
  fetchPage: async ({ place }) => {
    const n = place.by === 'cursor' ? Number(place.cursor ?? 0) : 0;
    const { body } = aPage({ ids: [String(n)], pad: 2_000 });
    const records = JSON.parse(Buffer.from(body).toString()).data;
    return {
      outcome: 'page',
      page: { body, items: 'data', records, next: String(n + 1), total: null },
    };
  },
};

function aSink(name: string, sink: Partial<Sink>, encode: () => string): PlannedSink {
  return {
    name,
    definition: defineSink({
      type: name,
      summary: '',
      fields: {},
      formats: ['json'],
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
  const list = {
    order: 'oldest_first' as const,
    start: 'beginning' as const,
    lookbackMs: 1e9,
    rewindEveryMs: 1e9,
    reconcileEveryMs: 1e9,
    onCursorInvalid: 'halt' as const,
  };
  const source = {
    name: 'audit',
    streams: [stream],
    reading: { id: 'id', time: [] },
    list,
    snapshot: null,
    schedule: { everyMs: 1_000 },
  };
  const pipeline = new Pipeline(
    { sources: [source], sinks, routes: [] },
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
