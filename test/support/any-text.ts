// Text of any code points, for properties that must hold for any text.

import fc from 'fast-check';

const surrogates = { first: 0xd800, count: 0x800 };

/** As the unit `binary`, which makes a table of a million code points first: a second in each process. */
const codePoint = fc.nat({ max: 0x10ffff - surrogates.count }).map(
  (n) => String.fromCodePoint(n < surrogates.first ? n : n + surrogates.count),
  (text) => {
    const point = typeof text === 'string' ? (text.codePointAt(0) ?? -1) : -1;
    const isOne = point >= 0 && String.fromCodePoint(point) === text;
    const isHalf = point >= surrogates.first && point < surrogates.first + surrogates.count;
    if (!isOne || isHalf) throw new Error('not one code point');
    return point < surrogates.first ? point : point - surrogates.count;
  },
);

/** Any text without halves of surrogate pairs, dangerous ones among it. */
export function anyText(
  constraints: Omit<fc.StringConstraints, 'unit'> = {},
): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: codePoint });
}
