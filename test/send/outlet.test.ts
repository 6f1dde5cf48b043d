// Batches as a sink gets them: every event that is for it, once and in order, within its bounds, whatever the pages look
// like; and each page decoded and encoded once for all who want the same.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parquet } from '../../formats/parquet.ts';
import type { Event, OcsfEvent } from '../../src/contracts/event.ts';
import type { Format } from '../../src/contracts/format.ts';
import type { Batch } from '../../src/contracts/sink.ts';
import type { NewPage } from '../../src/contracts/spool.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { Outlet, type OutletSettings } from '../../src/send/outlet.ts';
import { PageEncoder } from '../../src/send/page-encoder.ts';
import type { Selection } from '../../src/send/route.ts';
import { aPage } from '../support/a-page.ts';
import { pageSpool } from './page-spool.ts';

const everything: Selection = { key: '', select: (event) => event };

/** Encodes the id, and counts its calls. */
function countingFormat(): { format: Format; calls: () => number } {
  let calls = 0;
  const encode = (event: Event) => {
    calls += 1;
    return `line of ${idOf(event)}`;
  };
  return { format: { name: 'json', contentType: 'text/plain', encode }, calls: () => calls };
}

/** The same, in half a millisecond for each event. */
function slowly(encode: (event: Event) => string): (event: Event) => string {
  return (event) => {
    const begun = performance.now();
    while (performance.now() - begun < 0.5);
    return encode(event);
  };
}

function idOf(event: Event): string {
  return String(event.ocsf.id);
}

const asItIs = () => (record: unknown) => record as OcsfEvent;

function outletOn(pages: readonly NewPage[], more: Partial<OutletSettings> = {}): Outlet {
  return new Outlet({
    sink: 's',
    spool: pageSpool(pages).spool,
    encoder: new PageEncoder(new PageDecoder(asItIs)),
    format: countingFormat().format,
    formatKey: 'json',
    documents: false,
    takesPages: false,
    selectionFor: () => everything,
    bounds: { eventsMax: 100, bytesMax: 1e6 },
    ...more,
  });
}

/** All batches from an offset to the end. */
async function cutAll(outlet: Outlet, from = 0): Promise<readonly Batch[]> {
  const batches: Batch[] = [];
  for (let at = from; ; ) {
    const batch = await outlet.cut(at);
    if (batch === null) return batches;
    batches.push(batch);
    at = batch.end;
  }
}

function textOf({ lines }: Batch): string[] {
  return Array.from({ length: lines.length }, (_, i) =>
    Buffer.from(lines.bytes.subarray(lines.starts[i], lines.ends[i])).toString(),
  );
}

function idsOf(batch: Batch): string[] {
  return batch.events.map(idOf);
}

function numbered(from: number, count: number): string[] {
  return Array.from({ length: count }, (_, i) => String(from + i));
}

test('Outlet joins pages up to its number of events, and cuts within a page', async () => {
  const outlet = outletOn(
    [0, 4, 8].map((from) => aPage({ ids: numbered(from, 4) })),
    { bounds: { eventsMax: 6, bytesMax: 1e6 } },
  );

  const batches = await cutAll(outlet);

  expect(batches.map(idsOf)).toEqual([numbered(0, 6), numbered(6, 6)]);
  expect(batches.map(({ start, end }) => [start, end])).toEqual([
    [0, 6],
    [6, 12],
  ]);
  expect(batches.map(textOf)).toEqual(
    batches.map((batch) => idsOf(batch).map((id) => `line of ${id}`)),
  );
  expect(new Set(batches.map(({ id }) => id)).size).toBe(2);
});

test('events of a sink that makes its own of them are not made before, and count as they were sent', async () => {
  let made = 0;
  const decoder = new PageDecoder(() => (record) => {
    made += 1;
    return record as unknown as OcsfEvent;
  });
  const outlet = outletOn([aPage({ ids: numbered(0, 4) })], {
    encoder: new PageEncoder(decoder),
    format: parquet.make({ type: 'parquet' }),
  });

  const [batch] = await cutAll(outlet);

  expect(made).toBe(0);
  const sent = batch?.events.map(({ raw }) => Buffer.from(raw).toString());
  expect(batch && textOf(batch)).toEqual(sent);
  expect(sent?.[3]).toContain('"3"');
  // Nothing was copied.
  expect(batch?.lines.bytes.buffer).toBe(batch?.events[0]?.raw.buffer);
});

test('events of a page that is sent as received are decoded one by one only if some are selected', async () => {
  const asked: string[] = [];
  const encode = (event: Event) => {
    asked.push(idOf(event));
    return event.raw;
  };
  const format: Format = { name: 'json', contentType: 'text/plain', encode, verbatim: true };
  const page = aPage({ ids: numbered(0, 4) });
  const records = JSON.parse(Buffer.from(page.body).toString()).data.map(JSON.stringify);
  const odd: Selection = { key: 'odd', select: (e) => (Number(idOf(e)) % 2 === 1 ? e : null) };

  const [whole] = await cutAll(outletOn([page], { format }));
  const before = [...asked];
  const [some] = await cutAll(outletOn([page], { format, selectionFor: () => odd }));

  expect(before).toEqual([]);
  expect(whole && textOf(whole)).toEqual(records);
  expect(whole && idsOf(whole)).toEqual(['0', '1', '2', '3']);
  expect(asked).toEqual(['1', '3']);
  expect(some && textOf(some)).toEqual([records[1], records[3]]);
});

test('Outlet gives the same batch the same id at each attempt', async () => {
  const outlet = outletOn([aPage({ ids: numbered(0, 4) })]);

  const [first, again] = [await outlet.cut(1), await outlet.cut(1)];

  expect(again?.id).toBe(first?.id);
  expect(again?.events).toEqual(first?.events);
});

test('Outlet cuts nothing from a bound on, wherever in or between pages it stands', async () => {
  const huge = aPage({ ids: numbered(8, 4), pad: 400_000 });
  const pages = [aPage({ ids: numbered(0, 4) }), aPage({ ids: numbered(4, 4) }), huge];
  const outlet = outletOn(pages, {
    selectionFor: () => ({
      key: 'odd',
      select: (event) => (Number(idOf(event)) % 2 ? event : null),
    }),
  });

  for (let from = 0; from < 12; from += 1) {
    for (let until = from + 1; until <= 12; until += 1) {
      const batch = await outlet.cut(from, until);
      const odd = numbered(from, until - from).filter((id) => Number(id) % 2 === 1);
      expect([batch?.start, batch?.end, batch && idsOf(batch)]).toEqual([from, until, odd]);
      expect(batch && textOf(batch)).toEqual(odd.map((id) => `line of ${id}`));
    }
  }
});

test('Outlet of pages hands out none from a bound on', async () => {
  const pages = [aPage({ ids: numbered(0, 4) }), aPage({ ids: numbered(4, 4) })];
  const outlet = outletOn(pages, { takesPages: true });

  const batch = await outlet.cut(0, 4);

  expect([batch?.pages.length, batch?.end]).toEqual([1, 4]);
});

test('Outlet bounds batches by the bytes of their lines, and gives a longer event a batch of its own', async () => {
  const long = 'x'.repeat(200);
  const ids = ['a', 'b', long, 'c', 'd', 'e'];
  const outlet = outletOn([aPage({ ids })], { bounds: { eventsMax: 100, bytesMax: 25 } });

  const batches = await cutAll(outlet);

  expect(batches.map(idsOf)).toEqual([['a', 'b'], [long], ['c', 'd'], ['e']]);
});

test('Outlet counts the bytes of all pages in a batch', async () => {
  const pages = numbered(0, 6).map((id) => aPage({ ids: [id] }));
  const outlet = outletOn(pages, { bounds: { eventsMax: 100, bytesMax: 25 } });

  const batches = await cutAll(outlet);

  expect(batches.flatMap(idsOf)).toEqual(numbered(0, 6));
  const sizes = batches.map((batch) => textOf(batch).join('').length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(25);
});

test('Outlet ends a batch that is half full with its page, so that its lines are not copied', async () => {
  const pages = [0, 3, 6].map((from) => aPage({ ids: numbered(from, 3) }));
  const bounds = { eventsMax: 100, bytesMax: 10_000 };
  const linesOf = (length: number): Format => {
    const encode = () => 'x'.repeat(length);
    return { name: 'json', contentType: 'text/plain', encode };
  };

  const halfFull = await cutAll(outletOn(pages, { bounds, format: linesOf(2_000) }));
  const notYet = await cutAll(outletOn(pages, { bounds, format: linesOf(1_000) }));
  const documents = await cutAll(outletOn(pages, { bounds, documents: true }));

  expect(halfFull.map(idsOf)).toEqual([numbered(0, 3), numbered(3, 3), numbered(6, 3)]);
  expect(notYet.map(idsOf)).toEqual([numbered(0, 6), numbered(6, 3)]);
  expect(documents.map(idsOf)).toEqual([numbered(0, 9)]);
});

test('Outlet skips events that are not for its sink with batches that only move the position', async () => {
  const odd: Selection = {
    key: 'odd',
    select: (event) => (Number(idOf(event)) % 2 === 1 ? event : null),
  };
  const nothing: Selection = { key: 'nothing', select: () => null };
  const pages = [
    aPage({ source: 'web', ids: ['0', '1'] }),
    aPage({ source: 'audit', ids: ['2', '3', '4'] }),
    aPage({ source: 'dns', ids: ['5'] }),
  ];
  const selectionFor = (source: string) =>
    source === 'audit' ? odd : source === 'dns' ? nothing : null;

  const [batch, ...rest] = await cutAll(outletOn(pages, { selectionFor }));
  const [empty] = await cutAll(outletOn(pages.slice(0, 1), { selectionFor }));

  expect(batch).toMatchObject({ start: 0, end: 6 });
  expect(idsOf(batch as Batch)).toEqual(['3']);
  expect(rest).toEqual([]);
  expect(empty).toMatchObject({ start: 0, end: 2, events: [] });
  expect(empty?.lines.length).toBe(0);
});

test('Outlet ends a batch at the next event, so that skipped ones are not examined again', async () => {
  const even: Selection = {
    key: 'even',
    select: (event) => (Number(idOf(event)) % 2 === 0 ? event : null),
  };
  const outlet = outletOn([aPage({ ids: numbered(0, 7) })], {
    selectionFor: () => even,
    bounds: { eventsMax: 2, bytesMax: 1e6 },
  });

  const batches = await cutAll(outlet);

  expect(batches.map(({ start, end }) => [start, end])).toEqual([
    [0, 4],
    [4, 7],
  ]);
  expect(batches.map(idsOf)).toEqual([
    ['0', '2'],
    ['4', '6'],
  ]);
});

test('Outlet gives a page that is for one sink to that sink alone', async () => {
  const pages = [aPage({ ids: ['0'] }), { ...aPage({ ids: ['1'] }), onlySink: 'other' }];

  const mine = await cutAll(outletOn(pages));
  const others = await cutAll(outletOn(pages, { sink: 'other' }));

  expect(mine.flatMap(idsOf)).toEqual(['0']);
  expect(mine.at(-1)?.end).toBe(2);
  expect(others.flatMap(idsOf)).toEqual(['0', '1']);
});

test('Outlet measures documents by their records, which are encoded apart from lines and in the same pass', async () => {
  const { spool } = pageSpool([aPage({ ids: numbered(0, 10) })]);
  let normalised = 0;
  const encoder = new PageEncoder(
    new PageDecoder(() => (record) => {
      normalised += 1;
      return record as unknown as OcsfEvent;
    }),
  );
  const { format } = countingFormat();
  const document = {
    contentType: 'text/plain',
    encode: (event: Event) => Buffer.from(`record of ${idOf(event)}`),
    join: () => new Uint8Array(0),
  };
  const both = { spool, encoder, format: { ...format, document } };
  const bounds = { eventsMax: 100, bytesMax: 35 };
  const outlets = [
    outletOn([], { ...both, sink: 'a', documents: true, bounds }),
    outletOn([], { ...both, sink: 'b' }),
  ];

  const [documents, lines] = await Promise.all(outlets.map((outlet) => cutAll(outlet)));

  expect(documents?.map((batch) => batch.events.length)).toEqual([3, 3, 3, 1]);
  expect(documents?.flatMap(textOf)).toEqual(numbered(0, 10).map((id) => `record of ${id}`));
  expect(lines?.flatMap(textOf)).toEqual(numbered(0, 10).map((id) => `line of ${id}`));
  expect(normalised).toBe(10);
});

test('Outlet has a page parsed, normalised and encoded once for all sinks that want it alike', async () => {
  const { spool } = pageSpool([aPage({ ids: numbered(0, 20) })]);
  const { format, calls } = countingFormat();
  let normalised = 0;
  const decoder = new PageDecoder(() => (record) => {
    normalised += 1;
    return record as unknown as OcsfEvent;
  });
  const encoder = new PageEncoder(decoder);
  const outlets = ['a', 'b', 'c', 'd'].map((sink, i) =>
    outletOn([], { sink, spool, encoder, format, bounds: { eventsMax: 3 + i, bytesMax: 1e6 } }),
  );

  const all = await Promise.all(outlets.map((outlet) => cutAll(outlet)));

  expect(calls()).toBe(20);
  expect(normalised).toBe(20);
  for (const batches of all) expect(batches.flatMap(idsOf)).toEqual(numbered(0, 20));
});

test('Outlet has a page normalised once for sinks at work that want it in different ways, and not again for one that comes late', async () => {
  const { spool } = pageSpool([aPage({ ids: numbered(0, 5) }), aPage({ ids: numbered(5, 5) })]);
  let normalised = 0;
  const encoder = new PageEncoder(
    new PageDecoder(() => (record) => {
      normalised += 1;
      return record as unknown as OcsfEvent;
    }),
  );
  const ways: Partial<OutletSettings>[] = [
    { sink: 'a', formatKey: 'json' },
    { sink: 'b', formatKey: 'cef' },
    { sink: 'c', selectionFor: () => ({ key: 'x', select: (event) => event }) },
  ];
  const bounds = { eventsMax: 5, bytesMax: 1 };
  const formats = ways.map(() => countingFormat());
  const outlets = ways.map((way, i) =>
    outletOn([], { spool, encoder, format: formats[i]?.format as Format, bounds, ...way }),
  );
  const [first, second] = outlets;

  await first?.cut(0);
  expect(normalised).toBe(5);
  await second?.cut(0);
  expect(normalised).toBe(10);
  await first?.cut(5);
  expect(normalised).toBe(15);
  await second?.cut(5);

  // The second sink was at work when the first one came to the second page, the third never was.
  expect(normalised).toBe(15);
  expect(formats.map(({ calls }) => calls())).toEqual([10, 10, 0]);
});

test('Outlet lets others have their turn while a page is encoded, and keeps its order', async () => {
  const ids = numbered(0, 40);
  const turnsSeen: number[] = [];
  let turns = 0;
  const encode = slowly((event) => {
    turnsSeen.push(turns);
    return idOf(event);
  });
  const format: Format = { name: 'json', contentType: 'text/plain', encode };
  const count = () => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);

  const [batch, ...rest] = await cutAll(outletOn([aPage({ ids })], { format }));
  clearImmediate(next);

  expect(textOf(batch as Batch)).toEqual(ids);
  expect(rest).toEqual([]);
  // Twenty milliseconds of work are more than one stretch.
  expect((turnsSeen.at(-1) ?? 0) - (turnsSeen[0] ?? 0)).toBeGreaterThan(1);
});

test('Outlet has a page encoded once also for a sink that requests it during the encoding', async () => {
  const { spool } = pageSpool([aPage({ ids: numbered(0, 20) })]);
  const { format, calls } = countingFormat();
  const encoder = new PageEncoder(new PageDecoder(asItIs));
  const outlets = ['a', 'b'].map((sink) => outletOn([], { sink, spool, encoder, format }));

  const cuts = await Promise.all(outlets.map((outlet) => outlet.cut(0)));

  expect(calls()).toBe(20);
  for (const batch of cuts) expect(idsOf(batch as Batch)).toEqual(numbered(0, 20));
});

test('Outlet takes a sink that waits for its batch for one at work, and has pages encoded for it too', async () => {
  const pages = [aPage({ ids: numbered(0, 20) }), aPage({ ids: numbered(20, 20) })];
  const { spool } = pageSpool(pages);
  let normalised = 0;
  const encoder = new PageEncoder(
    new PageDecoder(() => (record) => {
      normalised += 1;
      return record as unknown as OcsfEvent;
    }),
  );
  const bounds = { eventsMax: 20, bytesMax: 1e6 };
  const outlets = ['json', 'cef'].map((formatKey) =>
    outletOn([], { spool, encoder, bounds, sink: formatKey, formatKey }),
  );

  const both = await Promise.all(outlets.map((outlet) => cutAll(outlet)));

  expect(normalised).toBe(40);
  for (const batches of both) expect(batches.flatMap(idsOf)).toEqual(numbered(0, 40));
});

test('Outlet reports to all that wait for a page that a format failed on it, and cuts the next page', async () => {
  const { spool } = pageSpool([aPage({ ids: ['bad'] }), aPage({ ids: ['good'] })]);
  const encode = (event: Event) => {
    if (idOf(event) === 'bad') throw new Error('a format that throws');
    return idOf(event);
  };
  const format: Format = { name: 'json', contentType: 'text/plain', encode };
  const encoder = new PageEncoder(new PageDecoder(asItIs));
  const outlets = ['a', 'b'].map((sink) => outletOn([], { sink, spool, encoder, format }));

  const cuts = await Promise.allSettled(outlets.map((outlet) => outlet.cut(0)));
  const next = await outlets[0]?.cut(1);

  expect(cuts.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(textOf(next as Batch)).toEqual(['good']);
});

test('Outlet encodes again for another format and another selection', async () => {
  const { spool } = pageSpool([aPage({ ids: ['0', '1'] })]);
  const { format, calls } = countingFormat();
  const encoder = new PageEncoder(new PageDecoder(asItIs));
  const others: Partial<OutletSettings>[] = [
    {},
    { formatKey: 'cef' },
    { selectionFor: () => ({ key: 'x', select: (event) => event }) },
  ];

  for (const more of others) await outletOn([], { spool, encoder, format, ...more }).cut(0);

  expect(calls()).toBe(6);
});

test('Outlet hands on the bytes that upstream sent, never serialised again', async () => {
  const records = ['{ "id" : 1e3, "n":12345678901234567890 }', '{"id":"\\u0041\\/"}'];
  const page: NewPage = {
    ...aPage({ ids: ['x', 'y'] }),
    body: Buffer.from(`{"data": [ ${records.join(' , ')} ]}`),
  };
  const format: Format = { name: 'json', contentType: 'text/plain', encode: ({ raw }) => raw };
  const outlet = outletOn([page], { format });

  const [batch] = await cutAll(outlet);

  expect(textOf(batch as Batch)).toEqual(records);
});

test('Outlet gives each event for its sink exactly once and within bounds, whatever pages and bounds are', async () => {
  const shape = fc.array(
    fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 6 }),
    {
      maxLength: 6,
    },
  );
  await fc.assert(
    fc.asyncProperty(
      shape,
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 150 }),
      fc.boolean(),
      fc.nat({ max: 36 }),
      async (sizes, eventsMax, bytesMax, filtered, from) => {
        let n = 0;
        const pages = sizes.map((page) =>
          aPage({ ids: page.map((size) => `${n++}${'é'.repeat(size)}`) }),
        );
        const passes = (id: string) => !filtered || Number.parseInt(id, 10) % 3 === 0;
        const outlet = outletOn(pages, {
          bounds: { eventsMax, bytesMax },
          selectionFor: () => ({
            key: filtered ? 'third' : '',
            select: (event) => (passes(idOf(event)) ? event : null),
          }),
        });

        const batches = await cutAll(outlet, Math.min(from, n));

        const ids = batches.flatMap(idsOf);
        const all = pages.flatMap(({ body }) =>
          JSON.parse(Buffer.from(body).toString()).data.map(({ id }: { id: string }) => id),
        );
        expect(ids).toEqual(all.slice(from).filter(passes));
        expect(batches.flatMap(textOf)).toEqual(ids.map((id) => `line of ${id}`));
        for (const batch of batches) {
          expect(batch.end).toBeGreaterThan(batch.start);
          expect(batch.events.length).toBeLessThanOrEqual(eventsMax);
          const bytes = textOf(batch).reduce((sum, line) => sum + Buffer.byteLength(line), 0);
          if (batch.events.length > 1) expect(bytes).toBeLessThanOrEqual(bytesMax);
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('Outlet of a sink that comes after all pages have gone says that there was nothing for it', async () => {
  const { spool } = pageSpool([]);
  const gone = { ...spool, gauge: { bytes: 0, oldest: 7, end: 7 } };
  const outlet = outletOn([], { spool: gone });

  expect(await outlet.cut(0)).toMatchObject({ events: [], start: 0, end: 7 });
  expect(await outlet.cut(7)).toBe(null);
});
