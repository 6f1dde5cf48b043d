// The memory of lines is freed when everyone who may read it is done, and never before: sinks that share lines, batches of
// one page, a sink that waits for its lines, a batch that is sent again.

import { expect, test } from 'vitest';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import type { Batch } from '../../src/contracts/sink.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { Outlet, type OutletSettings } from '../../src/send/outlet.ts';
import { PageEncoder, type Reader } from '../../src/send/page-encoder.ts';
import { aPage } from '../support/a-page.ts';
import { cause, delivered, drained, heldEvents, numbers, scripted, senderOn } from './a-sender.ts';
import { pageSpool } from './page-spool.ts';

const plain = {
  format: { name: 'test', contentType: 'x', encode: ({ ocsf }) => String(ocsf.id) },
  formatKey: 'test',
  documents: false,
  takesPages: false,
  selectionFor: () => ({ key: '', select: (event) => event }),
} satisfies Partial<OutletSettings>;

function anEncoder(): PageEncoder {
  return new PageEncoder(new PageDecoder(() => (record) => record as unknown as OcsfEvent));
}

/** Outlets of one encoder on a spool of pages of four events. */
function outlets(sinks: readonly Partial<OutletSettings>[], pages = 2, eventsMax = 4) {
  const ids = (page: number) => [0, 1, 2, 3].map((i) => String(page * 4 + i));
  const { spool } = pageSpool(
    Array.from({ length: pages }, (_, page) => aPage({ ids: ids(page) })),
  );
  const encoder = anEncoder();
  const bounds = { eventsMax, bytesMax: 1e6 };
  return sinks.map(
    (own, i) => new Outlet({ ...plain, sink: `s${i}`, spool, encoder, bounds, ...own }),
  ) as [Outlet, Outlet];
}

async function cut(outlet: Outlet, from: number): Promise<Batch> {
  const batch = await outlet.cut(from);
  if (batch === null) throw new Error(`nothing at ${from}`);
  return batch;
}

function isFree({ lines }: Batch): boolean {
  return (lines.bytes.buffer as ArrayBuffer).detached;
}

function textsOf({ lines }: Pick<Batch, 'lines'>): string[] {
  return Array.from({ length: lines.length }, (_, i) =>
    Buffer.from(lines.bytes.subarray(lines.starts[i], lines.ends[i])).toString(),
  );
}

test('lines are freed once their only sink has released them and moved on', async () => {
  const [outlet] = outlets([{}]);
  const batch = await cut(outlet, 0);

  outlet.releaseOf(batch)();
  // Another batch of this page might follow, or this one again.
  expect(textsOf(batch)).toEqual(['0', '1', '2', '3']);
  const next = await cut(outlet, 4);

  expect(isFree(batch)).toBe(true);
  expect(textsOf(next)).toEqual(['4', '5', '6', '7']);
});

test('lines that were not released stay, however far the sink is', async () => {
  const [outlet] = outlets([{}]);
  const batch = await cut(outlet, 0);
  const release = outlet.releaseOf(batch);
  await cut(outlet, 4);
  expect(textsOf(batch)).toEqual(['0', '1', '2', '3']);

  release();
  release();

  expect(isFree(batch)).toBe(true);
});

test('lines of sinks that want them alike stay until each sink has come, released them and moved on', async () => {
  const [fast, slow] = outlets([{}, {}]);
  const first = await cut(fast, 0);
  fast.releaseOf(first)();
  await cut(fast, 4);
  expect(textsOf(first)).toEqual(['0', '1', '2', '3']);

  const second = await cut(slow, 0);
  expect(second.lines.bytes.buffer).toBe(first.lines.bytes.buffer);
  await cut(slow, 4);
  expect(textsOf(second)).toEqual(['0', '1', '2', '3']);
  slow.releaseOf(second)();

  expect(isFree(first)).toBe(true);
});

test('a sink that releases nothing keeps lines for itself and for others', async () => {
  const [one, other] = outlets([{}, {}]);
  const batches = [await cut(one, 0), await cut(other, 0)] as const;
  one.releaseOf(batches[0])();
  await cut(one, 4);
  await cut(other, 4);

  expect(batches.map(textsOf)).toEqual([
    ['0', '1', '2', '3'],
    ['0', '1', '2', '3'],
  ]);
});

test('a sink that wants other lines delays nothing', async () => {
  const [mine] = outlets([{}, { formatKey: 'other' }]);
  const batch = await cut(mine, 0);
  mine.releaseOf(batch)();
  await cut(mine, 4);

  expect(isFree(batch)).toBe(true);
});

test('batches of one page share its lines: each must be released', async () => {
  const [outlet] = outlets([{}], 2, 2);
  const batches = [await cut(outlet, 0), await cut(outlet, 2)] as const;
  const release = outlet.releaseOf(batches[0]);
  release();
  release();
  await cut(outlet, 4);
  expect(textsOf(batches[1])).toEqual(['2', '3']);

  outlet.releaseOf(batches[1])();

  expect(batches.map(isFree)).toEqual([true, true]);
});

test('lines joined from several pages are a copy of their own', async () => {
  const [outlet, other] = outlets([{}, {}], 2, 8);
  const joined = await cut(outlet, 0);
  const single = await cut(other, 4);
  outlet.releaseOf(joined)();

  expect(isFree(joined)).toBe(true);
  expect(textsOf(single)).toEqual(['4', '5', '6', '7']);

  other.releaseOf(single)();
  await Promise.all([outlet.cut(8), other.cut(8)]);
  expect(isFree(single)).toBe(true);
});

test('who waits for lines holds them before they are there', async () => {
  const { held } = pageSpool([aPage({ ids: ['0', '1'] })]);
  const page = held[0] as HeldPage;
  const encoder = anEncoder();
  let hasPassed = false;
  const reader: Reader = { ...plain, sink: 's', expects: () => true, hasPassed: () => hasPassed };
  encoder.join(reader);
  const { memory } = await encoder.select(page, reader);

  const waiting = encoder.select(page, reader);
  hasPassed = true;
  encoder.moved();
  memory.release();

  expect(textsOf(await waiting)).toEqual(['0', '1']);
});

test('a page that was left is encoded again for a sink that goes back', async () => {
  const [outlet] = outlets([{}]);
  const batch = await cut(outlet, 0);
  outlet.releaseOf(batch)();
  await cut(outlet, 4);

  expect(textsOf(await cut(outlet, 0))).toEqual(['0', '1', '2', '3']);
});

test('a sender gives up the lines of a batch only where it cuts the batch again for another attempt', async () => {
  const spool = await heldEvents(40);
  const { sink, taken } = scripted((batch, attempt) => {
    // Lines that were freed would throw here.
    expect(textsOf(batch)).toHaveLength(batch.events.length);
    return attempt % 3 === 1 ? { outcome: 'retry', cause } : delivered;
  });
  const offers: boolean[] = [];
  const send: typeof sink.send = (batch, signal, release) => {
    offers.push(release !== undefined);
    const answer = sink.send(batch, signal);
    release?.();
    return answer;
  };

  await drained(spool, senderOn(spool, { ...sink, send }, { inFlightMax: 3 }));

  expect(new Set(taken)).toEqual(new Set(numbers(40)));
  expect(new Set(offers)).toEqual(new Set([true, false]));
  await spool.close();
});
