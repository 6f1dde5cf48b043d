// A stream most of whose records have times that cannot be read is a matter for the operator; one whose records have no
// time is none.

import { expect, test } from 'vitest';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { DecodedPage } from '../../src/send/held-event.ts';
import { PageEncoder } from '../../src/send/page-encoder.ts';
import { everything } from '../../src/send/route.ts';
import { UnreadTimes } from '../../src/send/unread-times.ts';
import { attentionOf } from '../../src/watch/attention.ts';
import { makeFormat } from '../formats/make-format.ts';
import { aPage } from '../support/a-page.ts';

const paths = ['timestamp'];

function pageOf(records: readonly object[], timeFormats: readonly string[] = []): DecodedPage {
  const ids = records.map((_, index) => `e${index}`);
  const body = Buffer.from(JSON.stringify({ data: records }));
  const held: HeldPage = { ...aPage({ ids }), body, first: 0, count: records.length };
  return new DecodedPage(held, compileNormaliser('audit', { id: 'id', time: paths, timeFormats }));
}

const many = (make: (index: number) => object, count = 40) =>
  Array.from({ length: count }, (_, index) => ({ action: 'x', ...make(index) }));
const unclear = (index: number) => ({ timestamp: `05/11/2026 10:00:${10 + index}` });
const clear = () => ({ timestamp: '2026-11-05T10:00:00Z' });

function mattersAfter(...pages: readonly DecodedPage[]) {
  const times = new UnreadTimes();
  for (const page of pages) times.look(page, paths);
  const spool = { bytes: 0, max_bytes: 1 };
  return attentionOf({ streams: [], sinks: [], spool, unread_times: [...times.all] });
}

test('mostly unread times raise attention, which names path, value and setting', () => {
  expect(mattersAfter(pageOf(many(unclear)))).toEqual([
    {
      mood: 'warn',
      who: 'Stream audit',
      what: 'has times that cannot be read: its events have the time of their reading',
      message: expect.stringMatching(/^timestamp is "05\/11\/2026 10:00:\d\d"$/),
      next: expect.stringContaining('time_formats'),
    },
  ]);
});

test('so do pages of one record each', () => {
  const pages = many(unclear, 6).map((record) => pageOf([record]));

  expect(mattersAfter(...pages)).toHaveLength(1);
});

test.each([
  ['times that are read', many(clear)],
  ['a few that are not', many((index) => (index % 5 === 0 ? unclear(index) : clear()))],
  ['no times at all', many(() => ({}))],
  ['fewer than say something', many(unclear, 2)],
])('%s raise none', (_, records) => {
  expect(mattersAfter(pageOf(records))).toEqual([]);
});

test('the declared form ends it, and so do times that are read again', () => {
  expect(mattersAfter(pageOf(many(unclear), ['%d/%m/%Y %H:%M:%S']))).toEqual([]);
  const later = Array.from({ length: 40 }, () => pageOf(many(clear)));
  expect(mattersAfter(pageOf(many(unclear)), ...later)).toEqual([]);
});

test('of many pages that are read well, one record each is looked at', () => {
  const times = new UnreadTimes();
  let normalised = 0;
  for (let at = 0; at < 20; at += 1) {
    const page = pageOf(many(clear, 100));
    const normalise: typeof page.normalise = (...given) => {
      normalised += 1;
      return page.normalise(...given);
    };
    times.look(new DecodedPage(page.held, normalise), paths);
  }
  expect(normalised).toBeLessThan(16 + 20);
});

test('the encoder shows each page that is encoded', async () => {
  const page = pageOf(many(unclear));
  const seen: number[] = [];
  const decoder = { decode: () => page } as unknown as ConstructorParameters<typeof PageEncoder>[0];
  const encoder = new PageEncoder(
    decoder,
    undefined,
    ({ events }) => void seen.push(events.length),
  );
  const reader = {
    ...{
      sink: 's',
      format: makeFormat('json'),
      formatKey: 'json',
      documents: false,
      takesPages: false,
    },
    ...{ selectionFor: () => everything, expects: () => true, hasPassed: () => false },
  };

  await encoder.select(page.held, reader);

  expect(seen).toEqual([40]);
});
