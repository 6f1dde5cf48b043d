// The memory of a page's body is freed when everyone who may read it is done, and never before: the cache of the spool,
// sinks that have not come yet, batches whose events are still needed, and readers that never say that they are done.

import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import type { Batch, Delivery } from '../../src/contracts/sink.ts';
import type { HeldPage, NewPage } from '../../src/contracts/spool.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { Outlet } from '../../src/send/outlet.ts';
import { PageEncoder } from '../../src/send/page-encoder.ts';
import { CountedMemory } from '../../src/tools/counted-memory.ts';
import { aPage } from '../support/a-page.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';
import { cause, delivered, drained, numbers, scripted, senderOn } from './a-sender.ts';

const pad = 40_000;
const eventsEach = 4;

/** A page as a list reads it: large, with memory of its own that its list does not read after the append. */
function aListPage(page: number, more: Partial<NewPage> = {}): NewPage {
  const ids = Array.from({ length: eventsEach }, (_, i) => String(page * eventsEach + i));
  const made = aPage({ ids, pad });
  const body = Buffer.allocUnsafeSlow(made.body.length);
  body.set(made.body);
  return { ...made, body, givesBody: true, ...more };
}

/** A spool with some pages, and outlets of sinks on it that share an encoder. */
async function filled(
  pages: readonly NewPage[],
  { eventsMax = eventsEach, recentBytesMax = 1e8 } = {},
) {
  const sinks = ['a', 'b'];
  const settings = { dir: tempDir(), sync: 'normal', keepMs: 1e9, bytesMax: 1e9 } as const;
  const spool = await openSpool({ ...settings, sinks, recentBytesMax });
  for (const page of pages) await spool.append({ stream: 'audit', pages: [page] });
  const decoder = new PageDecoder(() => (record) => record as unknown as OcsfEvent);
  const encoder = new PageEncoder(decoder);
  const outletOf = (sink: string, takesPages = false) =>
    new Outlet({
      ...{ sink, spool, encoder, bounds: { eventsMax, bytesMax: 1e8 } },
      format: { name: 'test', contentType: 'x', encode: ({ ocsf }) => String(ocsf.id) },
      ...{ formatKey: 'test', documents: false, takesPages },
      selectionFor: () => ({ key: '', select: (event) => event }),
    });
  return { spool, decoder, outletOf, [Symbol.asyncDispose]: () => spool.close() };
}

async function cut(outlet: Outlet, from: number): Promise<Batch> {
  const batch = await outlet.cut(from);
  if (batch === null) throw new Error(`nothing at ${from}`);
  return batch;
}

/** Sends the page at `from` and continues with the next one. */
async function pass(outlet: Outlet, from = 0): Promise<void> {
  outlet.releaseOf(await cut(outlet, from))();
  await outlet.cut(from + eventsEach);
}

function isFree({ body }: Pick<NewPage, 'body'>): boolean {
  return (body.buffer as ArrayBuffer).detached;
}

function memoryOf({ events }: Batch): ArrayBuffer {
  const [event] = events;
  if (event === undefined) throw new Error('no event');
  return event.raw.buffer as ArrayBuffer;
}

function idsOf({ events }: Pick<Batch, 'events'>): unknown[] {
  return events.map(({ raw }) => JSON.parse(Buffer.from(raw).toString()).id);
}

test('a body is freed once each sink has sent its events and moved on', async () => {
  const page = aListPage(0);
  await using on = await filled([page, aListPage(1)]);
  const [a, b] = [on.outletOf('a'), on.outletOf('b')];

  await pass(a);
  expect(isFree(page)).toBe(false);
  await pass(b);

  expect(isFree(page)).toBe(true);
});

test('a body that its maker may read again is not freed', async () => {
  const page = aListPage(0, { givesBody: false });
  await using on = await filled([page, aListPage(1)]);

  for (const sink of ['a', 'b']) await pass(on.outletOf(sink));

  expect(isFree(page)).toBe(false);
});

test('a body stays while a batch needs its events, also if the cache has forgotten the page', async () => {
  const pages = [0, 1, 2, 3].map((n) => aListPage(n));
  await using on = await filled(pages, { recentBytesMax: 1 });
  const [a, b] = [on.outletOf('a'), on.outletOf('b')];
  const batch = await cut(a, 0);

  for (const from of [0, 4, 8]) await pass(b, from);
  for (const from of [4, 8]) await pass(a, from);
  expect(idsOf(batch)).toEqual(['0', '1', '2', '3']);

  const buffer = memoryOf(batch);
  a.releaseOf(batch)();
  expect(buffer.detached).toBe(true);
});

test('a batch joined from several pages needs all their bodies', async () => {
  const pages = [aListPage(0), aListPage(1), aListPage(2)];
  await using on = await filled(pages, { eventsMax: 2 * eventsEach });
  const [a, b] = [on.outletOf('a'), on.outletOf('b')];
  const batch = await cut(a, 0);
  b.releaseOf(await cut(b, 0))();
  await Promise.all([a.cut(8), b.cut(8)]);

  expect(idsOf(batch)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']);

  a.releaseOf(batch)();
  expect(pages.map(isFree)).toEqual([true, true, false]);
});

test('a batch of whole pages needs their bodies, and not those of others that were read with them', async () => {
  const pages = [aListPage(0), aListPage(1), aListPage(2)];
  await using on = await filled(pages);
  const [a, b] = [on.outletOf('a', true), on.outletOf('b')];
  const batch = await cut(a, 0);
  for (const from of [0, 4]) b.releaseOf(await cut(b, from))();
  await Promise.all([a.cut(8), b.cut(8)]);

  expect(batch.pages).toHaveLength(1);
  expect(pages.map(isFree)).toEqual([false, true, false]);

  a.releaseOf(batch)();
  expect(pages.map(isFree)).toEqual([true, true, false]);
});

test('a page that a sink has read stays until it has encoded it, however fast another one is', async () => {
  const page = aListPage(0);
  await using on = await filled([page, aListPage(1)]);
  const b = on.outletOf('b');
  const [read] = (await on.spool.read(0, 1, 'a')) as [HeldPage];

  await on.spool.read(eventsEach, 1, 'a');
  await pass(b);
  expect(isFree(page)).toBe(false);

  read.memory?.release();
  expect(isFree(page)).toBe(true);
});

test('a reader that never says it is done keeps the body', async () => {
  const page = aListPage(0);
  await using on = await filled([page, aListPage(1)]);
  const [tapped] = (await on.spool.read(0, 1)) as [HeldPage];

  for (const sink of ['a', 'b']) await pass(on.outletOf(sink));

  expect(idsOf(on.decoder.decode(tapped))).toEqual(['0', '1', '2', '3']);
});

test('the body of a page read back from the disk is freed too', async () => {
  const pages = [0, 1, 2, 3].map((n) => aListPage(n));
  await using on = await filled(pages, { recentBytesMax: 1 });
  const a = on.outletOf('a');
  const batch = await cut(a, 0);
  const buffer = memoryOf(batch);

  a.releaseOf(batch)();
  await pass(a, 4);

  expect(buffer.detached).toBe(true);
});

test('an event whose page is freed is not read as an empty one', async () => {
  const page = aListPage(0);
  await using on = await filled([page, aListPage(1)]);
  const [read] = (await on.spool.read(0, 1)) as [HeldPage];
  read.memory?.release();
  for (const sink of ['a', 'b']) await pass(on.outletOf(sink));

  const [event] = on.decoder.decode(read).events;

  expect(() => event?.raw).toThrow(ExportError);
  expect(() => read.memory?.hold()).toThrow(ExportError);
});

/** A sender to one sink, which answers as scripted, has drained a spool of large pages. */
async function sentTo(sink: ReturnType<typeof scripted>['sink']) {
  const pages = [0, 1, 2].map((n) => aListPage(n));
  const settings = { dir: tempDir(), sync: 'normal', keepMs: 1e9, bytesMax: 1e9 } as const;
  const spool = await openSpool({ ...settings, sinks: ['s'] });
  afterThisTest(() => spool.close());
  for (const page of pages) await spool.append({ stream: 'audit', pages: [page] });
  await drained(spool, senderOn(spool, sink, { eventsMax: eventsEach }));
  return { spool, free: pages.map(isFree) };
}

const done = { isDoneOnceDelivered: true };

test('a batch is freed once it is delivered, if the sink reads it no more', async () => {
  const { sink, taken, batches } = scripted(() => delivered);

  const { free } = await sentTo({ ...sink, ...done });

  // The cache has the last one.
  expect(free).toEqual([true, true, false]);
  expect(taken).toEqual(numbers(12));
  expect(batches[0]?.lines.bytes).toHaveLength(0);
});

test('a batch of a sink that may read it later is not freed', async () => {
  const { sink, batches } = scripted(() => delivered);

  const { free } = await sentTo(sink);

  expect(free).toEqual([false, false, false]);
  expect(batches.flatMap(idsOf)).toEqual(numbers(12));
});

const refusedFirst = ({ events }: Batch): Delivery => ({
  outcome: 'partly',
  refused: events.slice(0, 1).map(({ uid }) => ({ uid, reason: 'bad', by: 'sink' })),
  again: [],
});

test.each<[string, (batch: Batch) => Delivery]>([
  ['was sent again', () => ({ outcome: 'retry', cause })],
  ['was sent in halves', () => ({ outcome: 'refused', scope: 'batch', cause })],
  ['has a dead letter', refusedFirst],
])('a batch that %s is not freed: an earlier attempt may still read it', async (_, firstAnswer) => {
  const { sink, batches } = scripted((batch, n) => (n === 1 ? firstAnswer(batch) : delivered));

  const { free } = await sentTo({ ...sink, ...done });

  expect(free).toEqual([false, true, false]);
  expect(batches.slice(0, 1).flatMap(idsOf)).toEqual(numbers(4));
});

test('memory is freed and reported once', () => {
  let freed = 0;
  const memory = new CountedMemory(() => {
    freed += 1;
  });
  const bytes = Buffer.allocUnsafeSlow(10);
  memory.own(bytes);
  memory.hold();
  memory.release();
  expect([freed, bytes.length]).toEqual([0, 10]);

  memory.release();
  memory.release();

  expect([freed, bytes.length]).toEqual([1, 0]);
});
