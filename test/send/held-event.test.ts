// A stored page as events: upstream's record, its uid, and its normalised form, each made once and only on request.

import { expect, test } from 'vitest';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { cutRecords } from '../../src/tools/record-list.ts';
import { aPage } from '../support/a-page.ts';

const ids = ['a', 'b', 'c', 'd'];

function held(more: Partial<HeldPage> = {}): HeldPage {
  return { ...aPage({ ids }), first: 10, count: 4, ...more };
}

/** Decodes, counting how often a record is normalised. */
function counting() {
  const normalised: unknown[] = [];
  const decoder = new PageDecoder(() => (record) => {
    normalised.push(record);
    return { record } as unknown as OcsfEvent;
  });
  return { decoder, normalised };
}

test('PageDecoder gives each event its uid, offset, context and bytes', () => {
  const page = held();
  const { events } = counting().decoder.decode(page);

  expect(events.map(({ uid }) => uid)).toEqual(
    ids.map((_, i) => Buffer.from(page.uids).toString('hex', i * 32, (i + 1) * 32)),
  );
  expect(events.map(({ offset }) => offset)).toEqual([10, 11, 12, 13]);
  expect(events.map(({ raw }) => JSON.parse(Buffer.from(raw).toString()).id)).toEqual(ids);
  for (const event of events) {
    expect(event.context).toBe(page.context);
    expect([event.source, event.stream, event.kind]).toEqual(['audit', 'audit', 'audit']);
  }
});

test('PageDecoder gives each of many events its own uid, in any order of calls', () => {
  const many = Array.from({ length: 100 }, (_, i) => `e${i}`);
  const page = held({ ...aPage({ ids: many }), count: many.length });
  const { events } = counting().decoder.decode(page);
  const uidAt = (i: number) => Buffer.from(page.uids).toString('hex', i * 32, (i + 1) * 32);

  for (const i of [0, 31, 32, 99, 63, 1, 64]) expect(events[i]?.uid).toBe(uidAt(i));
  expect(events.map(({ uid }) => uid)).toEqual(many.map((_, i) => uidAt(i)));
});

test('PageDecoder returns only the kept records, found by the reader or found again alike', () => {
  const uids = aPage({ ids: ['b', 'd'] }).uids;
  const kept = held({ kept: Uint32Array.of(1, 3), uids, count: 2 });
  const { data } = JSON.parse(Buffer.from(kept.body).toString());
  const handedOn = { ...kept, slices: cutRecords(kept.body, 'data') };

  for (const page of [kept, handedOn]) {
    const { events } = counting().decoder.decode(page);
    expect(events.map(({ raw }) => JSON.parse(Buffer.from(raw).toString()).id)).toEqual(['b', 'd']);
    expect(events.map(({ ocsf }) => ocsf.record)).toEqual([data[1], data[3]]);
  }
});

test('PageDecoder normalises a record at the first request, and once', () => {
  const { decoder, normalised } = counting();
  const { events } = decoder.decode(held());

  const before = normalised.length;
  const first = events[2]?.ocsf;

  expect(before).toBe(0);
  expect(events[2]?.ocsf).toBe(first);
  expect(normalised).toHaveLength(1);
});

test('PageDecoder returns the same events for the same page, and selects its normaliser by its context', () => {
  const contexts: string[] = [];
  const decoder = new PageDecoder((context) => {
    contexts.push(context.source);
    return (record) => record as unknown as OcsfEvent;
  });
  const page = held();

  const first = decoder.decode(page);
  const again = decoder.decode(page);
  const other = decoder.decode({ ...page });

  expect(again).toBe(first);
  expect(other).not.toBe(first);
  expect(contexts).toEqual(['audit', 'audit']);
});

test('PageDecoder reads a page whose body is the array itself, and one that starts with a byte order mark', () => {
  const records = '[{"id":"a"},{"id":"b"}]';
  const uids = aPage({ ids: ['a', 'b'] }).uids;
  for (const text of [records, `\ufeff${records}`]) {
    const page = held({ body: Buffer.from(text), items: '', uids, count: 2 });

    const { events } = counting().decoder.decode(page);

    expect(events.map(({ raw }) => Buffer.from(raw).toString())).toEqual([
      '{"id":"a"}',
      '{"id":"b"}',
    ]);
    expect(events.map(({ ocsf }) => ocsf.record)).toEqual([{ id: 'a' }, { id: 'b' }]);
  }
});
