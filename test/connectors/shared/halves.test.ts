// sendInHalves against receivers with a size limit, that reject some events and fail at random points: every event must
// be exactly one of delivered, rejected or to be sent again.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type PartAnswer, type Range, sendInHalves } from '../../../connectors/shared/halves.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Batch, Delivery } from '../../../src/contracts/sink.ts';
import { noLines } from '../../../src/send/encode.ts';
import { someEvents } from '../../support/sink-opening.ts';

const cause = new ExportError('record_refused', 'a test says no', { next: 'Nothing.' });

function batchOf(size: number): Batch {
  const events = someEvents(size);
  return { id: 'b', events, lines: noLines, pages: [], start: 0, end: size };
}

/** A receiver that accepts at most `takes` events a request; its accepted events, and the number of requests. */
function receiver(batch: Batch, takes: number, script: readonly PartAnswer[] = []) {
  const taken: string[] = [];
  const asked: Range[] = [];
  const answer = async (range: Range): Promise<PartAnswer> => {
    asked.push(range);
    if (range.to - range.from > takes) return { outcome: 'too_large', cause };
    const scripted = script[asked.length - 1] ?? { outcome: 'delivered' };
    if (scripted.outcome === 'delivered') {
      taken.push(...batch.events.slice(range.from, range.to).map((event) => event.uid));
    }
    return scripted;
  };
  return { taken, asked, answer };
}

function fates(delivery: Delivery, batch: Batch) {
  const all = batch.events.map((event) => event.uid);
  if (delivery.outcome === 'delivered') return { delivered: all, refused: [], again: [] };
  if (delivery.outcome !== 'partly') return { delivered: [], refused: [], again: all };
  const refused = delivery.refused.map((refusal) => refusal.uid);
  const others = new Set([...refused, ...delivery.again]);
  return { delivered: all.filter((uid) => !others.has(uid)), refused, again: [...delivery.again] };
}

test('sendInHalves sends parts oldest first, cut at the same positions on every attempt', async () => {
  const batch = batchOf(10);
  const first = receiver(batch, 3);
  const second = receiver(batch, 3);

  const delivery = await sendInHalves(batch, first.answer);
  await sendInHalves(batch, second.answer);

  expect(delivery).toEqual({ outcome: 'delivered' });
  expect(first.taken).toEqual(batch.events.map((event) => event.uid));
  expect(second.asked).toEqual(first.asked);
});

test.each([0, 5, 7])(
  'sendInHalves sends event %d by itself, which spoils a part, with the parts before and after',
  async (guilty) => {
    const batch = batchOf(8);
    const asked: Range[] = [];

    const delivery = await sendInHalves(batch, async (range) => {
      asked.push(range);
      const by = guilty - range.from;
      return by >= 0 && guilty < range.to
        ? { outcome: 'spoiled', at: by, cause }
        : { outcome: 'delivered' };
    });

    const alone = { from: guilty, to: guilty + 1 };
    const others = [{ from: 0, to: guilty }, alone, { from: guilty + 1, to: 8 }];
    const parts = others.filter(({ from, to }) => to > from);
    // Refused alone while nothing was accepted: the engine decides what to send next.
    const sent = guilty === 0 ? parts.slice(0, 1) : parts;
    expect(asked).toEqual([{ from: 0, to: 8 }, ...sent]);
    expect(fates(delivery, batch).refused).toEqual([batch.events[guilty]?.uid]);
  },
);

test('sendInHalves halves a part that an event spoils which is not in it', async () => {
  const batch = batchOf(2);

  const delivery = await sendInHalves(batch, async ({ from, to }) =>
    to - from > 1 ? { outcome: 'spoiled', at: 9, cause } : { outcome: 'delivered' },
  );

  expect(delivery).toEqual({ outcome: 'delivered' });
});

test('sendInHalves refuses the event that alone is too large, and delivers the rest', async () => {
  const batch = batchOf(8);
  const guilty = batch.events[5]?.uid ?? '';

  const delivery = await sendInHalves(batch, async ({ from, to }) =>
    from <= 5 && 5 < to ? { outcome: 'too_large', cause } : { outcome: 'delivered' },
  );

  expect(delivery).toEqual({
    outcome: 'partly',
    refused: [{ uid: guilty, reason: cause.message }],
    again: [],
  });
});

test('sendInHalves hands on the wait of an answer to the whole batch', async () => {
  const batch = batchOf(4);
  const wait: Delivery = { outcome: 'retry', afterMs: 7000, cause };

  const delivery = await sendInHalves(batch, async () => wait);

  expect(delivery).toBe(wait);
});

test('sendInHalves settles each event exactly once, whatever the parts are answered', async () => {
  const anAnswer = fc.constantFrom<PartAnswer>(
    { outcome: 'delivered' },
    { outcome: 'delivered' },
    { outcome: 'retry', cause },
    { outcome: 'refused', scope: 'batch', cause },
    { outcome: 'refused', scope: 'sink', cause },
  );
  const anAttempt = fc.record({
    size: fc.integer({ min: 1, max: 40 }),
    takes: fc.integer({ min: 0, max: 40 }),
    script: fc.array(anAnswer, { maxLength: 60 }),
  });

  await fc.assert(
    fc.asyncProperty(anAttempt, async ({ size, takes, script }) => {
      const batch = batchOf(size);
      const { taken, answer } = receiver(batch, takes, script);

      const { delivered, refused, again } = fates(await sendInHalves(batch, answer), batch);

      expect(delivered).toEqual(taken);
      expect([...delivered, ...refused, ...again].sort()).toEqual(
        batch.events.map((event) => event.uid).sort(),
      );
      if (takes > 0) expect(refused).toEqual([]);
    }),
  );
});
