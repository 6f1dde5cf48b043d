// A known shape outlives the pages from which it was learned, and keeps none of them in memory.

import { expect, test } from 'vitest';
import { shapeOf } from '../../src/transcode/record-shape.ts';

test('the pieces of a shape are copies', () => {
  const page = Buffer.from('[{"a":"one","b":2,"c":true}]');

  const shape = shapeOf(page, 1, page.length - 1);

  expect(shape?.pieces.map((piece) => Buffer.from(piece).toString())).toEqual([
    '{"a":"',
    '","b":',
    ',"c":true}',
  ]);
  expect(shape?.pieces.filter(({ buffer }) => buffer === page.buffer)).toEqual([]);
});
