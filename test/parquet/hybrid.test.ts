// Runs and bit-packed groups against another reader's decoder: any values come back, in as many bytes as were promised.

import fc from 'fast-check';
import { readRleBitPackedHybrid } from 'hyparquet/src/encoding.js';
import { expect, test } from 'vitest';
import { bitsOf, hybridBytesMax, writeHybrid } from '../../src/parquet/hybrid.ts';

/** Values of up to so many bits, alone and in runs. */
const values = fc.integer({ min: 1, max: 16 }).chain((bits) => {
  const value = fc.integer({ min: 0, max: 2 ** bits - 1 });
  const run = fc.tuple(value, fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 })));
  return fc.array(run, { maxLength: 40 }).map((runs) => ({
    bits,
    all: runs.flatMap(([one, count]) => new Array<number>(count).fill(one)),
  }));
});

test('any values come back, from any range of them', () => {
  fc.assert(
    fc.property(values, fc.nat(30), ({ bits, all }, skipped) => {
      const from = Math.min(skipped, all.length);
      const bytes = new Uint8Array(3 + hybridBytesMax(all.length - from, bits)).fill(0xff);
      const of = { values: Uint16Array.from(all), from, to: all.length, bits };

      const end = writeHybrid(of, bytes, 3);

      expect(end).toBeLessThanOrEqual(bytes.length);
      const back = new Array<number>(all.length - from).fill(0);
      const view = new DataView(bytes.buffer, 3, end - 3);
      const reader = { view, offset: 0 };
      readRleBitPackedHybrid(reader, bits, back, end - 3);
      expect(back).toEqual(all.slice(from));
    }),
    { numRuns: 500 },
  );
});

test('a long run takes a few bytes, and a value of no bits none', () => {
  const bytes = new Uint8Array(64);

  expect(
    writeHybrid({ values: new Uint8Array(100_000), from: 0, to: 100_000, bits: 1 }, bytes, 0),
  ).toBe(4);
  expect(writeHybrid({ values: new Uint8Array(100), from: 0, to: 100, bits: 0 }, bytes, 0)).toBe(2);
});

test('bits of the greatest value', () => {
  expect([0, 1, 2, 255, 256].map(bitsOf)).toEqual([0, 1, 2, 8, 9]);
});
