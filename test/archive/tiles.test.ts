// Names and contents of tiles and entry bundles, as C2SP tlog-tiles has them.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeBundle,
  decodeTile,
  encodeBundle,
  parseTilePath,
  tileOf,
  tilePath,
  tilesBetween,
} from '../../src/archive/tiles.ts';

describe('names', () => {
  test.each([
    [{ level: 0, index: 1_234_067, width: 256 }, 'tile/0/x001/x234/067'],
    [{ level: 0, index: 0, width: 5 }, 'tile/0/000.p/5'],
    [{ level: 'entries', index: 1_000, width: 256 }, 'tile/entries/x001/000'],
    [{ level: 63, index: 999, width: 255 }, 'tile/63/999.p/255'],
  ] as const)('%o', (tile, path) => {
    expect(tilePath(tile)).toBe(path);
    expect(parseTilePath(path)).toEqual(tile);
  });

  test.each([
    'tile/64/000',
    'tile/00/000',
    'tile/0/0',
    'tile/0/000.p/0',
    'tile/0/000.p/256',
    'tile/0/000.p/05',
    'tile/0/x000/001',
    'tile/0/001/x000',
    'tile/0/x001/x234/067/',
    'tile/data/000',
  ])('%s is the name of none', (path) => {
    expect(parseTilePath(path)).toBeNull();
  });
});

describe('the nodes that a tree has and an older one had not', () => {
  test.each([
    ['entries', 0, 0, []],
    ['entries', 0, 5, ['tile/entries/000.p/5']],
    ['entries', 5, 256, ['tile/entries/000']],
    ['entries', 250, 513, ['tile/entries/000', 'tile/entries/001', 'tile/entries/002.p/1']],
    [0, 256, 257, ['tile/0/001.p/1']],
    [1, 0, 255, []],
    [1, 255, 256, ['tile/1/000.p/1']],
    [1, 256, 511, []],
    [1, 0, 65_536 + 256, ['tile/1/000', 'tile/1/001.p/1']],
    [2, 65_535, 65_536, ['tile/2/000.p/1']],
  ] as const)('level %s from %i to %i', (level, from, size, paths) => {
    expect(tilesBetween(level, from, size).map(tilePath)).toEqual(paths);
  });
});

test('each hash of a tree is in one of its tiles', () => {
  expect(tileOf(0, 256, 300)).toEqual({ level: 0, index: 1, width: 44 });
  expect(tileOf(1, 0, 300)).toEqual({ level: 1, index: 0, width: 1 });
  expect(tileOf('entries', 255, 300)).toEqual({ level: 'entries', index: 0, width: 256 });
});

test('a bundle is read as it was written, and not with a byte more or less', () => {
  const entries = fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(entries, (written) => {
      const bytes = encodeBundle(written);

      expect(decodeBundle(bytes, written.length)).toEqual(written.map((one) => Buffer.from(one)));
      expect(() => decodeBundle(bytes.subarray(0, -1), written.length)).toThrow(SyntaxError);
      expect(() => decodeBundle(Buffer.concat([bytes, Buffer.of(0)]), written.length)).toThrow(
        SyntaxError,
      );
      expect(() => decodeBundle(bytes, written.length + 1)).toThrow(SyntaxError);
    }),
  );
  expect(encodeBundle([Buffer.from('ab'), Buffer.alloc(0)]).toString('hex')).toBe('000261620000');
  expect(() => decodeTile(Buffer.alloc(63), 2)).toThrow(SyntaxError);
});
